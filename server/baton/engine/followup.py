"""What follows an attempt: one repair, one recovery, or nothing. A pure function of what was observed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from baton.contract.claim import ClaimStatus
from baton.contract.evidence import AttemptResult, CheckStatus
from baton.contract.states import FailureClass
from baton.engine.plan import PlannedRoute


class AttemptKind(StrEnum):
    """Why there is an attempt."""

    FIRST = "first"
    REPAIR = "repair"
    """A check failed on a claimed PASS; the same thread is told what failed."""
    RECOVERY = "recovery"
    """The turn was cut short; the same thread goes on in the same tree."""
    FRESH = "fresh"
    """The thread is lost; a new one goes on in the same tree, and is told so."""
    ESCALATION = "escalation"
    """A higher effort, tier or another model; a new thread goes on in the same tree."""
    WAIT = "wait"
    """The service could not serve; after a wait the same again."""
    CONTINUE = "continue"
    """The supervisor asks for one more turn."""


@dataclass(frozen=True)
class FollowUp:
    """The attempt that follows, and the line that says why."""

    kind: AttemptKind
    why: str
    route: PlannedRoute | None = None
    """The route of an escalation."""
    wait_seconds: float = 0.0
    """How long to wait first."""


_SAME_THREAD = (FailureClass.IDLE_TIMEOUT, FailureClass.TURN_TIMEOUT)
_NEW_THREAD = (FailureClass.CRASH, FailureClass.START_TIMEOUT)
_FAILING = (CheckStatus.FAILED, CheckStatus.TIMED_OUT, CheckStatus.LIMIT)


def follow_up(result: AttemptResult, past: Sequence[AttemptKind]) -> FollowUp | None:
    """What follows `result`, when the attempts so far (this one included) were of the kinds `past`.

    At most one repair and one recovery in the life of a task, or since the supervisor last continued it;
    never after a violation of the scope.
    """
    past = _since_asked(past)
    if result.evidence.scope.violations:
        return None
    failure = result.evidence.turn_failure
    recovered = AttemptKind.RECOVERY in past or AttemptKind.FRESH in past
    if failure is not None:
        why = f"{failure.failure_class}: {failure.message}"
        if recovered:
            return None
        if failure.failure_class in _SAME_THREAD and result.thread_id is not None:
            return FollowUp(AttemptKind.RECOVERY, why)
        if failure.failure_class in (*_NEW_THREAD, *_SAME_THREAD):
            return FollowUp(AttemptKind.FRESH, why)
        return None
    claims_pass = result.claim is not None and result.claim.status is ClaimStatus.PASS
    failing = [check.command for check in result.evidence.checks if check.status in _FAILING]
    if claims_pass and failing and AttemptKind.REPAIR not in past:
        return FollowUp(AttemptKind.REPAIR, "a check failed on a claimed PASS: " + ", ".join(failing))
    return None


def _since_asked(past: Sequence[AttemptKind]) -> Sequence[AttemptKind]:
    """The attempts since the supervisor last asked for a turn."""
    asked = [index for index, kind in enumerate(past) if kind is AttemptKind.CONTINUE]
    return past[asked[-1] :] if asked else past
