"""The ways in which a conversation with the app-server itself can break down."""

from __future__ import annotations

from baton.contract.errors import CodexFailure
from baton.contract.evidence import TurnFailure


class ServerDied(CodexFailure):
    """Raised to everyone who waits when the app-server has ended or its output has; start a new one."""

    code = "codex_died"


class NoAnswer(CodexFailure):
    """Raised when a request got no answer in time; the server may still be alive."""

    code = "codex_no_answer"


class RequestRefused(CodexFailure):
    """Raised when the app-server answered a request with an error."""

    code = "codex_refused"

    def __init__(self, method: str, rpc_code: int | None, text: str) -> None:
        super().__init__(f"Codex refused {method}: {text}")
        self.rpc_code = rpc_code
        self.text = text


class ThreadRefused(CodexFailure):
    """Raised when a thread could not be started as asked; `failure` tells its class.

    The thread, if there is one, has not been given any work.
    """

    code = "codex_thread_refused"

    def __init__(self, failure: TurnFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure
