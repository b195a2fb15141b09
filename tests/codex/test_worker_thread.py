"""A real worker thread: inside its boundary, with its route attested, ended in time."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from pathlib import Path

import anyio
import psutil
import pytest

from baton.codex.catalogue import catalogue
from baton.codex.events import Notification
from baton.codex.faults import ServerDied, ThreadRefused
from baton.codex.no_git import without_git
from baton.codex.thread import THREAD_MARKER, WorkerThread, resume_thread
from baton.codex.turn import Deadlines, TurnOutcome, TurnStatus
from baton.contract.states import FailureClass
from baton.process.environment import WORKER_MARKER
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import (
    Step,
    add_file,
    call,
    claiming,
    fail,
    javascript,
    say,
    shell,
    stall,
)
from codex.workers_bench import LUNA, PLAIN, Bench, writing

pytestmark = [pytest.mark.codex, pytest.mark.anyio]

OWN_VARIABLES = {
    *("PATH", "HOME", "SHLVL", "PWD", "_", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "COLORTERM", "NO_COLOR"),
    *("PAGER", "GIT_PAGER", "GH_PAGER", WORKER_MARKER),
}
"""What a worker's command may see besides Codex's own `CODEX_…`."""


@pytest.fixture
def bench(test_root: Path, codex_binary: Path, model: ScriptedModel) -> Bench:
    return Bench(test_root, codex_binary, model.port)


LISTING = "text(JSON.stringify(ALL_TOOLS.map(tool => tool.name)));"


async def test_a_worker_has_no_tool_to_delegate_and_none_from_elsewhere(
    bench: Bench, model: ScriptedModel
) -> None:
    resources = "text(await tools.list_mcp_resources({}));"
    skill = bench.home / "skills" / "deploy"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: deploy\ndescription: Deploys it all.\n---\nDo.\n")
    model.on("TOOLS", javascript(LISTING), javascript(resources), say("done"))
    model.on("PLAIN", say("done"))
    entries = await catalogue(bench.binary, bench.home, bench.environment)
    async with await bench.server() as server:
        for slug in [entry.slug for entry in entries if entry.slug != PLAIN]:
            thread = await bench.thread(server, slug)
            await thread.run_turn("TOOLS")
            last = model.requests_of(thread.id)[-1]
            names = _listed(last)
            assert {"exec_command", "apply_patch"} <= set(names)
            assert [name for name in names if _is_foreign(name)] == [], slug
            assert last.outputs[1].text.endswith('{"resources":[]}'), slug
            assert "Deploys it all" not in last.text
        thread = await bench.thread(server, PLAIN)
        await thread.run_turn("PLAIN")
        offered = [tool.get("name") or tool["type"] for tool in model.requests_of(thread.id)[0].body["tools"]]
        assert "exec_command" in offered
        assert [name for name in offered if _is_foreign(name)] == []


async def test_the_list_of_tools_would_show_delegation_if_there_were_any(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("TOOLS", javascript(LISTING), say("done"))
    async with await bench.server(extra={"agents.enabled": True, "features.goals": True}) as server:
        await (await bench.thread(server)).run_turn("TOOLS")
    assert [name for name in _listed(model.requests[-1]) if _is_foreign(name)]


async def test_servers_of_the_home_are_switched_off_by_name(
    bench: Bench, model: ScriptedModel, test_root: Path
) -> None:
    started = test_root / "started"
    command = {"command": "/bin/sh", "args": ["-c", f"touch {started}; exec sleep 603"]}
    write_simulated_home(bench.home, model.port, extra={"mcp_servers": {"other.one": command}})
    model.on("WORK", say("done"))
    async with await bench.server(disabled_servers=("other.one",)) as server:
        await (await bench.thread(server)).run_turn("WORK")
        assert not started.exists()
    async with await bench.server() as server:
        await bench.thread(server)
        with anyio.fail_after(30):
            while not started.exists():
                await anyio.sleep(0.02)


def _listed(request: Request) -> list[str]:
    return list(json.loads(request.outputs[0].text.splitlines()[-1]))


def _is_foreign(name: str) -> bool:
    words = ("spawn", "agent", "mcp__", "plugin", "skill", "browser", "goal", "search", "image_gen")
    return any(word in name.lower() for word in words)


@pytest.mark.parametrize("slug", [LUNA, PLAIN])
async def test_a_workers_commands_see_no_variable_of_the_persons(
    bench: Bench, model: ScriptedModel, slug: str
) -> None:
    for name in (".bashrc", ".bash_profile", ".profile", ".zshrc"):
        (bench.root / name).write_text("export FROM_PROFILE=leaked\n")
        (bench.root / "scratch" / name).write_text("export FROM_PROFILE=leaked\n")
    foreign = {"shell_environment_policy": {"set": {"FROM_CONFIG": "leaked"}, "inherit": "all"}}
    write_simulated_home(bench.home, model.port, extra=foreign)
    model.on("ENV", shell("env -0 | tr '\\0' '\\n'"), shell("env", login=True), say("done"))
    async with await bench.server() as server:
        thread = await bench.thread(server, slug)
        await thread.run_turn("ENV")
    plain, login = (output.text.replace("\\n", "\n") for output in model.requests[-1].outputs)
    names = {
        line.split("=")[0].strip('"')
        for line in plain.splitlines()
        if "=" in line and " " not in line.split("=")[0]
    }
    names = {name for name in names if name.isidentifier()}
    assert {"PATH", "HOME", WORKER_MARKER} <= names
    assert {name for name in names - OWN_VARIABLES if not name.startswith("CODEX_")} == set()
    assert "secret-value" not in plain and "leaked" not in plain
    assert "login shell is disabled" in login


async def test_writes_outside_the_scope_fail_by_shell_and_by_patch(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on(
        "ESCAPE",
        shell("echo in > src/in.txt; echo out > lib/out.txt"),
        add_file("lib/patched.txt", "out\n"),
        add_file("src/patched.txt", "in\n"),
        say("done"),
    )
    async with await bench.server() as server:
        thread = await bench.thread(server)
        outcome = await thread.run_turn("ESCAPE")
    assert outcome.status is TurnStatus.COMPLETED
    assert sorted(path.name for path in bench.work.rglob("*.txt")) == ["in.txt", "patched.txt"]
    assert (bench.work / "src" / "patched.txt").read_text() == "in\n"


async def test_route_usage_and_final_message_are_what_codex_reports(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("WORK", shell("true"), say("first"), shell("true"), shell("true"), say({"n": 2}))
    events: list[Notification] = []
    async with await bench.server() as server:
        thread = await bench.thread(server, role="luna-worker", tier="luna")
        assert (thread.route.model, thread.route.effort, thread.route.provider) == (LUNA, "high", "sim")
        one = await thread.run_turn("WORK", on_event=events.append)
        two = await thread.run_turn("again", effort="low", output_schema={"type": "object"})
    assert (one.final_message, two.final_message) == ("first", '{"n": 2}')
    assert one.usage.total_tokens == 2 * model.usage.total_tokens
    assert two.usage.total_tokens == 3 * model.usage.total_tokens
    assert two.usage.cached_input_tokens == 3 * model.usage.cached_tokens
    assert two.usage.reasoning_output_tokens == 3 * model.usage.reasoning_tokens
    assert one.commands == 1
    assert (thread.route.asked_effort, thread.route.effort, thread.route.deviates) == ("low", "low", False)
    assert [request.effort for request in model.requests] == ["high"] * 2 + ["low"] * 3
    assert model.requests[-1].output_schema == {"type": "object"}
    assert events[-1].method == "turn/completed"
    assert not [event for event in events if event.method.endswith("Delta")]


async def test_a_reroute_by_the_service_is_recorded(bench: Bench, model: ScriptedModel) -> None:
    model.on("WORK", claiming("gpt-other", say("done")))
    async with await bench.server() as server:
        thread = await bench.thread(server)
        outcome = await thread.run_turn("WORK")
    assert outcome.status is TurnStatus.COMPLETED
    assert outcome.server_claimed_model == thread.route.server_claimed == "gpt-other"
    assert thread.route.deviates


async def test_recoverable_errors_are_notices_and_the_answer_is_kept(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("WORK", fail(401, times=1), say("kept"))
    async with await bench.server() as server:
        outcome = await (await bench.thread(server)).run_turn("WORK")
    assert (outcome.status, outcome.final_message, outcome.failure) == (TurnStatus.COMPLETED, "kept", None)
    assert any("Reconnecting" in notice for notice in outcome.notices)


async def test_a_thread_whose_boundary_is_not_as_asked_is_refused(bench: Bench) -> None:
    asked = writing(bench.work / "src")
    wider = writing(bench.work / "src", bench.work / "lib")
    narrow_expectation = type(asked)(wider.name, wider.filesystem, asked.writable_roots)
    async with await bench.server() as server:
        with pytest.raises(ThreadRefused, match=r"also: .*lib") as refused:
            await bench.thread(server, profile=narrow_expectation)
        assert refused.value.failure.failure_class is FailureClass.SCOPE_NOT_ENFORCED
        with pytest.raises(ThreadRefused, match="unknown configuration field"):
            await bench.thread(server, extra={"sandbox_modes": "x"})


async def test_resume_puts_the_boundary_up_again_and_goes_on(bench: Bench, model: ScriptedModel) -> None:
    model.on("WORK", say("one"), shell("echo x > src/a; echo x > lib/b"), say("two"))
    settings = bench.settings()
    async with await bench.server() as server:
        thread = await bench.thread(server)
        first = await thread.run_turn("WORK")
    async with await bench.server() as server:
        with pytest.raises(ThreadRefused) as refused:
            wrong = bench.settings(profile=type(settings.profile)("t-x", settings.profile.filesystem, ()))
            await resume_thread(server, thread.id, wrong)
        assert refused.value.failure.failure_class is FailureClass.SCOPE_NOT_ENFORCED
    async with await bench.server() as server:
        again = await resume_thread(server, thread.id, settings)
        second = await again.run_turn("go on")
    assert (again.id, first.final_message, second.final_message) == (thread.id, "one", "two")
    assert second.usage.total_tokens == 2 * model.usage.total_tokens
    assert [path.name for path in bench.work.rglob("*") if path.is_file()] == ["a"]


async def test_an_idle_worker_is_interrupted_and_its_commands_are_really_ended(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("WORK", shell("sleep 600 & exec sleep 601", yield_time_ms=250), stall())
    async with await bench.server() as server:
        thread = await bench.thread(server)
        outcome = await thread.run_turn("WORK", deadlines=Deadlines(start=30, idle=1.5, turn=60))
        assert outcome.status is TurnStatus.INTERRUPTED
        assert outcome.failure is not None
        assert outcome.failure.failure_class is FailureClass.IDLE_TIMEOUT
        assert outcome.usage.total_tokens == model.usage.total_tokens
        assert _commands_of(thread.id), "an interrupted turn leaves its commands running"
        assert await thread.clean_terminals() == ()
        assert _commands_of(thread.id) == []
        model.fallback(say("fresh"))
        assert server.alive


def _commands_of(thread_id: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(THREAD_MARKER) == thread_id:
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


async def test_a_turn_beyond_its_deadline_says_so_even_while_events_come(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("WORK", shell("while :; do echo tick; sleep 0.1; done", yield_time_ms=20000), say("never"))
    async with await bench.server() as server:
        thread = await bench.thread(server)
        outcome = await thread.run_turn("WORK", deadlines=Deadlines(start=30, idle=30, turn=1.5))
        assert outcome.failure is not None
        assert outcome.failure.failure_class is FailureClass.TURN_TIMEOUT
        assert await thread.clean_terminals() == ()


async def begun(thread: WorkerThread, text: str, model: ScriptedModel) -> asyncio.Task[TurnOutcome]:
    """A turn whose id is known here, and which is at work: either may come first."""
    told = asyncio.Event()
    turn = asyncio.create_task(thread.run_turn(text, on_event=lambda _: told.set()))
    await told.wait()
    await asyncio.to_thread(model.wait_for, lambda request: request.thread_id == thread.id)
    return turn


async def test_interrupt_and_steer_reach_the_running_turn_and_nothing_else(
    bench: Bench, model: ScriptedModel
) -> None:
    released = threading.Event()
    model.on("STEER", stall(released), shell("true"), say("done"))
    model.on("STOP", stall())
    async with await bench.server() as server:
        thread = await bench.thread(server)
        assert not await thread.interrupt()
        assert not await thread.steer("too early")
        turn = await begun(thread, "STEER", model)
        assert await thread.steer("and mind the gap")
        released.set()
        assert (await turn).final_message == "done"
        assert "mind the gap" in model.requests_of(thread.id)[-1].text
        other = await bench.thread(server)
        turn = await begun(other, "STOP", model)
        assert await other.interrupt()
        outcome = await turn
        assert (outcome.status, outcome.failure) == (TurnStatus.INTERRUPTED, None)


async def test_a_cancelled_caller_leaves_no_turn_running(bench: Bench, model: ScriptedModel) -> None:
    model.on("WORK", stall(), say("later"))
    async with await bench.server() as server:
        thread = await bench.thread(server)
        turn = asyncio.create_task(thread.run_turn("WORK"))
        await asyncio.to_thread(model.wait_for, lambda request: request.thread_id == thread.id)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert (await thread.run_turn("next")).final_message == "later"


async def test_a_killed_server_is_a_crash_for_every_turn_and_leaves_no_process(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("WORK", shell("exec sleep 602", yield_time_ms=250), stall())
    async with await bench.server() as server:
        threads = [await bench.thread(server) for _ in range(2)]
        turns = [asyncio.create_task(thread.run_turn("WORK")) for thread in threads]
        for thread in threads:
            await asyncio.to_thread(
                model.wait_for, lambda request, id=thread.id: request.thread_id == id and request.number == 1
            )
        os.kill(server.program_pid, signal.SIGKILL)
        outcomes = await asyncio.gather(*turns)
        assert [outcome.failure.failure_class for outcome in outcomes] == [FailureClass.CRASH] * 2
        assert all("signal 9" in outcome.failure.message for outcome in outcomes)
        assert not server.alive
        with pytest.raises(ServerDied):
            await bench.thread(server)
    assert [_commands_of(thread.id) for thread in threads] == [[], []]


async def test_many_threads_of_one_server_keep_to_themselves(bench: Bench, model: ScriptedModel) -> None:
    for number in range(8):
        model.on(f"<{number}>", shell(f"echo {number} > src/{number}"), say(f"done {number}"))
    async with await bench.server() as server:
        threads = [await bench.thread(server) for _ in range(8)]
        outcomes = await asyncio.gather(*(thread.run_turn(f"<{n}>") for n, thread in enumerate(threads)))
    assert [outcome.final_message for outcome in outcomes] == [f"done {number}" for number in range(8)]
    assert sorted(path.name for path in (bench.work / "src").iterdir()) == [
        str(number) for number in range(8)
    ]


async def test_instructions_and_skills_of_the_repository_do_not_reach_a_worker_by_themselves(
    bench: Bench, model: ScriptedModel
) -> None:
    (bench.work / "AGENTS.md").write_text("OBEY-ME\n")
    roots = {"local": bench.work / ".agents", "homely": bench.home, "own": bench.root / ".agents"}
    for name, root in roots.items():
        skill = root / "skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: OBEY-ME too.\n---\nOBEY-ME\n")
    model.on("WORK", call("list_mcp_resources"), say("done"))
    async with await bench.server() as server:
        thread = await bench.thread(server)
        outcome = await thread.run_turn("WORK with $local and $homely and $own")
    assert "OBEY-ME" not in json.dumps([request.body for request in model.requests])
    assert any("should not have" in notice for notice in outcome.notices)


async def test_a_turn_is_interrupted_when_its_listener_fails(bench: Bench, model: ScriptedModel) -> None:
    def answer(request: Request) -> Step:
        return say("later") if "again" in request.prompt else stall()

    model.on("WORK", answer, answer)

    def listen(event: Notification) -> None:
        if event.method == "turn/started":
            raise OSError("disk full")

    async with await bench.server() as server:
        thread = await bench.thread(server)
        with pytest.raises(OSError, match="disk full"):
            await thread.run_turn("WORK", on_event=listen)
        outcome = await thread.run_turn("WORK again")
    assert outcome.status is TurnStatus.COMPLETED


async def test_codex_runs_no_git_of_its_own_where_it_is_given_none_and_a_workers_command_does(
    bench: Bench, model: ScriptedModel
) -> None:
    model.on("GIT", shell("git rev-parse --is-inside-work-tree > src/said"), say("done"))
    await anyio.run_process(["git", "init", "-q", str(bench.work)])
    asked = bench.root / "asked"
    noting = bench.root / "bin" / "git"
    noting.parent.mkdir()
    noting.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec /usr/bin/git "$@"\n')
    noting.chmod(0o755)
    watched = {**bench.environment, "PATH": f"{noting.parent}:{bench.environment['PATH']}"}
    for env, runs_git in ((watched, True), (without_git(watched, bench.root / "no-git"), False)):
        async with await bench.server(environment=env) as server:
            outcome = await (await bench.thread(server)).run_turn("GIT")
        assert outcome.status is TurnStatus.COMPLETED
        assert (bench.work / "src" / "said").read_text() == "true\n"
        assert asked.exists() is runs_git
        asked.unlink(missing_ok=True)
