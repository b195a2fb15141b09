"""A few of what the scripts of this folder do hundreds of times, and, with `long`, a good part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos._kill import Outcome
from chaos._machine import one_machine, throw_away_folder
from chaos.batch_kills import BatchKill
from chaos.edits import Edits, Round
from chaos.pool_kills import run_kills as run_pool_kills
from chaos.run_kills import run_kills
from chaos.sessions import play
from real_codex import real_codex


def quiet(_: Outcome) -> None:
    """The faults are in the assertion."""


@pytest.mark.codex
@pytest.mark.parametrize("kills", [3, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_a_kill_at_any_step_loses_nothing_and_the_run_comes_to_the_same_end(kills: int) -> None:
    outcomes = run_kills(kills, f"test {kills}", 2, quiet)
    assert len(outcomes) == kills
    assert [str(outcome) + outcome.log for outcome in outcomes if not outcome.clean] == []


@pytest.mark.codex
@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_no_kill_makes_a_pool_lose_a_job_or_do_it_twice(kills: int) -> None:
    tally, _ = run_pool_kills(kills, f"test {kills}", max(16, 2 * kills), 2)
    assert sum(tally.killed.values()) == kills
    assert (tally.double_writers, tally.lost, tally.repeated, tally.orphans) == ([], [], [], [])


def rounds_of_edits(rounds: int, seed: str) -> list[Round]:
    with one_machine(Path("codex-is-not-used")) as (machine, model):
        edits = Edits(machine, model, seed, real=0)
        return [edits.round(number) for number in range(1, rounds + 1)]


@pytest.mark.parametrize(
    "rounds", [5, pytest.param(150, marks=[pytest.mark.long, pytest.mark.timeout(1200)])]
)
def test_no_edit_is_lost_while_results_are_brought_in(rounds: int) -> None:
    found = rounds_of_edits(rounds, f"test {rounds}")
    assert [one for one in found if not one.clean] == []
    assert {"applied"} <= {one.outcome for one in found}


@pytest.mark.codex
@pytest.mark.long
def test_no_edit_is_lost_during_whole_runs_with_the_real_codex() -> None:
    with one_machine(real_codex()) as (machine, model):
        edits = Edits(machine, model, "real", real=1)
        found = [edits.round(number) for number in range(1, 7)]
    assert [one for one in found if not one.clean] == []


@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_of_two_sessions_that_land_at_once_no_update_is_lost(rounds: int) -> None:
    with throw_away_folder("s-") as root:
        played = play(rounds, "test", root, show=False)
    assert len(played) == rounds
    assert [one for one in played if not one.clean] == []


@pytest.mark.codex
@pytest.mark.parametrize("kills", [pytest.param(40, marks=[pytest.mark.long, pytest.mark.timeout(1200)])])
def test_a_kill_at_any_step_of_a_batch_loses_nothing_and_it_comes_to_the_same_end(kills: int) -> None:
    outcomes = run_kills(kills, f"batch {kills}", 2, quiet, kind=BatchKill)
    assert len(outcomes) == kills
    assert [str(outcome) + outcome.log for outcome in outcomes if not outcome.clean] == []
