"""The escalation ladder: what follows an attempt that did not succeed, by the class of its trouble. Pure.

Effort comes first, then the tier. Every ladder ends: steps and waits are counted over the life of a task and
bounded by the policy, an effort or tier only ever rises, and whatever has no rung left stops with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from baton.contract.evidence import Decision, TurnFailure
from baton.contract.states import FailureClass
from baton.contract.wording import many
from baton.policy.model import Policy
from baton.policy.section import EFFORTS

FIRST_WAIT = 15.0
"""Seconds of the first wait where the service names none; each further one is twice as long."""


class Trouble(StrEnum):
    """What went wrong with an attempt whose turn came to its end."""

    CHECK_FAILED = "check_failed"
    WORKER_FAILED = "worker_failed"
    NO_REPORT = "no_report"
    NO_CHANGE = "no_change"
    BLOCKED = "blocked"
    OUT_OF_SCOPE = "out_of_scope"
    UNPROVEN = "unproven"


class Rule(StrEnum):
    """What a class of trouble leads to."""

    CLIMB = "climb"
    """One effort higher on the same model, else the next tier; a new thread goes on in the same tree."""
    WAIT = "wait"
    """The same again after a bounded wait."""
    OTHER_MODEL = "other_model"
    """Another model of the tier's family, where the policy lets it; otherwise the end."""
    STOP = "stop"
    """The supervisor or the person decides."""


@dataclass(frozen=True)
class Entry:
    """One row of the table."""

    rule: Rule
    why: str
    """The reason as a person reads it."""


TABLE: Mapping[FailureClass | Trouble, Entry] = {
    Trouble.CHECK_FAILED: Entry(Rule.CLIMB, "the right thing built badly"),
    Trouble.WORKER_FAILED: Entry(Rule.CLIMB, "the worker could not do it"),
    Trouble.NO_REPORT: Entry(Rule.CLIMB, "the worker ended without a report that can be read"),
    Trouble.NO_CHANGE: Entry(Rule.STOP, "it was done already, or the brief missed"),
    Trouble.BLOCKED: Entry(Rule.STOP, "something is missing that only the supervisor can give"),
    Trouble.OUT_OF_SCOPE: Entry(Rule.STOP, "a change is out of scope: the scope was wrong, or the work"),
    Trouble.UNPROVEN: Entry(Rule.STOP, "nothing failed, but nothing proves it"),
    FailureClass.UNKNOWN_MODEL: Entry(Rule.OTHER_MODEL, "the service does not know the model"),
    FailureClass.AUTH: Entry(Rule.STOP, "Codex is not logged in: `codex login`, then continue_task"),
    FailureClass.RATE_LIMIT: Entry(Rule.WAIT, "the service limits the rate of requests"),
    FailureClass.USAGE_LIMIT: Entry(Rule.STOP, "the account's usage limit is reached"),
    FailureClass.CONTEXT_OVERFLOW: Entry(Rule.STOP, "the task is larger than a context: cut it"),
    FailureClass.OVERLOADED: Entry(Rule.WAIT, "the service has no capacity"),
    FailureClass.NETWORK: Entry(Rule.WAIT, "the service cannot be reached"),
    FailureClass.BAD_REQUEST: Entry(Rule.STOP, "the service refuses the request itself"),
    FailureClass.CRASH: Entry(Rule.STOP, "Codex ended in mid-turn, also after a recovery"),
    FailureClass.START_TIMEOUT: Entry(Rule.STOP, "Codex did not start a worker, also after a recovery"),
    FailureClass.IDLE_TIMEOUT: Entry(Rule.STOP, "the worker fell silent, also after a recovery"),
    FailureClass.TURN_TIMEOUT: Entry(Rule.STOP, "the task is larger than its time: cut it or give it more"),
    FailureClass.RUN_TIMEOUT: Entry(Rule.STOP, "the run's time is over"),
    FailureClass.ROUTE_MISMATCH: Entry(Rule.STOP, "Codex started the worker on another model than was asked"),
    FailureClass.SCOPE_NOT_ENFORCED: Entry(Rule.STOP, "Codex did not take the sandbox that was asked for"),
    FailureClass.OTHER: Entry(Rule.STOP, "Codex gives no reason that is known"),
}
"""Every class with its rule. What is left out here would be a trap, so a test holds it complete."""


@dataclass(frozen=True)
class Rung:
    """The route of an attempt."""

    tier: str
    model: str
    effort: str | None


@dataclass(frozen=True)
class History:
    """What was done already in the life of a task."""

    tried: tuple[Rung, ...]
    """Every rung so far, the last attempt's included."""
    steps: int = 0
    """Attempts at another effort, tier or model."""
    waits: int = 0


