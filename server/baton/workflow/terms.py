"""The terms of a workflow: who does which step, resolved once, and the policy that it runs under.

They are kept with it. What the person changes in the policy later moves no running workflow; a replan does,
for the steps that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from baton.consult.agents import host_of
from baton.consult.identity import Host, Identity, not_somebody_else
from baton.consult.plan import Seat, candidates_of, find_seats, seat_names
from baton.consult.routing import Candidate, Wanted, choose
from baton.consult.service import ConsultService
from baton.contract.base import Wire
from baton.contract.errors import InvalidInput, NoAgent
from baton.contract.nearest import did_you_mean
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.contract.workflow import CAPABILITIES, Binding, Executor, Step, read_binding
from baton.engine.service import Service
from baton.policy.consult_rules import ConsultRules
from baton.policy.model import Policy
from baton.policy.references import unknown_names

PLANNERS = (Step.PLAN,)
MAKERS = (Step.IMPLEMENT, Step.FIX)

HOST = "host"
"""Names the session itself among those who do steps."""


class Party(Wire):
    """Somebody who does a step: an agent of the policy, a worker, or the session itself."""

    name: str
    runtime: str
    model: str | None = None
    why: str | None = None

    @property
    def identity(self) -> Identity:
        return Identity(self.runtime, self.model)


class Bound(Wire):
    """A binding as it was resolved."""

    executor: Executor
    parties: list[Party] = []
    role: str | None = None
    """Of an isolated worker."""

    @property
    def shown(self) -> str:
        """For a person, in a few words."""
        who = ", ".join(f"{party.name} ({party.model or 'its default model'})" for party in self.parties)
        return f"{self.executor.value} {who}" if who else self.executor.value


class Terms(Wire):
    """What a workflow runs under."""

    bindings: dict[Step, Bound]
    max_fix_rounds: int
    advance_on_failed_test: bool
    different_from_implementer: bool
    different_from_planner: bool
    max_patch_bytes: int
    max_cost: float
    max_turns: int
    tests: list[str] = []
    allowed_files: list[str] = []
    context_paths: list[str] = []
    preset: str | None = None

    def parties_of(self, step: Step) -> list[Party]:
        return self.bindings[step].parties


def wanted_bindings(
    policy: Policy, preset: str | None, given: Mapping[Step, str], *, has_tests: bool
) -> dict[Step, str]:
    """Bindings by step: the policy's, the preset's over them, the call's over both.

    Raises `InvalidInput` for an unknown preset or name, and for bindings that do not go together.
    """
    rules = policy.workflow
    layers: list[Mapping[Step, str]] = [rules.bindings]
    if preset is not None:
        if preset not in rules.presets:
            known = did_you_mean(preset, rules.presets)
            raise InvalidInput(f"preset: no preset {preset!r}; {known}")
        layers.append(rules.presets[preset])
    layers.append(given)
    wanted = {step: "ask" if step is Step.REVIEW else "host" for step in Step}
    for layer in layers:
        wanted |= layer
    for step, text in wanted.items():
        check_binding(policy, step, text)
    made = {step: read_binding(step, text) for step, text in wanted.items()}
    if made[Step.TEST].executor is Executor.BATON and not has_tests:
        if Step.TEST in given:
            raise InvalidInput("bindings.test: baton runs commands; name them in tests")
        wanted[Step.TEST] = "host"
    _check_apply({step: binding.executor for step, binding in made.items()})
    return wanted


def check_binding(policy: Policy, step: Step, text: str) -> None:
    """Raises `InvalidInput` for what the step cannot be bound to."""
    try:
        read_binding(step, text)
    except ValueError as fault:
        raise InvalidInput(f"bindings.{step.value}: {fault}") from None
    for unknown in unknown_names(policy, step, text):
        raise InvalidInput(f"bindings.{step.value}: {unknown}")


def _check_apply(made: Mapping[Step, Executor]) -> None:
    if made[Step.APPLY] is not Executor.BATON:
        return
    for step in MAKERS:
        if made[step] is Executor.PATCH:
            raise InvalidInput(
                f"bindings.apply: baton lands what isolated workers did; {step.value} is bound to patch, and"
                " a patch is applied by the host"
            )


class Resolver:
    """Finds out who would do each step, asking no model."""

    def __init__(
        self,
        consulting: ConsultService,
        engine: Service,
        policy: Policy,
        session: Session,
        workspace: str,
        kept: Terms | None = None,
    ) -> None:
        self._kept = kept
        self._consulting = consulting
        self._engine = engine
        self._policy = policy
        self._session = session
        self._workspace = workspace
        self.host = host_of(consulting.house.env, policy.consult, session)

    async def resolve(
        self, wanted: Mapping[Step, str], allowed_files: Sequence[str], known: Mapping[Step, Bound]
    ) -> dict[Step, Bound]:
        """All bindings: those that are known, and the wanted ones resolved. The review comes last."""
        bound = dict(known)
        ordered = sorted(wanted, key=lambda step: (step is Step.REVIEW, list(Step).index(step)))
        for step in ordered:
            binding = read_binding(step, wanted[step])
            match binding.executor:
                case Executor.HOST:
                    parties = [
                        Party(name=HOST, runtime=self.host.runtime, model=model)
                        for model in self.host.models or (None,)
                    ]
                    bound[step] = Bound(executor=Executor.HOST, parties=parties)
                case Executor.ISOLATED:
                    bound[step] = await self._worker(step, binding, allowed_files)
                case Executor.ASK | Executor.PATCH:
                    bound[step] = await self._agents(step, binding, bound)
                case _:
                    bound[step] = Bound(executor=binding.executor)
        _check_apply({step: one.executor for step, one in bound.items()})
        self.check_different(bound)
        return bound

    def barred(self, bound: Mapping[Step, Bound]) -> list[tuple[Step, Party]]:
        """Whom a reviewer must be told apart from, under the policy in force and the terms that are kept."""
        rules, kept = self._policy.workflow, self._kept
        return barred_by(
            bound,
            rules.different_from_implementer or (kept is not None and kept.different_from_implementer),
            rules.different_from_planner or (kept is not None and kept.different_from_planner),
        )

    def check_different(self, bound: Mapping[Step, Bound]) -> None:
        """Raises `NoAgent` when a reviewer may be who it must differ from."""
        for reviewer in bound[Step.REVIEW].parties if Step.REVIEW in bound else ():
            why = not_different(reviewer, self.barred(bound))
            if why is not None:
                raise NoAgent(f"review: {reviewer.name} is not asked: {why}")

    async def _worker(self, step: Step, binding: Binding, allowed_files: Sequence[str]) -> Bound:
        if not allowed_files:
            raise InvalidInput(f"allowedFiles: {step.value} is bound to isolated; say what may change")
        role = binding.names[0] if binding.names else None
        call = TaskCall(
            objective=step.value,
            allowed_files=list(allowed_files),
            role=role,
            workspace=self._workspace,
            dry_run=True,
        )
        (task,) = (await self._engine.delegate_task(call, self._session))["tasks"]
        why = " ".join(filter(None, (task.get("role"), task.get("effort"))))
        party = Party(name="worker", runtime="codex", model=task["model"], why=why)
        return Bound(executor=Executor.ISOLATED, parties=[party], role=task.get("role") or role)

    async def _agents(self, step: Step, binding: Binding, bound: Mapping[Step, Bound]) -> Bound:
        consult: ConsultRules = self._policy.consult
        barred = self.barred(bound) if step is Step.REVIEW else []
        most = self._policy.review.max_reviewers
        if step is Step.REVIEW and len(binding.names) > most:
            raise InvalidInput(
                f"bindings.review: {len(binding.names)} reviewers are named, and the policy allows {most}"
                " (review.max_reviewers)"
            )
        wanted = Wanted(
            CAPABILITIES[step].value,
            tuple(binding.names),
            margin=consult.score_margin,
            most=max(len(binding.names), 1),
        )

        def pick(candidates: Mapping[str, Candidate]) -> list[Seat]:
            able = dict(candidates)
            for name, candidate in candidates.items():
                why = not_different(_party(candidate, None), barred)
                # One that was named is refused by its name, once it is known to be there.
                if why is not None and not binding.names:
                    able[name] = replace(candidate, missing=candidate.missing or why)
            chosen = choose(able, self.host, wanted)
            names = seat_names([one.candidate.id for one in chosen])
            return [Seat(one, seat, None, ()) for one, seat in zip(chosen, names, strict=True)]

        consulting = self._consulting
        candidates = candidates_of(consult, consulting.adapter_of)
        try:
            seats = await find_seats(consulting.house, consult, consulting.look, candidates, pick)
        except NoAgent as error:
            raise NoAgent(f"{step.value}: {error.message}") from None
        parties = [_party(seat.chosen.candidate, seat.chosen.why) for seat in seats]
        return Bound(executor=binding.executor, parties=parties)


def check_unchanged(candidates: Mapping[str, Candidate], who: Bound) -> None:
    """Raises `NoAgent` when the policy has somebody else now under a name that a workflow was bound to."""
    for party in who.parties:
        candidate = candidates.get(party.name)
        now = None if candidate is None else candidate.identity
        if now != party.identity:
            is_now = "nobody" if now is None else f"{now.runtime} {now.model or 'default'}"
            raise NoAgent(
                f"{party.name} is {is_now} in the policy now, and this workflow was bound to"
                f" {party.runtime} {party.model or 'default'}; replan the step"
            )


def barred_by(
    bound: Mapping[Step, Bound], from_implementer: bool, from_planner: bool
) -> list[tuple[Step, Party]]:
    """Whom a reviewer must be told apart from."""
    steps = (MAKERS if from_implementer else ()) + (PLANNERS if from_planner else ())
    return [(step, party) for step in steps if step in bound for party in bound[step].parties]


def not_different(reviewer: Party, barred: Iterable[tuple[Step, Party]]) -> str | None:
    """Why a reviewer may be one of those that it must differ from; None when it provably is none."""
    for step, party in barred:
        other = Host(party.runtime, (party.model,) if party.model else ())
        if not_somebody_else(reviewer.identity, other) is not None:
            model = party.model or "a model that is not known"
            if party.name == HOST and party.model is None:
                model += "; name it in consult.host_model"
            return (
                f"it cannot be told apart from {party.name} ({party.runtime}, {model}), who does {step.value}"
            )
    return None


def _party(candidate: Candidate, why: str | None) -> Party:
    identity = candidate.identity
    return Party(name=candidate.id, runtime=identity.runtime, model=identity.model, why=why)


def policy_terms(policy: Policy) -> dict[str, Any]:
    """What of the policy a workflow keeps."""
    rules = policy.workflow
    return {
        "max_fix_rounds": rules.max_fix_rounds,
        "advance_on_failed_test": rules.advance_on_failed_test,
        "different_from_implementer": rules.different_from_implementer,
        "different_from_planner": rules.different_from_planner,
        "max_patch_bytes": rules.max_patch_bytes,
        "max_cost": rules.spend.max_cost_per_workflow,
        "max_turns": rules.spend.max_turns_per_workflow,
    }
