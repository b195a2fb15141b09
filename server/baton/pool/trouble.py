"""What follows an attempt that did not succeed, by the class of what went wrong. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from baton.contract.states import FailureClass


class Evidence(StrEnum):
    """What is missing of a completed attempt: the other reasons why a job has not succeeded."""

    NO_MESSAGE = "no_message"
    """The turn completed without a final message."""
    SCHEMA = "schema"
    """The final message does not satisfy the output schema."""
    CHECK_FAILED = "check_failed"
    NOT_MERGED = "not_merged"
    """The isolated work was not verified, or could not be merged."""


Trouble = FailureClass | Evidence


@dataclass(frozen=True)
class Treatment:
    """How one class of trouble is treated."""

    again: bool
    """Whether trying the same job again may help; then up to `retries` times, if the job may be repeated."""
    pauses: bool = False
    """The whole pool waits, and goes on with fewer at once. Such a try does not count as a retry."""
    stops: bool = False
    """The pool stops at once: every other job would fare the same until somebody does something."""
    resumes: bool = False
    """The thread has kept what was done and can go on; else a retry is a new thread."""
    breaks: bool = True
    """Whether several in a row open the breaker; not where each job has only itself to blame."""
    probes: bool = False
    """What opens the breaker may pass by itself: after a pause one job tries, and its success closes it."""


_PASSING = Treatment(again=True, resumes=True, probes=True)
_LOST = Treatment(again=False)

TREATMENTS: dict[Trouble, Treatment] = {
    FailureClass.AUTH: Treatment(again=True, stops=True),
    FailureClass.USAGE_LIMIT: Treatment(again=True, stops=True, resumes=True),
    FailureClass.RATE_LIMIT: Treatment(again=True, pauses=True, resumes=True),
    FailureClass.OVERLOADED: Treatment(again=True, pauses=True, resumes=True),
    FailureClass.NETWORK: _PASSING,
    FailureClass.CRASH: _PASSING,
    FailureClass.START_TIMEOUT: _PASSING,
    FailureClass.IDLE_TIMEOUT: Treatment(again=True, resumes=True),
    FailureClass.TURN_TIMEOUT: Treatment(again=True, resumes=True),
    FailureClass.RUN_TIMEOUT: _LOST,
    FailureClass.OTHER: Treatment(again=True),
    FailureClass.UNKNOWN_MODEL: Treatment(again=False),
    FailureClass.SCOPE_NOT_ENFORCED: Treatment(again=False),
    FailureClass.ROUTE_MISMATCH: Treatment(again=False),
    FailureClass.BAD_REQUEST: _LOST,
    FailureClass.CONTEXT_OVERFLOW: Treatment(again=False, breaks=False),
    Evidence.NO_MESSAGE: Treatment(again=True, breaks=False),
    Evidence.SCHEMA: Treatment(again=True, breaks=False),
    Evidence.CHECK_FAILED: Treatment(again=False, breaks=False),
    Evidence.NOT_MERGED: Treatment(again=False, breaks=False),
}


def may_repeat(*, writes: bool, safe_retry: bool, began: bool) -> bool:
    """Whether a job may be started again by itself after an attempt: a writer only when it says so, or when
    the attempt is sure to have done nothing."""
    return not writes or safe_retry or not began


def backoff(first: float, tries: int, longest: float = 300.0) -> float:
    """Seconds before the next try after `tries` of them: doubled each time, at most `longest`."""
    return float(min(longest, first * 2 ** min(max(tries - 1, 0), 30)))
