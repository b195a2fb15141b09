"""What Baton answers when the app-server asks something: no, always."""

from __future__ import annotations

_ANSWERS: dict[str, dict[str, object]] = {
    "item/commandExecution/requestApproval": {"decision": "decline"},
    "item/fileChange/requestApproval": {"decision": "decline"},
    "item/permissions/requestApproval": {"permissions": {}},
    "item/tool/requestUserInput": {"answers": {}},
    "mcpServer/elicitation/request": {"action": "decline"},
    "applyPatchApproval": {"decision": "denied"},
    "execCommandApproval": {"decision": "denied"},
}


def answer(method: str) -> dict[str, object]:
    """The `result` or `error` member for a request of the app-server.

    Approvals are declined, because an approved command runs outside the sandbox. Whatever is not known gets
    an error, so that nothing waits for us.
    """
    known = _ANSWERS.get(method)
    if known is not None:
        return {"result": known}
    return {"error": {"code": -32601, "message": f"{method} is not available here"}}
