"""What crosses the boundary when a job is done in phases: steps, who does them, the call, test reports."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from baton.contract.base import Wire
from baton.contract.consult import Capability
from baton.contract.nearest import nearest
from baton.contract.review import Decision, GivenFinding
from baton.contract.task import Text, Word

WorkflowId = Annotated[str, Field(min_length=1, max_length=40)]
BindingText = Annotated[str, Field(min_length=1, max_length=300)]


class Step(StrEnum):
    """One kind of work in a workflow."""

    RESEARCH = "research"
    PLAN = "plan"
    BRIEF = "brief"
    """The instructions that whoever implements is given."""
    IMPLEMENT = "implement"
    APPLY = "apply"
    TEST = "test"
    REVIEW = "review"
    SYNTHESISE = "synthesise"
    """Weigh the findings: each serious one is given a disposition."""
    FIX = "fix"


class WorkflowState(StrEnum):
    """What a workflow waits for, named by its step; the last three are no step."""

    RESEARCH = "research"
    PLAN = "plan"
    BRIEF = "brief"
    IMPLEMENT = "implement"
    APPLY = "apply"
    TEST = "test"
    REVIEW = "review"
    SYNTHESISE = "synthesise"
    FIX = "fix"
    APPLY_FIX = "apply_fix"
    """As `apply`, for what a fix made: when it does not apply, the fix is made again."""
    COMPLETED = "completed"
    NEEDS_ATTENTION = "needs_attention"
    """Something is open and no round is left; a replan goes on."""
    CANCELLED = "cancelled"

    @property
    def step(self) -> Step | None:
        """The step that is due; None when none is."""
        if self is WorkflowState.APPLY_FIX:
            return Step.APPLY
        return next((step for step in Step if step.value == self.value), None)

    @property
    def ended(self) -> bool:
        return self in (WorkflowState.COMPLETED, WorkflowState.CANCELLED)


class StepState(StrEnum):
    """Where one try at a step is."""

    PREVIEWED = "previewed"
    """Shown; nothing was sent."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """It did not do its work, or what it made does not apply; the step can be tried again."""
    DROPPED = "dropped"
    """Its workflow went elsewhere meanwhile."""

    @property
    def at_rest(self) -> bool:
        return self not in (StepState.PREVIEWED, StepState.RUNNING)


class Executor(StrEnum):
    """Who does a step, and how far it reaches."""

    HOST = "host"
    """The session itself, which records what came of it."""
    BATON = "baton"
    """Baton: it runs the tests, or lands what an isolated worker did."""
    ASK = "ask"
    """Another agent answers; for a review it reviews."""
    PATCH = "patch"
    """Another agent answers with a patch, which touches nothing until it is applied."""
    ISOLATED = "isolated"
    """A Baton worker writes in a worktree of its own, inside the workflow's scope."""
    SKIP = "skip"

    @property
    def delegated(self) -> bool:
        """Whether the step leaves the session: it is previewed first, and counts as spending."""
        return self in (Executor.ASK, Executor.PATCH, Executor.ISOLATED)


EXECUTORS: dict[Step, tuple[Executor, ...]] = {
    Step.RESEARCH: (Executor.SKIP, Executor.HOST, Executor.ASK),
    Step.PLAN: (Executor.HOST, Executor.ASK),
    Step.BRIEF: (Executor.HOST, Executor.ASK),
    Step.IMPLEMENT: (Executor.HOST, Executor.PATCH, Executor.ISOLATED),
    Step.APPLY: (Executor.HOST, Executor.BATON),
    Step.TEST: (Executor.HOST, Executor.BATON),
    # The product of a review is written by the review service alone, so the session cannot have it.
    Step.REVIEW: (Executor.ASK,),
    Step.SYNTHESISE: (Executor.HOST, Executor.ASK),
    Step.FIX: (Executor.HOST, Executor.PATCH, Executor.ISOLATED),
}
"""Who may do which step."""

CAPABILITIES: dict[Step, Capability] = {
    Step.RESEARCH: Capability.RESEARCH,
    Step.PLAN: Capability.PLANNING,
    Step.BRIEF: Capability.PROMPT_AUTHORING,
    Step.IMPLEMENT: Capability.CODING,
    Step.FIX: Capability.CODING,
    Step.REVIEW: Capability.REVIEW,
    Step.SYNTHESISE: Capability.SYNTHESIS,
}
"""The score by which a step without a named agent is routed."""

MAX_REVIEWERS = 5

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Binding(Wire):
    """Who does a step, as it is configured: `host`, `baton`, `skip`, `ask:claude`, `isolated:role`."""

    executor: Executor
    names: list[str] = []
    """Agents, or the role of a worker; empty: routed automatically."""

    @property
    def text(self) -> str:
        return f"{self.executor.value}:{','.join(self.names)}" if self.names else self.executor.value


