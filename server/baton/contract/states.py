"""The closed vocabularies of a run: states, verdicts, intents and failure classes."""

from enum import StrEnum


class RunState(StrEnum):
    """Where a run is. `done`, `held`, `cancelled`, `interrupted` and `failed` are at rest; none is a trap."""

    QUEUED = "queued"
    RUNNING = "running"
    INTEGRATING = "integrating"
    DONE = "done"
    HELD = "held"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    FAILED = "failed"

    @property
    def at_rest(self) -> bool:
        return self not in (RunState.QUEUED, RunState.RUNNING, RunState.INTEGRATING)


class TaskState(StrEnum):
    """Where a task is inside its run."""

    QUEUED = "queued"
    WORKING = "working"
    VERIFYING = "verifying"
    DONE = "done"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def at_rest(self) -> bool:
        return self not in (TaskState.QUEUED, TaskState.WORKING, TaskState.VERIFYING)


class Verdict(StrEnum):
    """What Baton concludes of one attempt from what it observed itself."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    NO_CHANGE = "no_change"
    BLOCKED = "blocked"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


class ChangeIntent(StrEnum):
    """Whether the task is meant to change files."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    FORBIDDEN = "forbidden"


class Enforcement(StrEnum):
    """How a boundary holds: the sandbox prevents crossing it, or the captured tree only shows it."""

    PREVENTED = "prevented"
    DETECTED = "detected"


class Integration(StrEnum):
    """What became of a task's or run's result in the workspace."""

    APPLIED = "applied"
    NOTHING = "nothing"
    HELD = "held"
    CONFLICT = "conflict"
    DISCARDED = "discarded"


class FailureClass(StrEnum):
    """Why a turn did not complete; each class has its own policy for what follows."""

    UNKNOWN_MODEL = "unknown_model"
    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    USAGE_LIMIT = "usage_limit"
    CONTEXT_OVERFLOW = "context_overflow"
    OVERLOADED = "overloaded"
    NETWORK = "network"
    BAD_REQUEST = "bad_request"
    CRASH = "crash"
    START_TIMEOUT = "start_timeout"
    IDLE_TIMEOUT = "idle_timeout"
    TURN_TIMEOUT = "turn_timeout"
    RUN_TIMEOUT = "run_timeout"
    ROUTE_MISMATCH = "route_mismatch"
    SCOPE_NOT_ENFORCED = "scope_not_enforced"
    OTHER = "other"
