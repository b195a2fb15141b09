"""The `review` table of the policy."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from baton.policy.narrowing import FIXED, MAX, SUBSET, SUPERSET, ordered
from baton.policy.section import LOOSE, Bytes, FolderPath, Line, Name, Section, unique


class ReviewRules(Section):
    """Reviews by other agents, with a checkpoint before anything is sent. They need `[consult]` as well."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether work may be sent to other agents for review."""
    reviewers: Annotated[tuple[Name, ...], LOOSE, AfterValidator(unique), FIXED]
    """The agents of a standard review, of which the first that can be asked is; empty: the best score."""
    deep_reviewers: Annotated[tuple[Name, ...], LOOSE, AfterValidator(unique), FIXED]
    """The agents of a deep review; empty: the best scores, up to `max_reviewers`."""
    max_reviewers: Annotated[Annotated[int, Field(ge=1, le=5)], MAX]
    """Agents that one review may ask."""
    roots: Annotated[tuple[FolderPath, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Folders that material may come from, repositories with all their data; `.` is the session's folder."""
    max_material_bytes: Annotated[Bytes, MAX]
    """Material of one review."""
    checklist: Annotated[tuple[Line, ...], LOOSE, AfterValidator(unique), FIXED]
    """Mistakes that every reviewer is told to look for."""
    escalate: Annotated[tuple[Line, ...], LOOSE, AfterValidator(unique), SUPERSET]
    """Patterns as in .gitignore: where a standard review touches one, the plan suggests a deep one."""
    confirmation: Annotated[Literal["token", "person"], ordered("token", "person")]
    """`token`: a one-time token where no person can be asked; `person`: only a person's own answer counts."""
    secrets: Annotated[Literal["ask", "refuse"], ordered("ask", "refuse")]
    """Code with what looks like credentials: `ask` sends it when the person agrees, `refuse` never does."""
    max_fix_rounds: Annotated[Annotated[int, Field(ge=0, le=100)], MAX]
    """Rechecks of one review, one after the other."""
    max_turns: Annotated[Annotated[int, Field(ge=1, le=100)], MAX]
    """Questions of one review put to agents, repairs and retries included."""
