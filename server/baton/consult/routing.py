"""Which agents are asked: by name, or by score, margin, priority and name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baton.consult.identity import Host, Identity, not_somebody_else, same_agent
from baton.contract.consult import Side, SourceMode
from baton.contract.errors import InvalidInput, NoAgent
from baton.contract.nearest import did_you_mean
from baton.contract.wording import reasons_text
from baton.policy.consult_rules import ConsultAgent


@dataclass(frozen=True)
class Candidate:
    """An agent as the policy has it, and why it cannot be asked at all on this machine."""

    id: str
    agent: ConsultAgent
    missing: str | None = None
    """Its program is not there, or not logged in; None when nothing is known against it."""
    web: bool = False
    """Whether its program can search the web and nothing else."""

    @property
    def identity(self) -> Identity:
        return Identity(self.agent.runtime, self.agent.model or None)


@dataclass(frozen=True)
class Wanted:
    """What a call says about whom to ask."""

    capability: str
    targets: tuple[str, ...] = ()
    count: int | None = None
    both_sides: bool = False
    source_mode: SourceMode = SourceMode.AUTO
    margin: int = 0
    most: int = 5
    argument: str = "targets"
    """What the caller knows `targets` as."""


@dataclass(frozen=True)
class Chosen:
    """One agent to be asked, the side it is to argue, and why it is this one."""

    candidate: Candidate
    why: str
    side: Side | None = None


def why_not(candidate: Candidate, host: Host, wanted: Wanted, *, by_name: bool) -> str | None:
    """Why an agent may not be asked; None when it may. By name it needs no score."""
    agent = candidate.agent
    if not agent.enabled:
        return "it is switched off in the policy"
    own = not_somebody_else(candidate.identity, host)
    if own is not None:
        return own
    if candidate.missing is not None:
        return candidate.missing
    if wanted.source_mode is SourceMode.WEB and not agent.web_search:
        return "it may not search the web (web_search = false)"
    if wanted.source_mode is SourceMode.WEB and not candidate.web:
        return "its program cannot search the web while everything else stays shut"
    if not by_name and not agent.scores.get(wanted.capability, 0):  # type: ignore[call-overload]
        return f"it has no score for {wanted.capability}"
    return None


def choose(candidates: Mapping[str, Candidate], host: Host, wanted: Wanted) -> list[Chosen]:
    """The agents to ask, best first.

    Raises `InvalidInput` for unknown names and impossible numbers, `NoAgent` with the reason of each agent
    when there are not enough: fewer answers than asked for are never a surprise.
    """
    by_name = bool(wanted.targets)
    for name in wanted.targets:
        if name not in candidates:
            known = did_you_mean(name, sorted(candidates))
            raise InvalidInput(f"{wanted.argument}: no agent {name!r}; {known}")
    if len(set(wanted.targets)) != len(wanted.targets):
        raise InvalidInput(f"{wanted.argument}: names an agent twice")
    number = _number(wanted)
    refused = {
        name: reason
        for name in (wanted.targets or sorted(candidates))
        if (reason := why_not(candidates[name], host, wanted, by_name=by_name)) is not None
    }
    if by_name and refused:
        raise NoAgent(reasons_text({f"{name} is not asked": reason for name, reason in refused.items()}))
    if by_name and wanted.count is None:
        ordered = [(candidates[name], "asked for by name") for name in wanted.targets]
    else:
        open_ones = [candidates[name] for name in wanted.targets or candidates if name not in refused]
        ordered = rank(open_ones, wanted, refused)
    if wanted.both_sides and len(ordered) == 1:
        ordered *= 2
    if len(ordered) < number:
        reasons = reasons_text(refused)
        have = f"{len(ordered)} of {number} agents" if ordered else "no agent"
        raise NoAgent(f"{have} can be asked for {wanted.capability} ({reasons or 'none is configured'})")
    sides = (Side.FOR, Side.AGAINST) if wanted.both_sides else (None,) * number
    return [Chosen(*picked, side) for picked, side in zip(ordered[:number], sides, strict=True)]


def rank(
    candidates: Sequence[Candidate], wanted: Wanted, refused: dict[str, str] | None = None
) -> list[tuple[Candidate, str]]:
    """Agents in the order of asking, each with why.

    Of those within the margin of the best score that is left, the lowest priority is next, then the higher
    score, then the name. One that cannot be told apart from an earlier one is left out; `refused` is told so.
    """
    left = {candidate.id: candidate for candidate in candidates}
    scores = {name: _score(candidate, wanted) for name, candidate in left.items()}
    ordered: list[tuple[Candidate, str]] = []
    while left:
        best = max(scores[name] for name in left)
        near = [one for one in left.values() if scores[one.id] >= best - wanted.margin]
        taken = min(near, key=lambda one: (one.agent.priority, -scores[one.id], one.id))
        del left[taken.id]
        twin = next((one for one, _ in ordered if same_agent(one.identity, taken.identity)), None)
        if twin is not None:
            if refused is not None:
                refused[taken.id] = f"it cannot be told apart from {twin.id}"
            continue
        ordered.append((taken, _why(taken, scores[taken.id], best, near, wanted)))
    return ordered


def _score(candidate: Candidate, wanted: Wanted) -> int:
    return {str(name): score for name, score in candidate.agent.scores.items()}.get(wanted.capability, 0)


def _why(taken: Candidate, score: int, best: int, near: Sequence[Candidate], wanted: Wanted) -> str:
    text = f"{wanted.capability} {score}"
    if score < best:
        return f"{text}, within {wanted.margin} of {best}, priority {taken.agent.priority}"
    if len(near) > 1:
        return f"{text}, priority {taken.agent.priority} of {len(near)} about equal ones"
    return f"{text}, the best score left"


def _number(wanted: Wanted) -> int:
    number = wanted.count or (len(wanted.targets) or 1)
    if wanted.both_sides:
        if wanted.count not in (None, 2) or len(wanted.targets) > 2:
            raise InvalidInput("bothSides: asks two agents; leave count out, and name at most two targets")
        number = 2
    if wanted.targets and number > len(wanted.targets) and not wanted.both_sides:
        raise InvalidInput(f"count: {number} of {len(wanted.targets)} targets cannot be asked")
    if number > wanted.most:
        raise InvalidInput(f"count: {number} agents; the policy allows {wanted.most} (consult.max_agents)")
    return number
