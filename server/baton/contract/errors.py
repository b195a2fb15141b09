"""The errors a person or a supervising model can meet; each reads as one line."""

from __future__ import annotations

from collections.abc import Sequence


class BatonError(Exception):
    """Base of every expected error.

    The message is one line that says what was wrong, where, and what to do. Doors (the MCP server, the
    command line) print it as it is and never show a traceback for it. `code` is a stable machine-readable
    name of the kind of error.
    """

    code = "error"

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    @property
    def message(self) -> str:
        return str(self)


class InvalidInput(BatonError):
    """Raised at admission for a bad argument, file or configuration; nothing has been created.

    The caller mends the input and calls again. For a machine that lacks something, see `Unsupported`.
    """

    code = "invalid_input"


class Unsupported(BatonError):
    """Raised when this machine, repository or version cannot do what was asked; trying again is useless."""

    code = "unsupported"


class NotFound(BatonError):
    """Raised when an id or name is unknown; the message names how to list the known ones."""

    code = "not_found"


class Busy(BatonError):
    """Raised when another process holds a lock longer than the deadline; nothing was changed, try again."""

    code = "busy"


class StateUnavailable(BatonError):
    """Raised when Baton's state folder cannot be used: disk full, read-only, newer schema, damaged database.

    Nothing was changed. The message says which, where, and how to get out of it.
    """

    code = "state_unavailable"


class WrongState(BatonError):
    """Raised when an action does not fit the state of a run or task; the message names those that do."""

    code = "wrong_state"


class WorkspaceMoved(BatonError):
    """Raised by apply when the workspace differs from the snapshot; nothing was changed.

    The engine takes a new snapshot and merges again, at most three times, then holds the result.
    """

    code = "workspace_moved"

    def __init__(self, message: str, kept: Sequence[str] = ()) -> None:
        """`kept` are lines on content that was set aside because it was edited just then, and where it is."""
        super().__init__(message)
        self.kept = tuple(kept)


class CodexFailure(BatonError):
    """Raised when the Codex program could not be started or stopped answering.

    A turn that ends as failed is not this error: it is an outcome with a `FailureClass`.
    """

    code = "codex_failure"


class NotAllowed(BatonError):
    """Raised when the person's policy forbids what was asked; the message names the key. Nothing was sent."""

    code = "not_allowed"


class NoAgent(BatonError):
    """Raised when no agent may be asked; the message says for each one why. Nothing was sent."""

    code = "no_agent"


class SpendLimit(BatonError):
    """Raised before anything is sent when a ceiling of `[consult.spend]` is reached."""

    code = "spend_limit_reached"
