"""The policy in force: the shipped file, then the person's, then the project's, which may only narrow."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from baton.contract.errors import InvalidInput
from baton.policy.bundle import MARK, bundle_root
from baton.policy.faults import KeyPath, describe, entries_of, fault_path, refusal, shown_key
from baton.policy.layer import (
    PERSON_FILE,
    Layer,
    LayerName,
    Origin,
    own_layer,
    read_own_layer,
    read_project_layer,
)
from baton.policy.model import Policy
from baton.policy.narrowing import FIXED, Narrowing, shown
from baton.policy.references import broken_references


@dataclass(frozen=True)
class LayeredPolicy:
    """The policy in force, and where each of its values comes from."""

    policy: Policy
    origins: Mapping[KeyPath, Origin]
    """By key, such as `("deadlines", "idle_seconds")`; a table's is the file that first has it."""
    layers: tuple[Origin, ...]
    """Every file that was read, each over those before it."""

    def origin(self, key: str) -> Origin:
        """Where the value of a dotted key comes from, such as `deadlines.idle_seconds`."""
        return _origin(self.origins, tuple(key.split(".")))

    def values(self) -> Iterator[tuple[str, Any, Origin]]:
        """Every key with its value and origin, table by table."""
        for path, value in _leaves(self.policy.model_dump(mode="json")):
            yield shown_key(path), value, _origin(self.origins, path)


def person_home(env: Mapping[str, str] | None = None) -> Path:
    """The person's own Codex home, which holds their policy; `env` is this process's when None."""
    env = os.environ if env is None else env
    named = env.get("CODEX_HOME")
    return Path(named) if named else Path(env.get("HOME") or Path.home()) / ".codex"


def load_policy(codex_home: Path | None, project: Path | None, bundle: Path | None = None) -> Policy:
    """The policy in force for a person's Codex home and a project's folder; None leaves that layer out.

    Raises `InvalidInput`, one line that names file, key and what is expected, for any fault in any layer.
    """
    return load_layers(codex_home, project, bundle).policy


def load_layers(codex_home: Path | None, project: Path | None, bundle: Path | None = None) -> LayeredPolicy:
    """As `load_policy`, with the origin of every value; `bundle` is the folder that ships the defaults."""
    shipped = _shipped(bundle)
    person = read_own_layer(LayerName.PERSON, codex_home / PERSON_FILE) if codex_home else None
    own = [shipped, person] if person else [shipped]
    trusted = _combine(own)
    foreign = read_project_layer(project) if project else None
    if foreign is None:
        return trusted
    wanted = _combine([*own, foreign])
    widening = [_widening(trusted.policy, wanted.policy, path) for path, _ in _leaves(foreign.data)]
    faults = [(foreign.origin.file, text) for text in widening if text]
    if faults:
        raise refusal(faults)
    return wanted


def with_person_content(content: bytes | None, file: Path, bundle: Path | None = None) -> LayeredPolicy:
    """As `load_layers` without a project, were this the content of the person's file; None: no file."""
    layers = [_shipped(bundle)]
    if content is not None:
        layers.append(own_layer(LayerName.PERSON, file, content))
    return _combine(layers)


def _shipped(bundle: Path | None) -> Layer:
    file = (bundle or bundle_root()) / MARK
    shipped = read_own_layer(LayerName.SHIPPED, file)
    if shipped is None:
        raise InvalidInput(f"{file}: missing; install Baton again")
    return shipped


def recorded_policy(recorded: Mapping[str, Any], bundle: Path | None = None) -> Policy:
    """The policy that a run was admitted with, as its record has it.

    What the version that recorded it did not know yet has its shipped value. Raises `InvalidInput`, one line,
    for keys that this version does not know (any more).
    """
    try:
        return Policy.model_validate(recorded)
    except ValidationError:
        shipped = _shipped(bundle)
        layer = Layer(Origin(LayerName.RECORDED, Path("the record of the run")), dict(recorded))
        return _combine([shipped, layer]).policy


def _combine(layers: Sequence[Layer]) -> LayeredPolicy:
    merged: dict[str, Any] = {}
    origins: dict[KeyPath, Origin] = {(): layers[0].origin}
    for layer in layers:
        _lay_over(merged, layer.data, layer.origin, origins, ())
    try:
        policy = Policy.model_validate(merged)
    except ValidationError as error:
        raise refusal(
            (_origin(origins, path).file, describe(fault, entries_of(merged, path)))
            for fault in error.errors(include_url=False)
            for path in [fault_path(fault)]
        ) from None
    broken = broken_references(policy)
    if broken:
        raise refusal((_origin(origins, path).file, f"{shown_key(path)}: {text}") for path, text in broken)
    return LayeredPolicy(policy, origins, tuple(layer.origin for layer in layers))


def _lay_over(
    below: dict[str, Any],
    above: Mapping[str, Any],
    origin: Origin,
    origins: dict[KeyPath, Origin],
    at: KeyPath,
) -> None:
    for key, value in above.items():
        path = (*at, key)
        if not isinstance(value, dict):
            below[key] = value
            origins[path] = origin
            continue
        if not isinstance(below.get(key), dict):
            below[key] = {}
            origins[path] = origin
        _lay_over(below[key], value, origin, origins, path)


def _widening(trusted: Policy, wanted: Policy, path: KeyPath) -> str | None:
    """Why a project may not set the key at `path` as it wants to, with what is allowed; None when it may."""
    current: Any = trusted
    aim: Any = wanted
    rule = FIXED
    for step, key in enumerate(path, start=1):
        if isinstance(current, dict):
            if key not in current:
                known = ", ".join(current) or "none"
                return f"{shown_key(path[:step])}: a project may not add an entry; allowed: {known}"
            current, aim = current[key], aim[key]
        else:
            rule = _rule(current, key)
            current, aim = getattr(current, key), getattr(aim, key)
    allowed = rule.widens(current, aim)
    return f"{shown_key(path)}: a project may not set {shown(aim)}; allowed: {allowed}" if allowed else None


def _rule(table: BaseModel, key: str) -> Narrowing:
    rules = [entry for entry in type(table).model_fields[key].metadata if isinstance(entry, Narrowing)]
    # A key without a rule is one that nobody thought about: the person's alone.
    return rules[0] if rules else FIXED


def _leaves(table: Mapping[str, Any], at: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*at, key))
        else:
            yield (*at, key), value


def _origin(origins: Mapping[KeyPath, Origin], path: KeyPath) -> Origin:
    while path not in origins:
        path = path[:-1]
    return origins[path]
