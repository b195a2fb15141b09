"""Who works: tiers and roles, when delegating is advised, escalation and prices."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from baton.contract.states import ChangeIntent
from baton.policy.narrowing import FIXED, MAX, SUBSET, ordered
from baton.policy.section import (
    LOOSE,
    LOWER_EFFORT,
    Count,
    Effort,
    Line,
    Name,
    Seconds,
    Section,
    Slug,
    unique,
)


class Root(Section):
    """How the supervising session works."""

    mode: Annotated[Literal["adaptive", "control-plane"], ordered("adaptive", "control-plane")]
    """`adaptive`: small, coupled or obvious work it does itself. `control-plane`: it edits nothing."""


class Routing(Section):
    """Which role a task gets."""

    default_role: Annotated[Name, FIXED]
    """The role of a task that names neither role nor tier."""


class Tier(Section):
    """A family of models, resolved against what the installed Codex lists."""

    family: Annotated[Name, FIXED]
    """The last part of the family's model names: `luna` in `gpt-5.6-luna`."""
    resolve: Annotated[Literal["latest", "pinned"], FIXED]
    """`latest`: the newest listed member of the family. `pinned`: always the model named below."""
    pinned: Annotated[Slug, FIXED]
    """The model for `pinned`, also the one that the tracked skills and agents are rendered with."""
    default_effort: Annotated[Effort, LOWER_EFFORT]
    """The reasoning effort of a task that names this tier and no effort."""


class Role(Section):
    """A kind of worker: its model, its effort and its standing instructions."""

    description: Annotated[Line, FIXED]
    """When to use it, in one line."""
    tier: Annotated[Name, FIXED]
    """The tier it runs on."""
    effort: Annotated[Effort, LOWER_EFFORT]
    """Its reasoning effort."""
    change_intent: Annotated[ChangeIntent, LOOSE, FIXED, Field(title="Change Intent")]
    """Whether its tasks are meant to change files: `required`, `optional` or `forbidden`."""
    template: Annotated[Name, FIXED]
    """The standing instructions: a file of `policy/templates/roles/`, without `.md.j2`."""
    instructions: Annotated[str, Field(max_length=20_000), FIXED]
    """More instructions, added after the template's; may be empty."""


class AdviceRules(Section):
    """From what size on work is worth a worker. Advice refuses nothing."""

    solo_lines: Annotated[Count, FIXED]
    """Up to so many changed lines the supervisor is advised to do the work itself."""
    delegate_lines: Annotated[Count, FIXED]
    """From so many changed lines on, delegating is advised even where the work is coupled."""


class Escalation(Section):
    """What Baton does by itself when an attempt did not succeed; the ladder's rungs are in its table."""

    max_steps: Annotated[Annotated[int, Field(ge=0, le=10)], MAX]
    """Attempts at a higher effort or tier in the life of a task; 0 leaves the decision to the supervisor."""
    max_effort: Annotated[Effort, LOWER_EFFORT]
    """The highest effort that is chosen by itself."""
    tiers: Annotated[tuple[Name, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Tiers from the weakest to the strongest; none beyond the last is chosen by itself."""
    max_waits: Annotated[Annotated[int, Field(ge=0, le=10)], MAX]
    """How often a task waits for a service that limits, is overloaded or out of reach."""
    wait_seconds: Annotated[Seconds, MAX]
    """The longest single wait; a service that asks for more ends the task."""
    other_model: Annotated[bool, ordered(True, False)]
    """Whether another model of the same family takes over when the service does not know the tier's."""


class Price(Section):
    """What a model costs, per million tokens, in the person's own currency."""

    input: Annotated[Annotated[float, Field(ge=0, le=1e6)], FIXED]
    """Input that was not cached."""
    cached_input: Annotated[Annotated[float, Field(ge=0, le=1e6)], FIXED]
    """Input that was cached."""
    output: Annotated[Annotated[float, Field(ge=0, le=1e6)], FIXED]
    """Output, reasoning included."""
