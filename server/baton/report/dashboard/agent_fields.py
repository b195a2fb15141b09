"""What a form shows of one agent of the policy, and what a form that comes back wants changed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.policy.consult_rules import CAPABILITIES, ConsultAgent
from baton.policy.faults import KeyPath, PolicyRefused, shown_key
from baton.policy.layer import LayerName
from baton.policy.person import PersonPolicy
from baton.policy.section import EFFORTS

FILE_ONLY = ("command", "settings")
"""Which program is started, and with what: that is changed in the file alone."""


@dataclass(frozen=True)
class Field:
    """One key of an agent."""

    key: KeyPath
    """Below the agent: `("model",)`, `("scores", "coding")`."""
    value: str
    kind: type
    meaning: str
    is_own: bool
    """Whether the person's own file says it."""
    choices: tuple[str, ...] = ()
    """All that it may be; empty: not a choice."""
    suggestions: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in the form, and below the agent in the file."""
        return shown_key(self.key)

    def read(self, text: str) -> Any:
        """The value that a text means; the text itself where it means none, for the policy to refuse."""
        text = text.strip()
        if self.kind is bool:
            return {"true": True, "false": False}.get(text, text)
        if self.kind is int and re.fullmatch(r"-?[0-9]{1,15}", text):
            return int(text)
        return text


def fields_of(name: str, read: PersonPolicy) -> list[Field]:
    """The keys of an agent that a form may change, its scores last."""
    agent = read.layered.policy.consult.agents[name]
    fields = [
        _field(name, read, (key,), getattr(agent, key), spec.description or "", spec.annotation)
        for key, spec in ConsultAgent.model_fields.items()
        if key not in (*FILE_ONLY, "scores")
    ]
    for capability in CAPABILITIES:
        score = next((points for kind, points in agent.scores.items() if kind == capability), None)
        fields.append(_field(name, read, ("scores", capability), score, "", int))
    return fields


def _field(agent: str, read: PersonPolicy, key: KeyPath, value: Any, meaning: str, annotation: Any) -> Field:
    is_bool = isinstance(value, bool)
    origin = read.layered.origins.get(("consult", "agents", agent, *key))
    return Field(
        key=key,
        value="" if value is None else str(value).lower() if is_bool else str(value),
        kind=int if value is None else type(value),
        meaning=meaning,
        is_own=origin is not None and origin.layer is LayerName.PERSON,
        choices=("true", "false") if is_bool else get_args(annotation),
        suggestions=EFFORTS if key == ("effort",) else (),
    )


def wanted(agent: str, fields: list[Field], form: Mapping[str, str]) -> dict[KeyPath, Any]:
    """The keys of the policy that a form says otherwise than the page did.

    Raises `InvalidInput` for a field that no form of ours has, with the nearest name.
    """
    known = {field.name: field for field in fields}
    for name in form:
        if name not in known:
            advice = did_you_mean(name, known)
            raise InvalidInput(f"{name[:60]}: no field of an agent's form; {advice}")
    return {
        ("consult", "agents", agent, *known[name].key): known[name].read(text)
        for name, text in form.items()
        if text != known[name].value
    }


def faults_beside(agent: str, refused: PolicyRefused, read: PersonPolicy) -> tuple[dict[str, str], list[str]]:
    """The faults of an agent's fields by their names, and the lines of all others."""
    beside: dict[str, str] = {}
    others = []
    prefix = f"{read.file}: {shown_key(('consult', 'agents', agent))}."
    for line in refused.lines:
        name, colon, fault = line.removeprefix(prefix).partition(": ")
        if line.startswith(prefix) and colon:
            beside.setdefault(name, fault)
        else:
            others.append(line)
    return beside, others
