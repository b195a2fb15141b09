"""Makes the plan of a review: everything that would be sent, and to whom. Nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from baton.consult.agents import AdapterOf, Look, agent_of, host_of
from baton.consult.context_material import Piece
from baton.consult.identity import Host
from baton.consult.outgoing import Sightings, is_code, look_through, prose, refuse_secrets
from baton.consult.plan import Seat, candidates_of, find_seats, seat_names
from baton.consult.routing import Candidate, Chosen, Wanted, choose, rank, why_not
from baton.contract.errors import InvalidInput, NoAgent
from baton.contract.nearest import did_you_mean
from baton.contract.review import Finding, GivenFinding, ReviewCall, ReviewMode
from baton.contract.wording import reasons_text
from baton.engine.blocking import blocking
from baton.ledger.ids import new_review_id
from baton.ledger.review_records import ReviewFindingRecord, ReviewRecord
from baton.policy.consult_rules import ConsultRules
from baton.review.asking import Ask, Reviewer
from baton.review.confirm import approval_of, bound, new_token
from baton.review.material import Gathered, Source, ask_for, gather_material
from baton.review.places import locate_finding
from baton.review.plan_shown import plan_shown
from baton.review.question import earlier_findings, question
from baton.review.setting import Setting
from baton.review.stored import StoredPlan, StoredReviewer

EARLIER = "earlier findings"
"""The piece of a recheck that holds what was found before."""


@dataclass(frozen=True)
class Planned:
    """A plan, ready to be recorded and shown."""

    record: ReviewRecord
    own: list[ReviewFindingRecord]
    carried: list[ReviewFindingRecord]
    shown: dict[str, Any]
    token: str


async def make_review_plan(
    setting: Setting,
    call: ReviewCall,
    look: Look,
    adapter_of: AdapterOf,
    parent: tuple[ReviewRecord, Sequence[ReviewFindingRecord]] | None = None,
) -> Planned:
    """Decide what would be sent. Raises `BatonError` with the reason for what cannot be."""
    goal = call.goal or (parent[0].goal if parent else None)
    if goal is None or not goal.strip():
        raise InvalidInput("goal: say what to judge")
    _check_persona(call.persona, setting.consult)
    mode = parent[0].mode if parent else call.mode
    if mode is ReviewMode.DEEP and parent is None and call.own_findings is None:
        raise InvalidInput(
            "ownFindings: a deep review records your own findings first ([] when there are none);"
            " reviewers never see them"
        )
    goal, masked = prose(goal)
    source = await blocking(ask_for, _as_asked(call, parent), setting.bounds)
    if source.context is not None and not is_code(source.context):
        # Before it is written down anywhere.
        text, what = prose(source.context)
        source, masked = replace(source, context=text), [*masked, *what]
    if parent is not None:
        _check_new(source, parent[0])
    gathered = await blocking(gather_material, source, setting.bounds)
    reviewers = await choose_reviewers(setting, call, mode, parent, look, adapter_of)
    earlier = list(parent[1]) if parent else []
    ask, outgoing = compose(setting, goal, call.persona, gathered, earlier)
    masked += outgoing.masked
    own_findings, what = masked_findings(call.own_findings or ())
    masked += what
    if setting.rules.secrets == "refuse":
        refuse_secrets(outgoing.seen.secrets, "review.secrets = refuse")
    shown = plan_shown(setting, mode, goal, gathered, reviewers, ask, outgoing.seen, masked)
    token = new_token()
    approval = approval_of(approved(goal, mode, gathered, reviewers, ask, setting.consult))
    stored = StoredPlan(
        source=source.stored(),
        manifest=gathered.manifest,
        places=gathered.places,
        reviewers=[StoredReviewer(agent=one.agent, seat=one.seat, why=one.why) for one in reviewers],
        persona=call.persona,
        secrets=[sighting.place for sighting in outgoing.seen.secrets],
        earlier=[finding.model_dump(mode="json") for finding in earlier],
    )
    record = ReviewRecord(
        review_id=new_review_id(),
        parent=parent[0].review_id if parent else None,
        round=parent[0].round + 1 if parent else 0,
        workspace=None if setting.workspace is None else str(setting.workspace),
        mode=mode,
        goal=goal,
        plan=stored.wire(compact=False),
        approval=approval,
        token=bound(token, approval),
    )
    own = [host_finding(record.review_id, given, gathered.places) for given in own_findings]
    carried = [
        finding.model_copy(
            update={
                "review_id": record.review_id,
                "carried": finding.id,
                "turn": None,
                "answered": False,
                "reason": None,
                "disposition": "open",
            }
        )
        for finding in earlier
    ]
    return Planned(record, own, carried, shown, token)


@dataclass(frozen=True)
class Outgoing:
    """What was seen in the material, and what was masked in prose."""

    seen: Sightings
    masked: list[str]


def compose(
    setting: Setting,
    goal: str,
    persona: str | None,
    gathered: Gathered,
    earlier: Sequence[ReviewFindingRecord],
) -> tuple[Ask, Outgoing]:
    """What is asked, with everything that leaves looked through. Prose is masked; code stays as it is."""
    checklist, masked = [], list[str]()
    for entry in setting.rules.checklist:
        text, what = prose(entry)
        checklist.append(text)
        masked += what
    pieces = list(gathered.pieces)
    if earlier:
        text, what = prose(earlier_findings(earlier))
        masked += what
        pieces.append(Piece(EARLIER, text))
    if persona is not None:
        masked += prose(setting.consult.personas[persona])[1]
    asked = question(goal, checklist, rechecks=bool(earlier))
    return Ask(asked, pieces, persona, bool(earlier)), Outgoing(look_through(pieces), masked)


def approved(
    goal: str,
    mode: ReviewMode,
    gathered: Gathered,
    reviewers: Sequence[Reviewer],
    ask: Ask,
    rules: ConsultRules,
) -> dict[str, Any]:
    """All that a confirmation stands for."""
    return {
        "goal": goal,
        "mode": mode.value,
        "manifest": [piece.wire() for piece in gathered.manifest],
        "sent": [piece.record().wire() for piece in ask.pieces],
        "question": ask.question,
        "persona": rules.personas[ask.persona] if ask.persona else None,
        "reviewers": [
            [reviewer.seat, *(str(getattr(agent_of(reviewer.agent, rules), name)) for name in _IDENTITY)]
            for reviewer in reviewers
        ],
    }


_IDENTITY = ("id", "runtime", "command", "model", "effort")


async def choose_reviewers(
    setting: Setting,
    call: ReviewCall,
    mode: ReviewMode,
    parent: tuple[ReviewRecord, Sequence[ReviewFindingRecord]] | None,
    look: Look,
    adapter_of: AdapterOf,
) -> list[Reviewer]:
    """The named ones, the policy's, or the best. Raises `NoAgent` or `InvalidInput`."""
    rules, consult = setting.rules, setting.consult
    host = host_of(setting.house.env, consult, setting.session)
    named = tuple(call.reviewers)
    if parent is not None and not named:
        named = tuple(one.agent for one in StoredPlan.of(parent[0]).reviewers)
    most = 1 if mode is ReviewMode.STANDARD else min(rules.max_reviewers, consult.max_agents)
    if len(named) > most:
        limit = "a standard review has one; use mode deep" if most == 1 else "review.max_reviewers"
        raise InvalidInput(f"reviewers: {len(named)} are named, {most} can be asked ({limit})")
    listed = rules.reviewers if mode is ReviewMode.STANDARD else rules.deep_reviewers
    wanted = Wanted("review", named, margin=consult.score_margin, most=max(most, 1), argument="reviewers")

    def pick(candidates: Mapping[str, Candidate]) -> list[Seat]:
        if named:
            chosen = choose(candidates, host, wanted)
        elif listed:
            chosen = _of_list(listed, candidates, host, wanted, most)
        else:
            able = [one for one in candidates.values() if why_not(one, host, wanted, by_name=False) is None]
            ranked = rank(able, wanted)[:most]
            # Raises with everybody's reason when there is none.
            chosen = [Chosen(*one) for one in ranked] or choose(candidates, host, wanted)
        names = seat_names([one.candidate.id for one in chosen])
        return [Seat(one, name, None, ()) for one, name in zip(chosen, names, strict=True)]

    candidates = candidates_of(consult, adapter_of)
    seats = await find_seats(setting.house, consult, look, candidates, pick)
    return [Reviewer(seat.chosen.candidate.id, seat.name, seat.chosen.why) for seat in seats]