def decide(
    trouble: FailureClass | Trouble,
    failure: TurnFailure | None,
    history: History,
    policy: Policy,
    efforts: Sequence[str],
    candidates: Sequence[str] = (),
) -> Decision:
    """What follows.

    `efforts` are those that a worker may have on the model that was used; `candidates` are other listed
    models of its family, newest first. A decision to retry names the effort, tier or model that changes.
    """
    entry = TABLE[trouble]
    match entry.rule:
        case Rule.CLIMB:
            return _climb(trouble, entry, history, policy, efforts)
        case Rule.WAIT:
            return _wait(trouble, entry, failure, history, policy)
        case Rule.OTHER_MODEL:
            return _other_model(trouble, entry, history, policy, candidates)
    return _stop(trouble, entry.why + _when(failure))


def _climb(
    trouble: FailureClass | Trouble, entry: Entry, history: History, policy: Policy, efforts: Sequence[str]
) -> Decision:
    rules, rung = policy.escalation, history.tried[-1]
    higher = _higher_effort(rung, efforts, rules.max_effort)
    tier = _higher_tier(rung.tier, rules.tiers)
    if history.steps >= rules.max_steps:
        left = f"effort {higher}" if higher else f"tier {tier}" if tier else "nothing"
        spent = f"escalation.max_steps is {rules.max_steps}"
        return _stop(trouble, f"{entry.why}; {spent}, the next rung would be {left}")
    if higher is not None:
        why = f"{entry.why}: effort {higher} after {rung.effort}"
        return Decision(trouble=trouble.value, action="retry", why=why, effort=higher)
    if tier is not None:
        effort = policy.tiers[tier].default_effort
        why = f"{entry.why}: tier {tier} after {rung.tier} at {rung.effort or 'its only effort'}"
        return Decision(trouble=trouble.value, action="retry", why=why, tier=tier, effort=effort)
    return _stop(trouble, f"{entry.why}; no higher effort or tier is left within the policy")


def _higher_effort(rung: Rung, efforts: Sequence[str], most: str) -> str | None:
    if rung.effort not in EFFORTS:
        return None
    now, limit = EFFORTS.index(rung.effort), EFFORTS.index(most)
    above = [effort for effort in efforts if effort in EFFORTS and now < EFFORTS.index(effort) <= limit]
    return min(above, key=EFFORTS.index, default=None)


def _higher_tier(tier: str, tiers: Sequence[str]) -> str | None:
    """The tier after this one; none for a tier that the ladder does not have."""
    if tier not in tiers or tier == tiers[-1]:
        return None
    return tiers[tiers.index(tier) + 1]


def _wait(
    trouble: FailureClass | Trouble,
    entry: Entry,
    failure: TurnFailure | None,
    history: History,
    policy: Policy,
) -> Decision:
    rules = policy.escalation
    if history.waits >= rules.max_waits:
        why = f"{entry.why}; it has waited {many(history.waits, 'time')} (escalation.max_waits)"
        return _stop(trouble, why + _when(failure))
    asked = failure.retry_after_seconds if failure is not None else None
    if asked is not None and asked > rules.wait_seconds:
        return _stop(trouble, f"{entry.why}, longer than escalation.wait_seconds" + _when(failure))
    seconds = asked if asked is not None else min(FIRST_WAIT * 2**history.waits, rules.wait_seconds)
    why = f"{entry.why}: again after {seconds:g} s"
    return Decision(trouble=trouble.value, action="wait", why=why, wait_seconds=seconds)


def _other_model(
    trouble: FailureClass | Trouble,
    entry: Entry,
    history: History,
    policy: Policy,
    candidates: Sequence[str],
) -> Decision:
    tried = {rung.model for rung in history.tried}
    left = [slug for slug in candidates if slug not in tried]
    named = f"; candidates: {', '.join(left)}" if left else "; its family has no other listed model"
    if not policy.escalation.other_model:
        return _stop(trouble, entry.why + named + " (escalation.other_model is off)")
    if not left or history.steps >= policy.escalation.max_steps:
        return _stop(trouble, entry.why + named)
    why = f"{entry.why}: {left[0]} instead"
    return Decision(trouble=trouble.value, action="retry", why=why, model=left[0])


def _stop(trouble: FailureClass | Trouble, why: str) -> Decision:
    return Decision(trouble=trouble.value, action="stop", why=why)


def _when(failure: TurnFailure | None) -> str:
    """When the service says that it can be asked again."""
    if failure is None or failure.retry_after_seconds is None:
        return ""
    minutes, seconds = divmod(round(failure.retry_after_seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{value} {unit}" for value, unit in ((hours, "h"), (minutes, "min")) if value]
    return "; come back in " + (" ".join(parts) or f"{seconds} s")


def ladder_table() -> str:
    """The table as Markdown, for the documentation."""
    words = {
        Rule.CLIMB: "one effort higher, else the next tier",
        Rule.WAIT: "wait, then the same again",
        Rule.OTHER_MODEL: "another model of the family, if the policy lets it",
        Rule.STOP: "stop",
    }
    rows = [f"| `{trouble.value}` | {words[entry.rule]} | {entry.why} |" for trouble, entry in TABLE.items()]
    return "\n".join(["| class | what follows | because |", "|---|---|---|", *rows]) + "\n"
