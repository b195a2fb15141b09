"""`baton usage`: sums by name, and what is not known is never a number."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.contract.states import Verdict
from baton.engine.spending_over_time import merged
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from cli.conftest import Run
from cli.ledgers import add_run, end, finish, start

RUN, OTHER, THREAD = "rabcdefgh", "rbcdefghi", "0198aaaa-bbbb-7ccc-8ddd-eeeeffff0000"

PRICES = """
[prices."gpt-5.6-luna"]
input = 1.0
cached_input = 0.1
output = 10.0
"""


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open(StateFolder.find()) as opened:
        yield opened


def _usage(run: Run, *arguments: str) -> dict[str, Any]:
    done = run("usage", "--json", *arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def _delegated(
    ledger: Ledger, run_id: str, *, second: int | None = 2_000_000, threads: tuple[str, ...] = ()
) -> None:
    """Two tasks: a verified one of half a million tokens, and one that failed."""
    add_run(ledger, run_id, ["good", "bad"], workspace=f"/home/person/{run_id}")
    ledger.update_run(run_id, options={"routes": {}, "supervisors": [*threads]})
    start(ledger, run_id, "good")
    finish(ledger, run_id, "good", tokens=500_000)
    start(ledger, run_id, "bad")
    finish(ledger, run_id, "bad", Verdict.FAILED, tokens=second)
    end(ledger, run_id)


def test_sums_go_by_model_tier_role_and_repository(ledger: Ledger, run: Run) -> None:
    _delegated(ledger, RUN)
    _delegated(ledger, OTHER, second=500_000)
    workers = _usage(run)["workers"]
    total = workers["total"]
    assert (total["count"], total["tasks"], total["verifiedTasks"]) == (4, 4, 2)
    assert total["usage"]["totalTokens"] == 3_500_000
    assert total["verifiedPerMillionTokens"] == 0.571
    assert [(row["name"], row["verifiedPerMillionTokens"]) for row in workers["byRepository"]] == [
        (f"/home/person/{RUN}", 0.4),
        (f"/home/person/{OTHER}", 1.0),
    ]
    assert [row["name"] for row in workers["byModel"]] == ["gpt-5.6-luna"]
    assert [row["name"] for row in workers["byTier"]] == [None]


def test_what_is_unknown_is_null_and_said_to_be_unknown(ledger: Ledger, run: Run) -> None:
    _delegated(ledger, RUN, second=None)
    found = _usage(run)
    total = found["workers"]["total"]
    assert (total["unknown"], total["usage"]["totalTokens"]) == (1, 500_000)
    assert (total["verifiedPerMillionTokens"], total["cost"]) == (None, None)
    assert total["usage"]["outputTokens"] is None
    assert found["supervisors"] == {"byModel": [], "byRepository": []}
    told = run("usage").stdout
    assert "500.0k+ tokens" in told
    assert "unknown: no session said which it was" in told
    row = next(line for line in told.splitlines() if line.startswith("  gpt-5.6-luna"))
    assert row.split() == ["gpt-5.6-luna", "2", "500.0k+", "unknown", "unknown", "1/2", "unknown"]


def test_nothing_delegated_is_said_in_words_and_null(run: Run) -> None:
    assert run("usage").stdout == "nothing was delegated in the last 30 days\n"
    assert _usage(run)["workers"]["total"] is None


def test_work_before_the_days_asked_for_does_not_count(ledger: Ledger, run: Run) -> None:
    _delegated(ledger, RUN)
    with ledger.db.transaction() as db:
        db.execute("UPDATE attempts SET started_at = ?", [time.time() - 3 * 86_400])
    assert _usage(run, "--days", "2")["workers"]["total"] is None
    assert _usage(run, "--days", "4")["workers"]["total"]["count"] == 2


def _rollout(home: Path, at: float, spent: int, total: int) -> str:
    usage = {
        "input_tokens": spent,
        "cached_input_tokens": 0,
        "output_tokens": 0,
        "reasoning_output_tokens": 0,
    }
    whole = {**usage, "input_tokens": total}
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03d}Z"
    info = {"total_token_usage": whole, "last_token_usage": usage}
    return json.dumps(
        {"timestamp": stamp, "type": "event_msg", "payload": {"type": "token_count", "info": info}}
    )


def test_a_supervisor_of_two_runs_at_once_is_counted_once(ledger: Ledger, run: Run, own_home: Path) -> None:
    before = time.time() - 10
    for run_id in (RUN, OTHER):
        _delegated(ledger, run_id, threads=(THREAD,))
        with ledger.db.transaction() as db:
            db.execute("UPDATE runs SET created_at = ?, workspace = ?", [before, b"/home/person/one"])
    turn = json.dumps(
        {
            "timestamp": "2020-01-01T00:00:00Z",
            "type": "turn_context",
            "payload": {"turn_id": "t", "model": "gpt-5.6-luna"},
        }
    )
    folder = own_home / ".codex" / "sessions" / "2026" / "01" / "01"
    folder.mkdir(parents=True)
    lines = [turn, _rollout(own_home, before - 60, 1000, 1000), _rollout(own_home, before + 5, 300, 1300)]
    (folder / f"rollout-2026-01-01T00-00-00-{THREAD}.jsonl").write_text("\n".join(lines) + "\n")
    policy = own_home / ".codex" / "baton"
    policy.mkdir()
    (policy / "policy.toml").write_text(PRICES)
    rows = _usage(run)["supervisors"]
    assert [(row["name"], row["usage"]["totalTokens"]) for row in rows["byModel"]] == [("gpt-5.6-luna", 300)]
    assert rows["byModel"][0]["cost"] == pytest.approx(0.0003)
    assert [(row["name"], row["count"]) for row in rows["byRepository"]] == [("/home/person/one", 1)]


def test_prices_that_cannot_be_read_are_said_and_not_taken_for_none(
    ledger: Ledger, run: Run, own_home: Path
) -> None:
    _delegated(ledger, RUN)
    policy = own_home / ".codex" / "baton"
    policy.mkdir()
    (policy / "policy.toml").write_text("[prices\n")
    done = run("usage")
    assert done.exit_code == 0
    assert done.stderr.startswith("costs are unknown: ") and "policy.toml" in done.stderr
    found = json.loads(run("usage", "--json").stdout)
    assert "policy.toml" in found["pricesFault"]
    assert found["workers"]["total"]["usage"]["totalTokens"] == 2_500_000


def test_spans_that_meet_become_one() -> None:
    assert merged([(5, 6), (1, 3), (2, 4), (4, 4.5)]) == [(1, 4.5), (5, 6)]
    assert merged([]) == []