def masked_findings(given: Sequence[GivenFinding]) -> tuple[list[GivenFinding], list[str]]:
    """The session's own findings as they may be written down, and what was masked in them."""
    clean, masked = [], list[str]()
    for finding in given:
        texts = {"title": finding.title, "detail": finding.detail, "path": finding.path}
        seen = {name: prose(text) for name, text in texts.items() if text}
        masked += [what for _, found in seen.values() for what in found]
        clean.append(finding.model_copy(update={name: text for name, (text, _) in seen.items()}))
    return clean, masked


def host_finding(review_id: str, given: GivenFinding, places: Mapping[str, Any]) -> ReviewFindingRecord:
    """A finding of the session's own, located like the others."""
    found = locate_finding(
        Finding(
            severity=given.severity,
            title=given.title,
            detail=given.detail,
            path=given.path,
            line=given.line,
            confidence=given.confidence,
        ),
        places,
    )
    return finding_record(review_id, "host", None, found)


def finding_record(review_id: str, source: str, turn: int | None, found: Finding) -> ReviewFindingRecord:
    """A finding as the ledger keeps it; its number is given there."""
    return ReviewFindingRecord(
        review_id=review_id, number=0, source=source, turn=turn, **found.model_dump(mode="python")
    )


def _of_list(
    listed: Sequence[str], candidates: Mapping[str, Candidate], host: Host, wanted: Wanted, most: int
) -> list[Chosen]:
    reasons = {}
    chosen: list[Chosen] = []
    for name in listed:
        if name not in candidates:
            reasons[name] = "the policy has no such agent"
        elif (reason := why_not(candidates[name], host, wanted, by_name=True)) is not None:
            reasons[name] = reason
        elif len(chosen) < most:
            chosen.append(Chosen(candidates[name], "a reviewer of the policy"))
    if not chosen:
        raise NoAgent(reasons_text({f"{name} is not asked": reason for name, reason in reasons.items()}))
    return chosen


