"""A person installs the plugin into the real Codex, whose model then delegates: the whole way and back."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from baton.ledger.locks import is_held
from baton.simulate import workers
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import Step, shell, stall
from baton.tools.catalogue import tool_specs
from e2e.plugin_session import (
    CHECK,
    PROJECT,
    RIGHT,
    TOOL_NAMES,
    Installed,
    answers,
    files_of_a_clone,
    install,
    policy,
    requests_of,
    script,
    size_of,
    supervise,
    told,
    tool,
    wait_for_state,
)

pytestmark = pytest.mark.codex

GO = "Please see to the sum"
TASK = "Mend the sum in calc"
TOOLS = sorted(spec.name for spec in tool_specs())

DELEGATE = {"objective": f"{TASK}.", "allowedFiles": ["src/"], "verificationCommands": [CHECK]}


def mending() -> tuple[Step, ...]:
    return workers.honest({"src/calc.py": RIGHT}, [CHECK])


def run_id_of(request: Request) -> str:
    """The run that the last program's first call answered with."""
    return str(told(request)[0]["structuredContent"]["runId"])


def resume_and_wait(run: str) -> tuple[str, str]:
    return tool("control_run", runId=run, action="resume"), tool("wait_run", runId=run)


def test_a_delegated_change_lands_verified_beside_what_the_person_did_meanwhile(
    installed: Installed, model: ScriptedModel
) -> None:
    workspace = installed.workspace
    (workspace / "draft.txt").write_text("not yet in git\n")
    (workspace / "notes.txt").write_text("one\ntwo\n")
    installed.git("add", "notes.txt")
    index = installed.index()

    def while_it_works(_: Request) -> Step:
        (workspace / "notes.txt").write_text("one\ntwo\nthree\n")
        (workspace / "later.txt").write_text("made during the run\n")
        return shell("true")

    def wait_and_inspect(request: Request) -> Step:
        run = run_id_of(request)
        return script(tool("wait_run", runId=run), tool("inspect_run", runId=run, what="diff"))

    supervise(model, GO, script(tool("delegate_task", **DELEGATE, waitSeconds=0)), wait_and_inspect)
    model.on(TASK, while_it_works, *mending())
    installed.session(GO)

    (begun,) = answers(model, GO, 1)
    assert begun["state"] in ("queued", "running") and "wait_run" in begun["next"]
    done, diff = answers(model, GO)
    assert (done["state"], done["verdict"], done["integration"]) == ("done", "verified", "applied")
    assert done["evidence"]["changes"] == ["M src/calc.py"]
    assert done["evidence"]["scope"] == "prevented"
    assert "+    return a + b" in diff["text"]
    assert installed.content() == {
        **PROJECT,
        "src/calc.py": RIGHT,
        "notes.txt": "one\ntwo\nthree\n",
        "draft.txt": "not yet in git\n",
        "later.txt": "made during the run\n",
    }
    assert installed.index() == index


@pytest.mark.long
def test_a_supervisor_in_a_project_that_wants_a_control_plane_is_told_so(
    installed: Installed, model: ScriptedModel
) -> None:
    (installed.workspace / ".codex").mkdir()
    (installed.workspace / ".codex" / "baton.toml").write_text("[root]\nmode = 'control-plane'\n")
    supervise(model, GO, script(tool("delegate_task", **DELEGATE)))
    model.on(TASK, *mending())
    installed.session(GO)
    (answer,) = answers(model, GO)
    assert (answer["verdict"], answer["integration"]) == ("verified", "applied")
    assert answer["root"] == "control-plane: edit no file yourself"


def test_the_first_model_request_offers_the_tools_and_says_what_they_are_for(
    installed: Installed, model: ScriptedModel
) -> None:
    supervise(model, GO, script(TOOL_NAMES))
    installed.session(GO)
    first, second = requests_of(model, GO)
    (names,) = told(second)
    assert [name for name in names if name.startswith("mcp__")] == [f"mcp__baton__{name}" for name in TOOLS]
    assert "baton:orchestrate-work" in first.text


def test_a_worker_of_a_session_has_no_tool_to_delegate_with_and_none_of_the_plugin(
    installed: Installed, model: ScriptedModel
) -> None:
    installed.env["OPENAI_API_KEY"] = "for the session alone"
    supervise(model, GO, script(tool("delegate_task", **DELEGATE)))
    look = script(
        TOOL_NAMES,
        "JSON.parse(await tools.list_mcp_resources({}))",
        "(await tools.exec_command({cmd: 'env'})).output.split('\\n')",
    )
    model.on(TASK, look, *mending())
    installed.session(GO)
    (done,) = answers(model, GO)
    assert done["verdict"] == "verified"
    first, looked, *_ = requests_of(model, TASK)
    names, resources, environment = told(looked)
    assert {"exec_command", "apply_patch"} <= set(names)
    foreign = ("mcp", "spawn", "agent", "plugin", "skill", "collab", "delegate", "suggest", "goal")
    suspects = [name for name in names if any(word in name for word in foreign)]
    # Codex gives these three to everyone; with no server behind them they show nothing.
    assert suspects == ["list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource"]
    assert resources == {"resources": []}
    assert "orchestrate-work" not in first.text and "mcp__baton" not in first.text
    variables = {line.partition("=")[0] for line in environment}
    assert {"PATH", "HOME", "BATON_WORKER"} <= variables
    assert not variables & {"CODEX_HOME", "BATON_STATE", "BATON_RUNTIME", "OPENAI_API_KEY"}


