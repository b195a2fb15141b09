"""What one `codex exec` gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Exec:
    """One finished `codex exec`."""

    exit_code: int
    events: list[dict[str, object]]
    stderr: str

    @property
    def message(self) -> str:
        texts = [
            item["text"]
            for event in self.events
            if event["type"] == "item.completed"
            and isinstance(item := event["item"], dict)
            and item["type"] == "agent_message"
        ]
        return str(texts[-1]) if texts else ""
