"""What a supervisor is told: short at once, and everything there on request, piece by piece."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from baton.contract.calls import InspectWhat
from baton.contract.errors import InvalidInput, NotFound
from baton.contract.states import Integration, Verdict
from baton.simulate import workers
from baton.simulate.script import shell
from baton.simulate.workers import report
from e2e.sim import Sim

pytestmark = pytest.mark.codex

FILES = 300
NOISE = 1_000_000
LONG = "a-rather-long-name-for-a-file-that-a-generator-might-have-made"

MAKE = f"cd src && for n in $(seq 1 {FILES}); do echo $n > {LONG}-$n.txt; done"
NOISY = f"yes 'it goes wrong here, and here' | head -c {NOISE}; echo THE END; exit 1\n"


@dataclass(frozen=True)
class Told:
    sim: Sim
    answer: dict[str, Any]

    @property
    def run_id(self) -> str:
        return str(self.answer["runId"])


@pytest.fixture(scope="module")
def clean(sim: Sim) -> Told:
    place = sim.workspace("clean", {"src/calc.py": "def add(a, b):\n    return a - b\n"})
    fixed = {"src/calc.py": "def add(a, b):\n    return a + b\n"}
    check = (
        "python3 -B -c 'import sys; sys.path.insert(0, \"src\"); from calc import add; assert add(2, 3) == 5'"
    )
    call = {
        "workspace": str(place.path),
        "objective": sim.script("clean", *workers.honest(fixed, [check])),
        "allowedFiles": ["src/"],
        "verificationCommands": [check],
        "waitSeconds": 100,
    }
    return Told(sim, sim.delegate(call))


@pytest.fixture(scope="module")
def large(sim: Sim) -> Told:
    place = sim.workspace("large", {"src/a": "a\n", "noisy.sh": NOISY})
    claim = report(summary="Made them all. " * 400, files=[f"src/{n}" for n in range(2000)])
    call = {
        "workspace": str(place.path),
        "objective": sim.script("large", shell(MAKE), claim, claim),
        "allowedFiles": ["src/"],
        "verificationCommands": ["sh noisy.sh", "sh noisy.sh again"],
        "waitSeconds": 100,
    }
    return Told(sim, sim.delegate(call))


def test_a_clean_result_is_told_in_700_bytes(clean: Told) -> None:
    assert (clean.answer["verdict"], clean.answer["integration"]) == (Verdict.VERIFIED, Integration.APPLIED)
    assert _size(clean.answer) <= 700
    assert clean.answer["evidence"]["changes"] == ["M src/calc.py"]


def test_a_result_with_hundreds_of_files_and_a_noisy_check_stays_short(large: Told) -> None:
    assert large.answer["verdict"] == Verdict.FAILED
    assert _size(large.answer) <= 8_000
    evidence = large.answer["evidence"]
    assert len(evidence["changes"]) + evidence["moreChanges"] == FILES
    assert evidence["checks"][0]["output"].endswith("THE END")


@pytest.mark.parametrize("what", list(InspectWhat))
def test_every_view_is_short_at_once(large: Told, what: InspectWhat) -> None:
    assert _size(large.sim.inspect(large.run_id, what)) <= 8_000


@pytest.mark.parametrize(
    "what", [InspectWhat.DIFF, InspectWhat.CHECKS, InspectWhat.REPORT, InspectWhat.TIMELINE]
)
def test_a_view_walked_to_its_end_is_the_whole(large: Told, what: InspectWhat) -> None:
    limit = 30_000 if what is InspectWhat.CHECKS else 200 if what is InspectWhat.TIMELINE else 997
    walked = _walk(large, what, limit)
    assert len(walked) > 2
    whole = "".join(walked)
    match what:
        case InspectWhat.DIFF:
            assert whole.count("\ndiff --git ") == FILES
            assert whole.startswith("# t1: git fetch ")
        case InspectWhat.CHECKS:
            assert len(whole) > 2 * NOISE
            assert whole.count("THE END") == 2
        case InspectWhat.REPORT:
            assert whole.count("Made them all.") >= 800
        case _:
            assert "run.admitted" in whole.splitlines()[0]
            assert "run.held" in whole.splitlines()[-1]


def test_events_walked_to_their_end_are_all_of_them_in_order(large: Told) -> None:
    seen = [
        json.loads(line)["seq"]
        for text in _walk(large, InspectWhat.EVENTS, 700)
        for line in text.splitlines()
    ]
    ledger = large.sim.service.house.ledger
    assert seen == list(range(1, ledger.last_seq(large.run_id) + 1))


def test_an_earlier_attempt_can_still_be_read(large: Told) -> None:
    first = large.sim.inspect(large.run_id, "report", attempt=1)["text"]
    assert "attempt 1: the worker's own words" in first
    with pytest.raises(NotFound, match="has no attempt 9; it has 2"):
        large.sim.inspect(large.run_id, "report", attempt=9)


def test_usage_names_each_attempt_with_its_model_and_all_its_tokens(large: Told) -> None:
    shown = large.sim.inspect(large.run_id, "usage")["tasks"]
    assert [(entry["attempt"], entry["model"]) for entry in shown] == [
        (1, large.answer["route"]["model"]),
        (2, large.answer["route"]["model"]),
    ]
    tokens = large.sim.model.usage
    assert [entry["usage"]["outputTokens"] for entry in shown] == [
        2 * tokens.output_tokens,
        tokens.output_tokens,
    ]


def test_a_handoff_has_what_another_session_needs(large: Told) -> None:
    handoff = large.sim.inspect(large.run_id, "handoff")
    assert handoff["workspace"] == large.sim.run(large.run_id).workspace
    assert handoff["base"] == large.sim.run(large.run_id).base_commit
    assert handoff["tasks"][0]["objective"] == "<large>"
    assert handoff["tasks"][0]["kept"].endswith("/t1/2")


def test_a_result_in_full_detail_is_short_as_well(sim: Sim, large: Told) -> None:
    call = {
        "workspace": large.sim.run(large.run_id).workspace,
        "objective": sim.script("in full", shell(MAKE), report(summary="All. " * 400)),
        "allowedFiles": ["src/"],
        "resultDetail": "full",
        "integrate": "hold",
        "waitSeconds": 100,
    }
    answer = sim.delegate(call)
    assert answer["verdict"] == Verdict.UNVERIFIED
    assert _size(answer) <= 8_000


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        ({"what": "diff", "offset": 10**9}, InvalidInput, "beyond the end"),
        ({"what": "report", "taskId": "t9"}, NotFound, "has no task 't9'; it has t1"),
        ({"what": "dif"}, InvalidInput, "what"),
        ({"what": "diff", "limit": 0}, InvalidInput, "limit"),
        ({"what": "diff", "ofset": 3}, InvalidInput, "did you mean 'offset'"),
    ],
)
def test_a_question_that_makes_no_sense_gets_one_line(
    clean: Told, arguments: dict[str, Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why) as caught:
        clean.sim.inspect(clean.run_id, **arguments)
    assert "\n" not in str(caught.value)


def test_a_run_that_nobody_knows_is_said(clean: Told) -> None:
    with pytest.raises(NotFound):
        clean.sim.inspect("rnothere0")
    with pytest.raises(NotFound):
        clean.sim.wait("rnothere0")
    with pytest.raises(NotFound):
        clean.sim.control("rnothere0", "cancel")


def _walk(told: Told, what: InspectWhat, limit: int) -> list[str]:
    parts, offset = [], 0
    while True:
        shown = told.sim.inspect(told.run_id, what, offset=offset, limit=limit)
        assert len(shown["text"].encode()) <= limit or what is InspectWhat.EVENTS
        parts.append(shown["text"])
        if "nextOffset" not in shown:
            return parts
        assert shown["nextOffset"] > offset
        offset = shown["nextOffset"]


def _size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False).encode())
