"""One event in a few words, for people.

The text is foreign and as it is: the door that shows it makes it harmless.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tell(kind: str, data: Mapping[str, Any]) -> str:
    """What happened. Kinds without words of their own are told by name, with what they carry."""
    match kind:
        case "worker.command":
            code = data.get("exitCode")
            return f"$ {data.get('command', '')}" + ("" if code in (None, 0) else f" (exit {code})")
        case "worker.message":
            return f"says: {data.get('text', '')}"
        case "worker.patch":
            return f"patches {_many(data.get('files'), 'file')}"
        case "worker.notice":
            return f"notice: {data.get('message', '')}"
        case "worker.turn_started":
            return "turn started"
        case "check":
            return f"check {data.get('status')}: {data.get('command', '')}"
        case "attempt.planned":
            why = data.get("why")
            return f"attempt planned: {data.get('attemptKind')}" + (f" ({why})" if why else "")
        case "task.paused":
            return f"waits {data.get('seconds')} s: {data.get('why')}"
        case "attempt.decided":
            return f"{data.get('action')}: {data.get('why')}"
        case "run.interrupted" | "integration.held" | "integration.moved":
            why = data.get("why") or data.get("reason") or data.get("detail")
            return f"{_named(kind)}: {why}" if why else _named(kind)
        case "integration.applied":
            return f"applied {_many(data.get('paths'), 'path')}"
        case "integration.merged" | "integration.reduced":
            left_out = data.get("leftOut") or []
            more = f", left out: {', '.join(map(str, left_out))}" if left_out else ""
            return f"merged {', '.join(map(str, data.get('tasks') or []))}{more}"
    verdict = data.get("verdict")
    return f"{_named(kind)}: {verdict}" if verdict else _named(kind)


def _named(kind: str) -> str:
    return kind.replace(".", " ").replace("_", " ")


def _many(count: object, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
