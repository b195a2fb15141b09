"""What the ledger keeps of workflows. Times are seconds since 1970."""

from __future__ import annotations

from baton.contract.workflow import Step as WorkflowStep
from baton.contract.workflow import StepState, TestReport, WorkflowState
from baton.ledger.records import JsonObject, PathText, Record


class WorkflowRecord(Record):
    """One workflow: what it is to do, under which terms, and where it is."""

    workflow_id: str
    workspace: PathText
    repo_key: str
    """Names the private repository that keeps its trees."""
    goal: str
    state: WorkflowState = WorkflowState.RESEARCH
    round: int = 0
    """Fix rounds begun."""
    terms: JsonObject = {}
    """Bindings as they were resolved, and the policy, both as they were at the start or the last replan."""
    base: str
    """The commit in the private repository that keeps the workspace as it was at the start."""
    base_head: str | None = None
    """The person's HEAD then."""
    session: JsonObject = {}
    replan_token: str | None = None
    """Hash of the one-time token of a replan that was shown."""
    note: str | None = None
    """One line on why it is where it is."""
    created_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None


class WorkflowStepRecord(Record):
    """One try at a step: written before anything is sent, completed as things become known."""

    workflow_id: str
    number: int = 0
    """From 1, given by the ledger: the order in which they happened."""
    step: WorkflowStep
    round: int = 0
    binding: JsonObject = {}
    """Who does it, as resolved."""
    state: StepState = StepState.PREVIEWED
    request: JsonObject = {}
    """What is sent, whole."""
    approval: str = ""
    """Hash of all that was shown."""
    token: str | None = None
    """Hash of the one-time token; None once it is spent."""
    consultation_id: str | None = None
    run_id: str | None = None
    review_id: str | None = None
    product: str | None = None
    """What came of it, as text."""
    base: str | None = None
    """The commit that its work starts from."""
    result: str | None = None
    """The commit that keeps what it made: the patch is the difference from `base`."""
    tree: str | None = None
    """The tree of the workspace when it was done."""
    commit: str | None = None
    """The person's commit that was found to hold it."""
    report: TestReport | None = None
    output: str | None = None
    """What the tests printed, the end of it where that is long."""
    detail: str | None = None
    """One line on how it came to rest."""
    created_at: float = 0.0
    started_at: float | None = None
    ended_at: float | None = None
