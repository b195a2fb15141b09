"""A worker that Codex does not start as asked gets no work, and the ladder says what follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.contract.states import FailureClass
from e2e import altered_codex
from e2e.sim import Sim

pytestmark = pytest.mark.codex


@pytest.fixture(scope="module")
def sim(codex_binary: Path, machine_root: Path) -> Iterator[Sim]:
    """A machine whose Codex can be altered."""
    (machine_root / "altered").mkdir()
    with Sim(
        machine_root / "machine", altered_codex.install(machine_root / "altered", codex_binary)
    ) as machine:
        yield machine


@pytest.mark.parametrize(
    ("how", "failure", "kinds", "decision"),
    [
        (
            altered_codex.SILENT,
            FailureClass.START_TIMEOUT,
            ["first", "fresh"],
            "start_timeout: stop: Codex did not start a worker, also after a recovery",
        ),
        (
            altered_codex.DEAF,
            FailureClass.START_TIMEOUT,
            ["first", "fresh"],
            "start_timeout: stop: Codex did not start a worker, also after a recovery",
        ),
        (
            altered_codex.OTHER_MODEL,
            FailureClass.ROUTE_MISMATCH,
            ["first"],
            "route_mismatch: stop: Codex started the worker on another model than was asked",
        ),
        (
            altered_codex.OTHER_PROFILE,
            FailureClass.SCOPE_NOT_ENFORCED,
            ["first"],
            "scope_not_enforced: stop: Codex did not take the sandbox that was asked for",
        ),
    ],
    ids=[altered_codex.SILENT, altered_codex.DEAF, altered_codex.OTHER_MODEL, altered_codex.OTHER_PROFILE],
)
def test_a_worker_that_is_not_started_as_asked_is_given_no_work(
    sim: Sim, how: str, failure: FailureClass, kinds: list[str], decision: str
) -> None:
    place = sim.workspace(how, {"a.txt": "a\n"})
    altered_codex.alter(Path(sim.env["BATON_CODEX_BIN"]), how)
    asked = {"workspace": str(place.path), "objective": f"<{how}>", "allowedFiles": ["a.txt"]}
    ladder = "[escalation]\nmax_steps = 3\nmax_waits = 3\n"
    with sim.policy(f"[deadlines]\nstart_seconds = 3\n{ladder}"):
        answer = sim.delegate({**asked, "verificationCommands": ["true"], "waitSeconds": 100})
    assert (answer["verdict"], answer["decision"]) == ("failed", decision)
    turn_failure = sim.result(answer["runId"]).evidence.turn_failure
    assert turn_failure is not None and turn_failure.failure_class is failure
    assert [attempt.kind for attempt in sim.attempts(answer["runId"])] == kinds
    assert sim.model.requests == ()
    assert answer["usage"] == {"in": None, "out": None}
    assert place.read("a.txt") == "a\n"