def test_a_read_only_session_gets_its_result_held_and_may_not_apply_it(
    installed: Installed, model: ScriptedModel
) -> None:
    before, index = installed.content(), installed.index()

    def integrate(request: Request) -> Step:
        return script(tool("control_run", runId=run_id_of(request), action="integrate"))

    supervise(model, GO, script(tool("delegate_task", **DELEGATE)), integrate)
    model.on(TASK, *mending())
    installed.session(GO, writable=False)
    (held,) = answers(model, GO, 1)
    assert (held["state"], held["verdict"], held["integration"]) == ("held", "verified", "held")
    (refused,) = answers(model, GO)
    assert refused.failed and "may not write" in refused.text
    assert installed.content() == before and installed.index() == index

    supervise(model, "Take it", script(tool("control_run", runId=held["runId"], action="integrate")))
    installed.session("Take it")
    (taken,) = answers(model, "Take it")
    assert (taken["state"], taken["integration"]) == ("done", "applied")
    assert installed.content() == {**before, "src/calc.py": RIGHT} and installed.index() == index


def test_a_run_whose_session_ended_is_kept_and_another_session_carries_it_to_its_end(
    installed: Installed, model: ScriptedModel
) -> None:
    policy(installed, "[deadlines]\nowner_grace_seconds = 1\n")
    before = installed.content()
    at_work = threading.Event()

    def noticed(_: Request) -> Step:
        at_work.set()
        return stall()

    supervise(model, GO, script(tool("delegate_task", **DELEGATE)))
    model.on(TASK, workers.write("src/calc.py", RIGHT), noticed, workers.report())
    with installed.started_session(GO) as session:
        assert at_work.wait(60)
        session.terminate()
        session.wait(timeout=30)
    run = wait_for_state(installed, "interrupted")
    assert installed.content() == before

    supervise(
        model,
        "Go on with it",
        script(
            tool("wait_run", runId=run),
            tool("inspect_run", runId=run, what="diff"),
            *resume_and_wait(run),
        ),
    )
    installed.session("Go on with it")
    waited, diff, resumed, done = answers(model, "Go on with it")
    assert waited["state"] == "interrupted" and "resume" in waited["next"]
    assert "+    return a + b" in diff["text"]
    assert not resumed.failed
    assert (done["state"], done["verdict"], done["attempts"]) == ("done", "verified", 2)
    assert installed.content() == {**before, "src/calc.py": RIGHT}


@pytest.mark.long
def test_nothing_is_applied_in_the_grace_time_after_the_session_ended(
    installed: Installed, model: ScriptedModel
) -> None:
    policy(installed, "[deadlines]\nowner_grace_seconds = 2\n")
    before = installed.content()
    at_work, ended = threading.Event(), threading.Event()

    def noticed(_: Request) -> Step:
        at_work.set()
        return stall(ended)

    supervise(model, GO, script(tool("delegate_task", **DELEGATE)))
    model.on(TASK, workers.write("src/calc.py", RIGHT), noticed, workers.report())
    with installed.started_session(GO) as session:
        assert at_work.wait(60)
        session.kill()
    wait_until_nobody_owns_it(installed)
    ended.set()
    run = wait_for_state(installed, "interrupted")
    assert installed.content() == before

    supervise(model, "Go on with it", script(*resume_and_wait(run)))
    installed.session("Go on with it")
    done = answers(model, "Go on with it")[-1]
    assert (done["state"], done["verdict"], done["integration"]) == ("done", "verified", "applied")
    assert done.get("attempts") is None
    assert installed.content() == {**before, "src/calc.py": RIGHT}


@pytest.mark.long
def test_with_nothing_built_the_first_call_builds_from_the_registries_and_is_served(
    codex_binary: Path, model: ScriptedModel, test_root: Path
) -> None:
    installed = install(codex_binary, model, test_root, built=False)
    supervise(model, GO, script(TOOL_NAMES, tool("delegate_task", **DELEGATE)))
    model.on(TASK, *mending())
    installed.session(GO)
    names, done = told(requests_of(model, GO)[-1])
    assert "mcp__baton__delegate_task" in names
    assert done["structuredContent"]["verdict"] == "verified"
    assert installed.content() == {**PROJECT, "src/calc.py": RIGHT}


def test_what_codex_copies_is_small_and_complete(installed: Installed) -> None:
    assert 0 < size_of(installed.bundle) < 8_000_000
    names = {str(path.relative_to(installed.bundle)) for path in installed.bundle.rglob("*")}
    assert {"scripts/serve.py", "policy/policy.toml", "server/baton/engine/runner.py"} <= names


@pytest.mark.long
def test_a_clean_clone_plays_the_demonstration_with_an_empty_home_and_stays_small(
    codex_binary: Path, model: ScriptedModel, test_root: Path
) -> None:
    checkout = files_of_a_clone(test_root / "checkout")
    home = test_root / "empty"
    home.mkdir()
    foreign = ("CODEX_HOME", "BATON_STATE")
    env = {name: value for name, value in os.environ.items() if name not in foreign} | {"HOME": str(home)}
    played = subprocess.run(
        ["sh", checkout / "scripts" / "demo.sh"],
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert played.returncode == 0, played.stderr
    assert "SIMULATED" in played.stdout
    for seen in ("caught:", "prevented:", "verified on the tree", "the total is right"):
        assert seen in played.stdout
    installed = install(codex_binary, model, test_root / "codex", checkout=checkout)
    assert 0 < size_of(installed.bundle) < 8_000_000


def wait_until_nobody_owns_it(installed: Installed, seconds: float = 30.0) -> None:
    """Return when the server of the session that started the only run has ended."""
    (lock,) = (installed.state / "locks").glob("owner-*.lock")
    until = time.monotonic() + seconds
    while is_held(lock):
        assert time.monotonic() < until, "the server outlives its session"
        threading.Event().wait(0.02)
