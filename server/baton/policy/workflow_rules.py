"""The `workflow` table of the policy."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from baton.contract.workflow import Step
from baton.policy.narrowing import FIXED, MAX, SUBSET, ordered
from baton.policy.section import LOOSE, Bytes, Dollars, FolderPath, Line, Name, Section, unique

StepBindings = Annotated[
    dict[Annotated[Step, LOOSE], Line],
    FIXED,
    Field(description="Who does which step."),
]
"""Who does which step, as `read_binding` takes it."""


class WorkflowSpend(Section):
    """Ceilings of one workflow, looked at before each step that leaves the session. 0 sets none."""

    max_cost_per_workflow: Annotated[Dollars, FIXED]
    """US dollars, as its agents report them."""
    max_turns_per_workflow: Annotated[Annotated[int, Field(ge=0, le=10_000)], FIXED]
    """Questions put to agents, reviewers included, and attempts of isolated workers."""


class WorkflowRules(Section):
    """Whole jobs in phases. They need `[consult]` and `[review]` as well."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether there are workflows at all."""
    roots: Annotated[tuple[FolderPath, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Folders that a workflow's folder must lie in; `.` is the session's own folder."""
    max_fix_rounds: Annotated[Annotated[int, Field(ge=0, le=100)], MAX]
    """Rounds of fixing, after which what is still open needs attention."""
    advance_on_failed_test: Annotated[bool, ordered(True, False)]
    """Have failed work reviewed instead of fixed first; it is never completed while tests fail."""
    different_from_implementer: Annotated[bool, ordered(False, True)]
    """Every reviewer is provably another model than whoever implements or fixes."""
    different_from_planner: Annotated[bool, ordered(False, True)]
    """Every reviewer is provably another model than whoever plans."""
    max_patch_bytes: Annotated[Bytes, MAX]
    """A patch that an agent answers with."""
    tests: Annotated[tuple[Line, ...], LOOSE, AfterValidator(unique), FIXED]
    """Commands that Baton runs as tests where a workflow names none."""
    bindings: Annotated[StepBindings, FIXED]
    """Who does which step."""
    presets: Annotated[dict[Name, StepBindings], FIXED]
    """Bindings by name, which a workflow may start with; each names only the steps that it changes."""
    spend: WorkflowSpend