def read_binding(step: Step, text: str) -> Binding:
    """Read a binding. Raises `ValueError`, one line, for what the step cannot be bound to."""
    word, colon, rest = text.strip().partition(":")
    allowed = EXECUTORS[step]
    executor = next((one for one in allowed if one.value == word), None)
    if executor is None:
        hint = nearest(word, [one.value for one in allowed])
        known = ", ".join(one.value for one in allowed)
        advice = f"did you mean {hint!r}? " if hint else ""
        raise ValueError(f"{step.value} cannot be bound to {text!r}; {advice}it takes {known}")
    names = [name.strip() for name in rest.split(",")] if colon else []
    if not executor.delegated and colon:
        raise ValueError(f"{step.value}: {word} takes no name, so {text!r} mixes two kinds of binding")
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{step.value}: {name!r} in {text!r} is not a name")
    most = MAX_REVIEWERS if step is Step.REVIEW else 1
    if len(names) > most or len(set(names)) != len(names):
        raise ValueError(f"{step.value}: {text!r} names too many, or one twice; at most {most}")
    return Binding(executor=executor, names=names)


class WorkflowAction(StrEnum):
    """What `workflow` does."""

    START = "start"
    NEXT = "next"
    RECORD = "record"
    STATUS = "status"
    REPLAN = "replan"
    CANCEL = "cancel"


class WorkflowPart(StrEnum):
    """What `status` reads."""

    SUMMARY = "summary"
    STEPS = "steps"
    PRODUCT = "product"
    PROMPT = "prompt"
    PATCH = "patch"
    DIFF = "diff"
    OUTPUT = "output"


class GivenReport(Wire):
    """A test run of the session's own; what it does not hold is no pass."""

    command: Text
    exit_code: int | None = None
    seconds: Annotated[float, Field(ge=0)] | None = None
    output: Word = ""


class WorkflowCall(Wire):
    """Arguments of `workflow`; each action takes some of them."""

    action: WorkflowAction
    id: WorkflowId | None = None
    """For all but start."""
    goal: Text | None = None
    preset: Word | None = None
    bindings: dict[Step, BindingText] = {}
    """start, replan: host, baton, ask:AGENT, patch:AGENT, isolated:ROLE, skip; no name: routed."""
    allowed_files: Annotated[list[Word], Field(max_length=200)] = []
    """start: what may change, as in delegate_task."""
    tests: Annotated[list[Word], Field(max_length=20)] = []
    """start: commands that Baton runs."""
    context_paths: Annotated[list[Word], Field(max_length=100)] = []
    """start: sent with every step; next: with this one."""
    context: Text | None = None
    """next: material for this step."""
    allow_dirty: bool = False
    confirm: Word | None = None
    """next, replan: the token shown."""
    step: Step | None = None
    """record: what is recorded; replan: go back to it; status: whose part."""
    text: Text | None = None
    """record: the step's product, what was done, or the conclusion."""
    commit: Word | None = None
    """record: the commit that holds it."""
    reject: Text | None = None
    """record apply: why the patch is not wanted."""
    report: GivenReport | None = None
    dispositions: Annotated[list[Decision], Field(max_length=500)] = []
    own_findings: Annotated[list[GivenFinding], Field(max_length=100)] | None = None
    """next: yours, before several reviewers are asked."""
    more_rounds: Annotated[int, Field(ge=0, le=100)] = 0
    """replan."""
    workspace: Word | None = None
    what: WorkflowPart = WorkflowPart.SUMMARY
    offset: Annotated[int, Field(ge=0)] = 0
    limit: Annotated[int, Field(ge=1, le=30_000)] = 6_000
    wait_seconds: Annotated[int, Field(ge=0, le=280)] = 240


class ReportedBy(StrEnum):
    """Who says how a test went. Assigned by what wrote the report, never read from it."""

    BATON = "baton"
    """Baton ran it and read the exit status itself."""
    HOST = "host"
    """The session says so: attested, not observed."""


class TestOutcome(StrEnum):
    """How tests went. What has no exit status proves nothing."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class TestRun(Wire):
    """One command of a report."""

    __test__ = False

    command: str
    outcome: TestOutcome
    exit_code: int | None = None
    seconds: float | None = None
    detail: str | None = None
    tail: str = ""


class TestReport(Wire):
    """Tests on one tree."""

    __test__ = False

    outcome: TestOutcome
    reported_by: ReportedBy
    tree: str
    """The tree of the workspace that they ran on."""
    head: str | None = None
    runs: list[TestRun]


def outcome_of(exit_code: int | None) -> TestOutcome:
    """What an exit status says."""
    if exit_code is None:
        return TestOutcome.SKIPPED
    return TestOutcome.PASSED if exit_code == 0 else TestOutcome.FAILED


def overall(outcomes: list[TestOutcome]) -> TestOutcome:
    """Passed when there is something and all of it passed; failed when anything failed."""
    if TestOutcome.FAILED in outcomes:
        return TestOutcome.FAILED
    if not outcomes or TestOutcome.SKIPPED in outcomes:
        return TestOutcome.SKIPPED
    return TestOutcome.PASSED
