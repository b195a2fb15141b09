"""Which of a worker's events are worth keeping in the run's record, and in what few words."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from baton.codex.events import Notification

MAX_TEXT = 300
"""Characters kept of a command or message; the whole is in the worker's rollout."""


def worth_noting(event: Notification) -> tuple[str, dict[str, JsonValue]] | None:
    """Kind and data of the event to keep, or None for one that only shows that something goes on."""
    item = event.params.get("item")
    if event.method == "item/completed" and isinstance(item, Mapping):
        return _item(item)
    if event.method == "turn/started":
        return "worker.turn_started", {}
    if event.method == "error":
        error = event.params.get("error")
        text = error.get("message") if isinstance(error, Mapping) else None
        return "worker.notice", {"message": _short(text), "willRetry": bool(event.params.get("willRetry"))}
    return None


def _item(item: Mapping[str, object]) -> tuple[str, dict[str, JsonValue]] | None:
    match item.get("type"):
        case "commandExecution":
            exit_code = item.get("exitCode")
            shown = exit_code if isinstance(exit_code, int) else None
            return "worker.command", {"command": _short(item.get("command")), "exitCode": shown}
        case "fileChange":
            changes = item.get("changes")
            return "worker.patch", {"files": len(changes) if isinstance(changes, list) else 0}
        case "agentMessage":
            return "worker.message", {"text": _short(item.get("text"))}
        case _:
            return None


def _short(value: object) -> str:
    text = " ".join(str(value or "").split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