def _check_persona(persona: str | None, rules: ConsultRules) -> None:
    if persona is not None and persona not in rules.personas:
        known = did_you_mean(persona, sorted(rules.personas))
        raise InvalidInput(f"persona: no persona {persona!r}; {known}")


def _as_asked(call: ReviewCall, parent: tuple[ReviewRecord, Any] | None) -> ReviewCall:
    """A recheck that names no material looks at the same again, as it is now."""
    if parent is None or call.diff_ref or call.paths or call.context or call.run_id:
        if parent is not None and call.diff_ref and call.repository is None:
            before = StoredPlan.of(parent[0]).wanted
            return call.model_copy(update={"repository": before.repository})
        return call
    before = StoredPlan.of(parent[0]).wanted
    return call.model_copy(
        update={
            "diff_ref": before.pinned.ref if before.pinned else None,
            "repository": before.repository if before.pinned else None,
            "paths": list(before.paths),
            "context": before.context,
            "run_id": before.run_id,
        }
    )


def _check_new(source: Source, parent: ReviewRecord) -> None:
    before = StoredPlan.of(parent).wanted
    if source.pinned is not None and source == before:
        raise InvalidInput(
            f"diffRef {source.pinned.ref!r}: names the same commits as review {parent.review_id} did;"
            " commit the fixes first, or name their diff"
        )
