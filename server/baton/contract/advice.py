"""Whether work is worth delegating: what the supervisor declares of it, and what that speaks for."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from baton.contract.base import Wire


class Seams(StrEnum):
    """How well the work can be cut from what surrounds it."""

    CLEAR = "clear"
    PARTIAL = "partial"
    NONE = "none"


class Fit(StrEnum):
    """How hard it will be to fit the result in."""

    EASY = "easy"
    HARD = "hard"


class Proof(StrEnum):
    """What shows that the work is done."""

    COMMAND = "command"
    MANUAL = "manual"
    NONE = "none"


class Facts(Wire):
    """What a supervisor knows of the work before it delegates; whatever is left out is unknown."""

    seams: Seams | None = None
    size_lines: Annotated[int, Field(ge=0)] | None = None
    """Lines that will change, roughly."""
    shared_state: bool | None = None
    """Whether the pieces decide or change the same things."""
    integration: Fit | None = None
    verification: Proof | None = None


class Choice(StrEnum):
    """What the facts speak for."""

    SOLO = "solo"
    DELEGATE = "delegate"
    EITHER = "either"


class Advice(Wire):
    """A choice with its reasons. It is recorded and refuses nothing."""

    choice: Choice
    reasons: list[str]
