"""Every way in which a turn can fail, driven through the real Codex, is told apart."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from baton.codex.brief import parse_claim
from baton.codex.failures import classify, retry_after
from baton.codex.turn import Deadlines, TurnOutcome, TurnStatus
from baton.contract.claim import ClaimStatus
from baton.contract.states import FailureClass
from baton.simulate import script, workers
from baton.simulate.home import simulated_provider
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import FailStream, Step
from codex.workers_bench import Bench, closed_port

NOON = datetime(2026, 3, 31, 12, 0, 30, tzinfo=UTC)

INVALID = {"error": {"message": "Invalid schema for response_format", "type": "invalid_request_error"}}
NOT_FOR_PLAN = {"error": {"message": "The 'x' model is not supported with this account.", "type": "other"}}

TABLE: dict[str, tuple[FailureClass, Step]] = {
    "unknown model": (FailureClass.UNKNOWN_MODEL, script.unknown_model("gpt-0")),
    "model not in the plan": (FailureClass.UNKNOWN_MODEL, script.fail(400, NOT_FOR_PLAN)),
    "auth 401": (FailureClass.AUTH, script.fail(401)),
    "auth 403": (FailureClass.AUTH, script.fail(403)),
    "rate limit": (FailureClass.RATE_LIMIT, script.rate_limited()),
    "rate limit with a wait": (FailureClass.RATE_LIMIT, script.rate_limited(0.2)),
    "rate limit in the stream": (
        FailureClass.RATE_LIMIT,
        FailStream("rate_limit_exceeded", "Rate limit reached. Please try again in 1.25s."),
    ),
    "usage limit": (FailureClass.USAGE_LIMIT, script.usage_limit()),
    "usage limit until": (FailureClass.USAGE_LIMIT, script.usage_limit(int(time.time()) + 7200)),
    "usage limit for days": (FailureClass.USAGE_LIMIT, script.usage_limit(int(time.time()) + 3 * 86400)),
    "quota": (FailureClass.USAGE_LIMIT, FailStream("insufficient_quota", "You exceeded your current quota")),
    "context overflow": (FailureClass.CONTEXT_OVERFLOW, script.context_overflow()),
    "overloaded": (FailureClass.OVERLOADED, script.overloaded()),
    "internal error": (FailureClass.OVERLOADED, script.fail(500)),
    "bad gateway": (FailureClass.OVERLOADED, script.fail(502, "bad gateway")),
    "dropped connection": (FailureClass.NETWORK, script.drop_connection()),
    "bad request": (FailureClass.BAD_REQUEST, script.fail(400, INVALID)),
    "payment required": (FailureClass.USAGE_LIMIT, script.fail(402, {"error": {"message": "No credit."}})),
    "method not allowed": (FailureClass.BAD_REQUEST, script.fail(405)),
    "conflict": (FailureClass.OTHER, script.fail(409, {"error": {"message": "Not now."}})),
    "withheld": (FailureClass.OTHER, FailStream("cyber_policy", "The answer was withheld.")),
    "refused prompt": (FailureClass.BAD_REQUEST, FailStream("invalid_prompt", "Invalid prompt: policy")),
}


@pytest.mark.codex
@pytest.mark.anyio
async def test_every_failure_of_the_service_has_its_class(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    for name, (_, step) in TABLE.items():
        model.on(f"<{name}>", step)
    async with await bench.server() as server:
        extra = _impatient(model.port)
        threads = {name: await bench.thread(server, extra=extra) for name in TABLE}
        turns = (thread.run_turn(f"<{name}>") for name, thread in threads.items())
        outcomes = dict(zip(TABLE, await asyncio.gather(*turns), strict=True))
    assert {name: _class(outcome) for name, outcome in outcomes.items()} == {
        name: expected for name, (expected, _) in TABLE.items()
    }
    assert {outcome.status for outcome in outcomes.values()} == {TurnStatus.FAILED}
    waits = {name: found.failure.retry_after_seconds for name, found in outcomes.items() if found.failure}
    assert waits["rate limit in the stream"] == 1.25
    until, days = waits["usage limit until"], waits["usage limit for days"]
    # The time named was two hours from when the tests were collected.
    assert until is not None and 3600 < until <= 7260
    assert days is not None and 3 * 86400 - 3600 < days < 3 * 86400 + 200
    assert waits["usage limit"] is None
    assert {outcome.usage.total_tokens for outcome in outcomes.values()} == {None}


@pytest.mark.codex
@pytest.mark.anyio
async def test_a_network_that_is_gone_fails_instead_of_waiting_for_ever(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    async with await bench.server() as server:
        with closed_port() as port:
            thread = await bench.thread(server, extra=_impatient(port))
            outcome = await thread.run_turn("hello", deadlines=Deadlines(idle=60))
    assert (outcome.status, _class(outcome)) == (TurnStatus.FAILED, FailureClass.NETWORK)
    assert model.requests == ()


@pytest.mark.codex
@pytest.mark.anyio
async def test_reports_that_are_none_end_as_completed_turns_without_a_claim(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    model.on("PROSE", *workers.malformed_report({"src/a": "1"}))
    model.on("IDLE", *workers.idle_answer())
    model.on("BLOCKED", *workers.blocked("Which one?"))
    async with await bench.server() as server:
        threads = {name: await bench.thread(server) for name in ("PROSE", "IDLE", "BLOCKED")}
        outcomes = [await thread.run_turn(name) for name, thread in threads.items()]
    reports = [parse_claim(outcome.final_message) for outcome in outcomes]
    assert {outcome.status for outcome in outcomes} == {TurnStatus.COMPLETED}
    assert [report.claim is None for report in reports] == [True, True, False]
    assert reports[1].malformed == workers.IDLE_ANSWER
    assert reports[2].claim is not None and reports[2].claim.status is ClaimStatus.BLOCKED


def _impatient(port: int) -> dict[str, object]:
    """The scripted provider with few retries, only to save time."""
    provider = {**simulated_provider(port), "request_max_retries": 1, "stream_max_retries": 1}
    return {"model_providers": {"sim": provider}}


def _class(outcome: TurnOutcome) -> FailureClass | None:
    return outcome.failure.failure_class if outcome.failure else None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 1.5s.", 1.5),
        ("try again in 250ms", 0.25),
        ("Try again in 1h2m3s", 3723.0),
        ("please try again in 2 days 3 hours", 183600.0),
        ("retry after 20 seconds", 20.0),
        ("resets in 5 minutes and 30 seconds.", 330.0),
        ("or try again at 12:59 PM.", 59 * 60 + 30),
        ("or try again at 12:00 PM.", 30.0),
        ("or try again at 1:08 AM.", 13 * 3600 + 8 * 60 + 30),
        ("or try again at Apr 3rd, 2026 1:08 AM.", 2 * 86400 + 13 * 3600 + 8 * 60 + 30),
        ("try again at 2026-03-31T12:01:00Z", 30.0),
        ("try again at 2026-03-31T11:00:00+00:00", 0.0),
        ("try again later", None),
        ("try again in a while", None),
        ("try again at Feb 31st, 2026 1:08 AM", None),
        ("worked for 5s, then failed", None),
    ],
)
def test_the_wait_that_a_message_states_is_read(text: str, seconds: float | None) -> None:
    assert retry_after(text, NOON) == seconds


@pytest.mark.parametrize(
    ("info", "message", "expected"),
    [
        ("modelNotFound", "", FailureClass.UNKNOWN_MODEL),
        ("unauthorized", "", FailureClass.AUTH),
        ("rateLimitExceeded", "", FailureClass.RATE_LIMIT),
        ("usageLimitExceeded", "Rate limit", FailureClass.USAGE_LIMIT),
        ("sessionBudgetExceeded", "", FailureClass.USAGE_LIMIT),
        ("serverOverloaded", "", FailureClass.OVERLOADED),
        ("badRequest", "", FailureClass.BAD_REQUEST),
        ({"httpConnectionFailed": {"httpStatusCode": 429}}, "", FailureClass.RATE_LIMIT),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "", FailureClass.NETWORK),
        ({"responseStreamDisconnected": {}}, "", FailureClass.NETWORK),
        ({"somethingNew": {"httpStatusCode": 401}}, "", FailureClass.AUTH),
        ("other", "exceeded retry limit, last status: 429 Too Many Requests", FailureClass.RATE_LIMIT),
        ("other", "failed to refresh token: log in again", FailureClass.AUTH),
        ("somethingNew", "never seen", FailureClass.OTHER),
        ({}, "", FailureClass.OTHER),
        (None, "", FailureClass.OTHER),
        (7, None, FailureClass.OTHER),
    ],
)
def test_what_codex_says_has_a_class(info: object, message: object, expected: FailureClass) -> None:
    assert classify({"message": message, "codexErrorInfo": info}).failure_class is expected


def test_a_failure_without_any_word_still_has_a_message() -> None:
    assert classify(None).message
    assert len(classify({"message": "x" * 100_000}).message) < 10_000


def test_a_time_of_day_that_has_just_passed_is_not_tomorrow() -> None:
    assert retry_after("try again at 11:59 AM", NOON) == 0.0
    assert retry_after("try again at 10:00 AM", NOON) == timedelta(hours=22).total_seconds() + 30
