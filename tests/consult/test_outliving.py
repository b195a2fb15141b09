"""A consultation outlives whoever waits for it; no end of a process loses or repeats what was paid for."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import anyio
import pytest

from baton.consult import launch
from baton.consult.launch import recover_consultations
from baton.contract.base import parse
from baton.contract.consult import ConsultCall
from baton.contract.errors import NotAllowed, WrongState
from baton.engine.house import House
from baton.ledger.locks import FileLock, is_held
from baton.process.tree import processes_with_marker
from consult import scripted
from consult.conftest import Desk, scripted_question
from consult.waiting import until
from files_with import files_with

CLAUDE = {"targets": ["claude"]}


def _pids(began: Path) -> list[int]:
    until(lambda: began.exists() and began.read_text().endswith("\n"))
    return [int(pid) for pid in began.read_text().split()]


def _asker(name: str) -> int:
    """The process that asks for a consultation: the first of those that belong to it."""
    found = processes_with_marker("BATON_RUN", name)
    return min(found, key=lambda process: process.start_time).pid


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


def test_answer_that_comes_after_the_wait_is_there_for_the_next_call(desk: Desk, test_root: Path) -> None:
    gate = test_root / "gate"
    told = desk.script({"gate": str(gate), "answer": "Late."}, waitSeconds=0, **CLAUDE)
    name = told["consultationId"]
    assert told["state"] == "working" and told["next"] == f"records wait {name}"
    assert told["answers"][0]["state"] in ("queued", "asking")
    gate.touch()
    later = desk.records("wait", id=name)
    assert (later["state"], later["answers"][0]["answer"]) == ("answered", "Late.")


def test_client_that_gives_up_ends_only_the_waiting(desk: Desk, test_root: Path) -> None:
    began, gate = test_root / "began", test_root / "gate"
    question = scripted_question({"began": str(began), "gate": str(gate)})
    call = parse(ConsultCall, {"question": question, **CLAUDE}, "consult")

    async def give_up() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(desk.service().consult, call, desk.session)
            while not began.exists():
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    anyio.run(give_up)
    gate.touch()
    (consultation,) = desk.house.ledger.consultations()
    assert desk.records("wait", id=consultation.consultation_id)["state"] == "answered"


def test_turn_is_written_before_the_program_starts(desk: Desk, test_root: Path) -> None:
    seen = []

    def not_started(house: House, consultation_id: str, lock: FileLock) -> None:
        turns = house.ledger.consult_turns(consultation_id)
        kept = {one.name for one in house.ledger.consult_artifacts(consultation_id)}
        seen.append((turns[0].state.value, turns[0].question, kept))
        lock.release()

    service = desk.service()
    service._start = not_started
    call = parse(ConsultCall, {"question": "Why?", "waitSeconds": 0, **CLAUDE}, "consult")
    anyio.run(service.consult, call, desk.session)
    assert seen[0] == ("queued", "Why?", {"prompt"})


def test_session_killed_before_the_start_leaves_a_question_that_is_asked_once(
    desk: Desk, test_root: Path
) -> None:
    began = test_root / "began"
    service = desk.service()
    service._start = lambda house, name, lock: lock.release()
    question = scripted_question({"began": str(began), "answer": "After all."})
    call = parse(ConsultCall, {"question": question, "waitSeconds": 0, **CLAUDE}, "consult")
    name = anyio.run(service.consult, call, desk.session)["consultationId"]
    told = desk.records("wait", id=name)
    assert told["answers"][0]["answer"] == "After all."
    assert len(_pids(began)) == 1


def test_question_that_was_found_too_late_is_not_asked(
    desk: Desk, test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = test_root / "began"
    service = desk.service()
    service._start = lambda house, name, lock: lock.release()
    question = scripted_question({"began": str(began)})
    call = parse(ConsultCall, {"question": question, "waitSeconds": 0, **CLAUDE}, "consult")
    name = anyio.run(service.consult, call, desk.session)["consultationId"]
    monkeypatch.setattr(launch, "FRESH_SECONDS", -1.0)
    recover_consultations(desk.house, scripted.start)
    (turn,) = desk.house.ledger.consult_turns(name)
    assert (turn.state.value, turn.detail) == ("interrupted", "nothing was sent")
    assert not began.exists()


def test_process_that_dies_before_asking_is_not_started_for_ever(desk: Desk) -> None:
    starts = []

    def dies(house: House, consultation_id: str, lock: FileLock) -> None:
        starts.append(consultation_id)
        lock.release()

    service = desk.service()
    service._start = dies
    call = parse(ConsultCall, {"question": "Why?", "waitSeconds": 30, **CLAUDE}, "consult")
    told = anyio.run(service.consult, call, desk.session)
    assert told["state"] == "interrupted"
    assert len(starts) <= launch.MAX_STARTS


def test_killed_process_takes_the_agent_with_it_and_nothing_is_asked_twice(
    desk: Desk, test_root: Path
) -> None:
    began = test_root / "began"
    does = {"began": str(began), "raw": "half a thought", "hang": True, "stubborn": True}
    name = desk.script(does, waitSeconds=0, **CLAUDE)["consultationId"]
    (agent,) = _pids(began)
    os.kill(_asker(name), signal.SIGKILL)
    told = desk.records("wait", id=name)
    until(lambda: _is_gone(agent))
    assert told["state"] == "interrupted" and "kept" in told["answers"][0]["detail"]
    assert "half a thought" in desk.records("read", id=name, what="raw")["text"]
    assert len(_pids(began)) == 1


def test_place_of_a_killed_process_is_given_to_the_next(desk: Desk, test_root: Path) -> None:
    desk.policy.write_text(desk.policy.read_text().replace("[consult]", "[consult]\nmax_parallel = 1", 1))
    began = test_root / "began"
    first = desk.script({"began": str(began), "hang": True}, waitSeconds=0, **CLAUDE)["consultationId"]
    _pids(began)
    second = desk.script({"answer": "My turn."}, waitSeconds=0, **CLAUDE)["consultationId"]
    os.kill(_asker(first), signal.SIGKILL)
    # Nobody but the process that waits for the place looks for dead ones here.
    until(lambda: desk.house.ledger.consultation(second).state.at_rest)
    assert desk.house.ledger.consult_turns(second)[0].state.value == "answered"
    assert desk.house.ledger.consult_turns(first)[0].state.value == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_process_told_to_stop_ends_its_agents_and_keeps_what_came(
    desk: Desk, test_root: Path, number: signal.Signals
) -> None:
    began = test_root / "began"
    does = {"began": str(began), "raw": "so far", "hang": True, "stubborn": True}
    name = desk.script(does, waitSeconds=0, **CLAUDE)["consultationId"]
    (agent,) = _pids(began)
    os.kill(_asker(name), number)
    until(lambda: desk.house.ledger.consultation(name).state.at_rest)
    assert _is_gone(agent)
    (turn,) = desk.house.ledger.consult_turns(name)
    assert turn.state.value == "interrupted" and number.name in (turn.detail or "")
    assert "so far" in desk.records("read", id=name, what="raw")["text"]


def test_cancel_ends_the_agent_and_keeps_what_came(desk: Desk, test_root: Path) -> None:
    began = test_root / "began"
    does = {"began": str(began), "raw": "so far", "hang": True, "stubborn": True}
    name = desk.script(does, waitSeconds=0, **CLAUDE)["consultationId"]
    (agent,) = _pids(began)
    assert "asked to stop" in desk.records("cancel", id=name)["did"]
    told = desk.records("wait", id=name)
    assert told["state"] == "cancelled" and told["answers"][0]["state"] == "cancelled"
    assert _is_gone(agent)
    assert "so far" in desk.records("read", id=name, what="raw")["text"]
    assert "at rest" in desk.records("cancel", id=name)["did"]


def test_cancelled_while_waiting_for_its_turn_sends_nothing(desk: Desk, test_root: Path) -> None:
    desk.policy.write_text(desk.policy.read_text().replace("[consult]", "[consult]\nmax_parallel = 1", 1))
    first, second = test_root / "first", test_root / "second"
    busy = desk.script({"began": str(first), "hang": True}, waitSeconds=0, **CLAUDE)["consultationId"]
    _pids(first)
    name = desk.script({"began": str(second)}, waitSeconds=0, **CLAUDE)["consultationId"]
    desk.records("cancel", id=name)
    told = desk.records("wait", id=name)
    assert told["state"] == "cancelled" and "nothing was sent" in told["answers"][0]["detail"]
    desk.records("cancel", id=busy)
    desk.records("wait", id=busy)
    assert not second.exists()


def test_one_agent_that_fails_does_not_take_the_others_with_it(desk: Desk, test_root: Path) -> None:
    # The settings of one agent are refused by its adapter.
    desk.add_policy("[consult.agents.codex.settings]\nbroken = true\n")
    told = desk.script({"answer": "Fine."}, targets=["claude", "codex"])
    assert told["state"] == "partly"
    by_agent = {answer["agent"]: answer for answer in told["answers"]}
    assert by_agent["claude"]["answer"] == "Fine."
    assert (by_agent["codex"]["failure"], by_agent["codex"]["answer"]) == ("bad_request", None)


def test_follow_up_while_at_work_is_refused(desk: Desk, test_root: Path) -> None:
    gate = test_root / "gate"
    name = desk.script({"gate": str(gate)}, waitSeconds=0, **CLAUDE)["consultationId"]
    with pytest.raises(WrongState, match="at work"):
        desk.consult(followUp=name)
    gate.touch()
    desk.records("wait", id=name)


def test_nothing_is_left_of_a_consultation_at_rest_but_its_records(desk: Desk) -> None:
    name = desk.consult(**CLAUDE)["consultationId"]
    lock = desk.house.state.consultation_lock(name)
    until(lambda: not is_held(lock))
    until(lambda: processes_with_marker("BATON_RUN", name) == ())
    raw = [one.name for one in (desk.house.state.root / "consult" / name).iterdir()]
    assert raw == ["claude"]


def test_consultation_with_kept_text_is_not_gone_on_with_once_none_is_to_be_kept(desk: Desk) -> None:
    name = desk.consult(**CLAUDE)["consultationId"]
    desk.policy.write_text(
        desk.policy.read_text().replace("[consult]", "[consult]\nstore_full_content = false", 1)
    )
    with pytest.raises(NotAllowed, match="store_full_content"):
        desk.consult("And why?", followUp=name)
    assert len(desk.house.ledger.consult_turns(name)) == 1


def test_text_that_is_not_to_be_kept_is_nowhere_once_its_hour_is_over(desk: Desk) -> None:
    desk.policy.write_text(
        desk.policy.read_text().replace("[consult]", "[consult]\nstore_full_content = false", 1)
    )
    does = {"answer": "A marvellous answer.", "errors": "a curious warning", "cost": 0.1}
    told = desk.script(does, context="peculiar material", answerSchema=None, **CLAUDE)
    name = told["consultationId"]
    assert told["answers"][0]["answer"] == "A marvellous answer."
    assert "A marvellous answer." in desk.records("read", id=name, what="answer")["text"]
    assert "peculiar material" in desk.records("read", id=name, what="prompt")["text"]
    words = ["marvellous", "curious", "peculiar", "Is it right"]
    root = desk.house.state.root
    for word in words:
        assert not [name for name in files_with(root, word) if name.startswith("baton.sqlite3")]
    assert list(desk.house.artifacts.all()) == []
    assert desk.records("search", query="marvellous") == {"hits": []}
    assert launch.remove_held(desk.house, time.time() + 3599) == 0
    assert launch.remove_held(desk.house, time.time() + 3601) == 1
    assert [files_with(root, word) for word in words] == [[]] * len(words)
    read = desk.records("read", id=name)
    assert read["answers"][0]["answer"] is None and read["answers"][0]["costUsd"] == 0.1
    assert json.dumps(desk.records("list")).count(name) == 1
