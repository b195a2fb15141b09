"""The real Codex against the scripted model: each kind of step does what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from baton.contract.claim import Claim, ClaimStatus
from baton.simulate import workers
from baton.simulate.answer import TokenUsage
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import (
    Step,
    add_file,
    call,
    drop_connection,
    fail,
    javascript,
    reason,
    say,
    shell,
    slow,
    stall,
    together,
)
from simulate.driver import Exec

pytestmark = pytest.mark.codex

MODELS = ["gpt-5.6-luna", "gpt-5.5"]


@pytest.mark.parametrize("slug", MODELS)
def test_shell_and_patch_change_files_in_code_mode_and_out_of_it(
    model: ScriptedModel, run_exec: Callable[..., Exec], tmp_path: Path, slug: str
) -> None:
    model.on("MARK", shell("echo shelled > a.txt; exit 3"), add_file("b.txt", "patched\n"), say("finished"))
    done = run_exec("MARK it", slug)
    assert (done.exit_code, done.message) == (0, "finished")
    assert (tmp_path / "a.txt").read_text() == "shelled\n"
    assert (tmp_path / "b.txt").read_text() == "patched\n"
    last = model.requests[-1]
    assert last.code_mode is (slug != "gpt-5.5")
    assert last.outputs[0].exit_code == 3
    assert last.cwd == str(tmp_path)
    assert model.surprises == ()


def test_a_step_may_decide_from_earlier_outputs(model: ScriptedModel, run_exec: Callable[..., Exec]) -> None:
    def decide(request: Request) -> list[Step]:
        return [
            shell("echo again"),
            say("saw secret" if "secret-word" in request.last_output else "saw nothing"),
        ]

    model.on("MARK", shell("echo secret-word"), decide)
    assert run_exec("MARK").message == "saw secret"
    assert len(model.requests) == 3


def test_javascript_lists_the_tools_and_awaits_them(
    model: ScriptedModel, run_exec: Callable[..., Exec]
) -> None:
    model.on("MARK", javascript("text(ALL_TOOLS.map(t => t.name).join(' '))"), say("done"))
    run_exec("MARK")
    assert "exec_command" in model.requests[-1].last_output


def test_javascript_for_a_model_without_it_is_a_surprise(
    model: ScriptedModel, run_exec: Callable[..., Exec]
) -> None:
    model.on("MARK", javascript("text(1)"))
    assert run_exec("MARK", "gpt-5.5").exit_code == 1
    assert model.surprises == ("gpt-5.5 has no JavaScript tool",)


@pytest.mark.parametrize("slug", MODELS)
def test_other_tools_reasoning_and_parallel_calls_are_understood(
    model: ScriptedModel, run_exec: Callable[..., Exec], slug: str
) -> None:
    plan = {"plan": [{"step": "look", "status": "in_progress"}]}
    model.on(
        "MARK",
        reason("I look first.", together(shell("echo one"), shell("echo two"))),
        call("update_plan" if slug != "gpt-5.5" else "get_goal", plan if slug != "gpt-5.5" else {}),
        say({"answer": 1}),
    )
    done = run_exec("MARK", slug)
    assert json.loads(done.message) == {"answer": 1}
    texts = [output.text for output in model.requests[-1].outputs]
    assert len(texts) == 3
    assert "one" in texts[0] and "two" in texts[1]


def test_threads_are_bound_by_marker_and_keep_their_own_place(
    model: ScriptedModel, run_exec: Callable[..., Exec]
) -> None:
    model.on("ALPHA", say("for alpha"))
    model.on("BETA", say("for beta"))
    model.fallback(say("for anyone"))
    assert [run_exec(text).message for text in ("BETA ALPHA", "a BETA", "gamma")] == [
        "for alpha",
        "for beta",
        "for anyone",
    ]
    assert len({request.thread_id for request in model.requests}) == 3


def test_what_is_not_scripted_fails_loudly(model: ScriptedModel, run_exec: Callable[..., Exec]) -> None:
    model.on("MARK", shell("true"))
    assert run_exec("MARK").exit_code == 1
    assert "request 1 of thread" in model.surprises[0]


def test_usage_is_the_scripted_one_times_the_answers(
    codex_home: Path, run_exec: Callable[..., Exec], model: ScriptedModel
) -> None:
    model.usage = TokenUsage(1000, 100, 50, 10)
    model.on("MARK", shell("true"), say("done"))
    done = run_exec("MARK")
    usage = done.events[-1]["usage"]
    assert (usage["input_tokens"], usage["cached_input_tokens"]) == (2000, 200)
    assert (usage["output_tokens"], usage["reasoning_output_tokens"]) == (100, 20)
    assert model.answers_of(model.requests[0].thread_id) == 2


def test_failures_cover_retries_and_then_let_the_work_go_on(
    model: ScriptedModel, run_exec: Callable[..., Exec]
) -> None:
    model.on("MARK", fail(500, times=2), drop_connection(times=1), say("recovered"))
    done = run_exec("MARK")
    assert (done.exit_code, done.message) == (0, "recovered")
    assert len(model.requests) == 4


def test_silence_ends_when_released(model: ScriptedModel, run_exec: Callable[..., Exec]) -> None:
    released = threading.Event()
    model.on("MARK", stall(released), slow(0.1, say("late")))
    done: list[object] = []
    runner = threading.Thread(target=lambda: done.append(run_exec("MARK")))
    runner.start()
    model.wait_for(lambda request: "MARK" in request.prompt)
    assert not done
    released.set()
    runner.join(60)
    assert done[0].message == "late"


@pytest.mark.parametrize("slug", MODELS)
def test_an_honest_worker_reports_what_its_checks_said(
    model: ScriptedModel, run_exec: Callable[..., Exec], tmp_path: Path, slug: str
) -> None:
    model.on("GOOD", *workers.honest({"src/it's.txt": "x\n"}, ["grep -q x src/*.txt"]))
    model.on("BAD", *workers.honest({"src/y.txt": "y\n"}, ["true", "grep -q x src/y.txt"]))
    good = Claim.model_validate_json(run_exec("GOOD", slug).message)
    bad = Claim.model_validate_json(run_exec("BAD", slug).message)
    assert (tmp_path / "src" / "it's.txt").read_text() == "x\n"
    assert (good.status, bad.status) == (ClaimStatus.PASS, ClaimStatus.FAILED)


def test_a_false_pass_an_escape_and_bad_reports_are_what_they_say(
    model: ScriptedModel, run_exec: Callable[..., Exec], tmp_path: Path
) -> None:
    model.on("LIE", *workers.false_pass({"a": "1"}, ["false"]))
    model.on("ESCAPE", *workers.escaping({"b": "1"}, "other/c"))
    model.on("BLOCKED", *workers.blocked("Which colour?"))
    model.on("IDLE", *workers.idle_answer())
    model.on("PROSE", *workers.malformed_report({"d": "1"}))
    assert Claim.model_validate_json(run_exec("LIE").message).status is ClaimStatus.PASS
    assert Claim.model_validate_json(run_exec("ESCAPE").message).files_changed == ["b"]
    assert Claim.model_validate_json(run_exec("BLOCKED").message).blockers == ["Which colour?"]
    assert run_exec("IDLE").message == workers.IDLE_ANSWER
    assert run_exec("PROSE").message == "All done, have a look!"
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "other", "d"}
