"""Takes a rung of the ladder: what it decides about an attempt that did not succeed becomes a route."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baton.contract.catalogue import ModelEntry
from baton.contract.claim import ClaimStatus
from baton.contract.errors import CodexFailure, InvalidInput
from baton.contract.evidence import AttemptResult, CheckStatus, Decision
from baton.contract.states import FailureClass, Verdict
from baton.engine.context import RunContext
from baton.engine.followup import AttemptKind
from baton.engine.plan import PlannedRoute
from baton.engine.route import route_of
from baton.ledger.records import AttemptRecord
from baton.policy.ladder import History, Rung, Trouble, decide
from baton.policy.tiers import DELEGATING_EFFORT, family_of, plan_route, version_of

_FAILING = (CheckStatus.FAILED, CheckStatus.TIMED_OUT, CheckStatus.LIMIT)
_NO_TROUBLE = (Verdict.VERIFIED, Verdict.CANCELLED, Verdict.INTERRUPTED)


@dataclass(frozen=True)
class Climb:
    """What the ladder says of one result."""

    decision: Decision
    route: PlannedRoute | None = None
    """The route of a retry."""


def trouble_of(result: AttemptResult) -> FailureClass | Trouble | None:
    """The class of what went wrong; None when nothing did, or when somebody stopped it. Pure."""
    evidence, claim = result.evidence, result.claim
    if result.verdict in _NO_TROUBLE:
        return None
    if evidence.scope.violations:
        return Trouble.OUT_OF_SCOPE
    if evidence.turn_failure is not None:
        return evidence.turn_failure.failure_class
    if claim is None:
        return Trouble.NO_REPORT
    if claim.status is not ClaimStatus.PASS:
        return Trouble.BLOCKED if claim.status is ClaimStatus.BLOCKED else Trouble.WORKER_FAILED
    if result.verdict is Verdict.NO_CHANGE:
        return Trouble.NO_CHANGE
    if any(check.status in _FAILING for check in evidence.checks):
        return Trouble.CHECK_FAILED
    # A change although none was allowed is the only other way to fail.
    return Trouble.OUT_OF_SCOPE if result.verdict is Verdict.FAILED else Trouble.UNPROVEN


async def climb(ctx: RunContext, result: AttemptResult, past: Sequence[AttemptRecord]) -> Climb | None:
    """What follows `result`, the last of the attempts `past`; None when there was no trouble."""
    trouble = ctx.stop.failure_class if result.verdict is Verdict.INTERRUPTED else trouble_of(result)
    if trouble is None:
        return None
    try:
        entries: Sequence[ModelEntry] = await ctx.machine.catalogue(ctx.house)
    except CodexFailure:
        entries = ()  # without it no rung is known, and the ladder ends here
    route = route_of(ctx.plan, past[-1])
    model = next((entry for entry in entries if entry.slug == route.model), None)
    efforts = [effort for effort in model.efforts if effort != DELEGATING_EFFORT] if model else []
    failure = result.evidence.turn_failure
    candidates = _relatives(route.model, entries)
    decision = decide(trouble, failure, _history(ctx, past), ctx.policy, efforts, candidates)
    if decision.action != "retry":
        return Climb(decision)
    try:
        return Climb(decision, _next_route(ctx, route, decision, entries))
    except InvalidInput as error:
        why = f"{decision.why}, but {error.message}"
        return Climb(decision.model_copy(update={"action": "stop", "why": why}))


def _history(ctx: RunContext, past: Sequence[AttemptRecord]) -> History:
    routes = [route_of(ctx.plan, record) for record in past]
    asked = [index for index, record in enumerate(past) if record.kind == AttemptKind.CONTINUE]
    kinds = [record.kind for record in past[asked[-1] if asked else 0 :]]
    return History(
        tried=tuple(Rung(route.tier, route.model, route.effort) for route in routes),
        steps=kinds.count(AttemptKind.ESCALATION),
        waits=kinds.count(AttemptKind.WAIT),
    )


def _relatives(slug: str, entries: Sequence[ModelEntry]) -> list[str]:
    """Other listed models of the family, newest first."""
    family = family_of(slug)
    names = [entry.slug for entry in entries if entry.listed and family and family_of(entry.slug) == family]
    return sorted((name for name in names if name != slug), key=version_of, reverse=True)


def _next_route(
    ctx: RunContext, route: PlannedRoute, decision: Decision, entries: Sequence[ModelEntry]
) -> PlannedRoute:
    """The route that the decision means; the role and its instructions stay. Raises `InvalidInput`."""
    if decision.model is not None:
        return route.model_copy(update={"model": decision.model, "note": decision.why})
    if decision.tier is None:
        return route.model_copy(update={"effort": decision.effort, "note": decision.why})
    found = plan_route(ctx.policy, entries, role=None, tier=decision.tier, effort=decision.effort)
    return PlannedRoute(
        role=route.role,
        tier=found.tier,
        model=found.model.slug,
        effort=found.effort.effort,
        note=found.effort.note or decision.why,
    )
