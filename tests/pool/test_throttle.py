"""What may run at once after what has happened: decided on a clock of our own."""

from __future__ import annotations

from typing import Any

from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.pool.throttle import WARM_UP_SECONDS, Throttle
from baton.pool.trouble import TREATMENTS, Evidence, backoff, may_repeat


class Clock:
    """Goes on only when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_throttle(clock: Clock, concurrency: int = 8, **fields: Any) -> Throttle:
    values: dict[str, Any] = {
        "clock": clock,
        "dice": lambda: 0.0,
        "backoff_seconds": 1.0,
        "pause_seconds": 600.0,
        "breaker_failures": 5,
        "warms_up": False,
    }
    return Throttle(concurrency, **{**values, **fields})


def failure(kind: FailureClass, after: float | None = None) -> TurnFailure:
    return TurnFailure(failure_class=kind, message=f"it was {kind.value}", retry_after_seconds=after)


def test_one_attempt_goes_ahead_until_it_is_answered() -> None:
    throttle = a_throttle(Clock(), warms_up=True)
    assert throttle.room(0) == 1
    throttle.started()
    assert throttle.room(1) == 0
    assert throttle.answered() is True
    assert throttle.room(1) == 7
    assert throttle.answered() is False


def test_a_first_attempt_that_is_long_in_answering_does_not_hold_up_the_others_for_ever() -> None:
    clock = Clock()
    throttle = a_throttle(clock, warms_up=True)
    throttle.started()
    assert throttle.wakes_at() == clock.now + WARM_UP_SECONDS
    clock.now += WARM_UP_SECONDS
    assert throttle.room(1) == 7


def test_after_a_failed_first_attempt_still_one_goes_ahead() -> None:
    throttle = a_throttle(Clock(), warms_up=True)
    throttle.started()
    throttle.failed(FailureClass.CRASH, failure(FailureClass.CRASH))
    assert throttle.room(0) == 1


def test_a_limit_pauses_everything_for_the_stated_time_and_halves_what_runs() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    throttle.failed(FailureClass.RATE_LIMIT, failure(FailureClass.RATE_LIMIT, 30.0))
    assert (throttle.room(0), throttle.limit, throttle.wakes_at()) == (0, 4, clock.now + 30.0)
    clock.now += 29.9
    assert throttle.room(0) == 0
    clock.now += 0.2
    assert throttle.room(0) == 4


def test_of_a_wave_that_is_refused_together_one_refusal_counts_and_the_longest_wait_holds() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    for after in (10.0, 40.0, 20.0):
        throttle.failed(FailureClass.RATE_LIMIT, failure(FailureClass.RATE_LIMIT, after))
    assert throttle.limit == 4
    assert throttle.paused_until == clock.now + 40.0


def test_without_a_stated_wait_pauses_grow_and_a_success_ends_the_growth() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    waits = []
    for _ in range(3):
        throttle.failed(FailureClass.OVERLOADED, failure(FailureClass.OVERLOADED))
        assert throttle.paused_until is not None
        waits.append(throttle.paused_until - clock.now)
        clock.now = throttle.paused_until
        assert throttle.room(0) > 0
    assert waits == [1.0, 2.0, 4.0]
    throttle.succeeded()
    throttle.failed(FailureClass.OVERLOADED, failure(FailureClass.OVERLOADED))
    assert throttle.paused_until == clock.now + 1.0


def test_the_dice_only_ever_lengthen_a_wait() -> None:
    clock = Clock()
    throttle = a_throttle(clock, dice=lambda: 1.0)
    throttle.failed(FailureClass.RATE_LIMIT, failure(FailureClass.RATE_LIMIT, 10.0))
    assert throttle.paused_until == clock.now + 11.0


def test_a_round_of_successes_lets_one_more_run() -> None:
    throttle = a_throttle(Clock())
    throttle.limit = 2
    throttle.succeeded()
    assert throttle.limit == 2
    throttle.succeeded()
    assert throttle.limit == 3
    for _ in range(100):
        throttle.succeeded()
    assert throttle.limit == 8


def test_a_service_that_refuses_for_ever_stops_the_pool() -> None:
    clock = Clock()
    throttle = a_throttle(clock, pause_seconds=5.0)
    for _ in range(50):
        throttle.failed(FailureClass.RATE_LIMIT, failure(FailureClass.RATE_LIMIT))
        clock.now = throttle.paused_until or clock.now
        throttle.room(0)
        if throttle.stopping:
            break
    assert throttle.stopping is not None
    assert "12 times in a row" in throttle.stopping.why


def test_a_wait_longer_than_is_waited_for_stops_with_the_time_to_come_back() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    throttle.failed(FailureClass.RATE_LIMIT, failure(FailureClass.RATE_LIMIT, 601.0))
    assert throttle.stopping is not None and throttle.stopping.back_at == clock.now + 601.0
    assert throttle.room(0) == 0


def test_a_usage_limit_stops_at_once_with_the_time_to_come_back() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    throttle.failed(FailureClass.USAGE_LIMIT, failure(FailureClass.USAGE_LIMIT, 7200.0))
    assert throttle.stopping is not None
    assert throttle.stopping.back_at == clock.now + 7200.0
    assert "usage limit" in throttle.stopping.why


def test_a_refused_login_stops_at_once_and_keeps_what_was_said() -> None:
    throttle = a_throttle(Clock())
    throttle.failed(FailureClass.AUTH, failure(FailureClass.AUTH))
    assert throttle.stopping is not None
    assert "it was auth" in throttle.stopping.why and "codex login" in throttle.stopping.why


def test_a_class_that_does_not_pass_stops_the_pool_when_it_comes_in_a_row() -> None:
    throttle = a_throttle(Clock())
    for _ in range(4):
        throttle.failed(FailureClass.UNKNOWN_MODEL, failure(FailureClass.UNKNOWN_MODEL))
    assert throttle.stopping is None
    throttle.failed(FailureClass.UNKNOWN_MODEL, failure(FailureClass.UNKNOWN_MODEL))
    assert throttle.stopping is not None and "5 attempts in a row" in throttle.stopping.why


def test_another_class_or_a_success_between_begins_the_row_anew() -> None:
    throttle = a_throttle(Clock())
    for _ in range(10):
        for _ in range(4):
            throttle.failed(FailureClass.UNKNOWN_MODEL, failure(FailureClass.UNKNOWN_MODEL))
        throttle.succeeded()
        throttle.failed(FailureClass.BAD_REQUEST, failure(FailureClass.BAD_REQUEST))
    assert throttle.stopping is None


def test_a_class_that_may_pass_opens_the_breaker_and_one_attempt_tries() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    for _ in range(5):
        throttle.failed(FailureClass.NETWORK, failure(FailureClass.NETWORK))
    assert throttle.breaker is not None and throttle.stopping is None
    assert throttle.room(0) == 0
    assert throttle.paused_until is not None
    clock.now = throttle.paused_until
    assert throttle.room(0) == 1
    throttle.succeeded()
    assert throttle.breaker is None
    assert throttle.room(0) == 8


def test_a_breaker_that_opens_again_and_again_stops_the_pool() -> None:
    clock = Clock()
    throttle = a_throttle(clock)
    for _ in range(5):
        throttle.failed(FailureClass.NETWORK, failure(FailureClass.NETWORK))
    pauses = []
    while throttle.stopping is None:
        assert throttle.paused_until is not None
        pauses.append(throttle.paused_until - clock.now)
        clock.now = throttle.paused_until
        assert throttle.room(0) == 1
        throttle.failed(FailureClass.NETWORK, failure(FailureClass.NETWORK))
    assert pauses == [5.0, 10.0, 20.0]


def test_what_only_one_job_has_to_blame_itself_for_opens_no_breaker() -> None:
    throttle = a_throttle(Clock())
    for _ in range(100):
        for evidence in Evidence:
            for _ in range(6):
                throttle.failed(evidence, None)
    assert throttle.stopping is None and throttle.breaker is None


def test_a_token_budget_counts_what_earlier_invocations_spent() -> None:
    throttle = a_throttle(Clock(), token_budget=100, tokens=60)
    throttle.spent(None)
    assert throttle.stopping is None
    throttle.spent(39)
    assert throttle.stopping is None
    throttle.spent(1)
    assert throttle.stopping is not None and "100 of 100 tokens" in throttle.stopping.why


def test_every_class_of_failure_has_its_treatment() -> None:
    assert set(TREATMENTS) == {*FailureClass, *Evidence}


def test_backoff_doubles_up_to_its_longest() -> None:
    assert [backoff(2.0, tries) for tries in (1, 2, 3, 4)] == [2.0, 4.0, 8.0, 16.0]
    assert backoff(2.0, 1000) == 300.0


def test_a_writer_is_repeated_only_when_it_says_so_or_has_done_nothing() -> None:
    assert may_repeat(writes=False, safe_retry=False, began=True)
    assert may_repeat(writes=True, safe_retry=True, began=True)
    assert may_repeat(writes=True, safe_retry=False, began=False)
    assert not may_repeat(writes=True, safe_retry=False, began=True)
