"""Who asks and who is asked: whether an agent is provably somebody else than the host. Pure.

An identity is a runtime and a model. On another runtime it is another identity. On the same one the two
models must be provably different: both names carry a version, and neither can be another spelling of the
other. What cannot be proved is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAKERS = ("claude", "anthropic", "openai", "google", "meta", "mistralai")
_SERVERS = ("bedrock", "vertex", "azure", "openrouter", "models", "us", "eu", "apac", "global")
_VARIANTS = (
    *(
        "latest",
        "preview",
        "beta",
        "exp",
        "experimental",
        "thinking",
        "fast",
        "turbo",
        "auto",
        "free",
        "online",
    ),
    *("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra", "v"),
)
_NO_FAMILY = frozenset((*_MAKERS, *_SERVERS, *_VARIANTS))
"""Words that do not make another model."""

_DATE = re.compile(r"(?<!\d)20\d\d-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)")


@dataclass(frozen=True)
class Identity:
    """A runtime and the model in it; None where it is not known."""

    runtime: str
    model: str | None


@dataclass(frozen=True)
class Host:
    """Who asks. `models` are all names known for its model: the configured and the reported one."""

    runtime: str
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelName:
    """A model's name taken apart: the words of its family, and the numbers of its version in their order."""

    family: frozenset[str]
    version: tuple[int, ...]


def parse_model(name: str) -> ModelName:
    """Take a name apart; spellings of the same model come out the same.

    Providers before a `/`, suffixes in brackets, dates of snapshots, words that vary without making another
    model, and zeros at the end of a version say nothing.
    """
    plain = re.sub(r"\[[^\]]*\]|@.*$", "", name.strip().lower()).rpartition("/")[2]
    parts = re.findall(r"[a-z]+|\d+", _DATE.sub(" ", plain))
    version = [int(part) for part in parts if part.isdigit()]
    while len(version) > 1 and version[-1] == 0:
        version.pop()
    return ModelName(
        frozenset(part for part in parts if not part.isdigit() and part not in _NO_FAMILY), tuple(version)
    )


def not_somebody_else(agent: Identity, host: Host) -> str | None:
    """Why the host may not ask this agent; None when the two are provably different."""
    if agent.runtime != host.runtime:
        return None
    if not host.models:
        return (
            f"it runs on {host.runtime} like the session that asks, whose model is not known; name that in"
            " consult.host_model"
        )
    if agent.model is None:
        return (
            f"it runs on {host.runtime} like the session that asks, with whatever model that uses by default;"
            " give it a model with a version"
        )
    for model in host.models:
        why = _why_same(agent.model, model)
        if why is not None:
            return f"it runs on {host.runtime} like the session that asks, and {why}"
    return None


def same_agent(one: Identity, other: Identity) -> bool:
    """Whether two agents cannot be told apart: the same runtime, and models not provably different."""
    if one.runtime != other.runtime:
        return False
    if one.model is None or other.model is None:
        return one.model == other.model
    return _why_same(one.model, other.model) is not None


def _why_same(name: str, host: str) -> str | None:
    agent, own = parse_model(name), parse_model(host)
    for unversioned, model in ((name, agent), (host, own)):
        if not model.version:
            return f"{unversioned!r} has no version, so that it cannot be proved to be another model"
    if agent.version == own.version and (agent.family <= own.family or own.family <= agent.family):
        return f"{name!r} is the session's own model" if agent == own else f"{name!r} may be {host!r}"
    return None
