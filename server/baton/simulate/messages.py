"""How the scripted service speaks Anthropic's messages: whole answers and streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

STRUCTURED = "StructuredOutput"
"""The tool through which Claude Code takes an answer of a given shape."""

USAGE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 30,
    "output_tokens": 7,
}

_REASONS = {"length": "max_tokens", "content_filter": "refusal"}


class Writer:
    """Answers to one request. A text goes through the tool for structured answers where it is offered."""

    def __init__(self, model: str, tools: tuple[str, ...]) -> None:
        self.model = model
        self._tools = tools

    def said(self, text: str, reason: str | None = None) -> dict[str, Any]:
        """A message with this text."""
        if reason is None and STRUCTURED in self._tools:
            try:
                return self.called(STRUCTURED, json.loads(text))
            except ValueError:
                pass  # a model that answers with prose all the same
        block = {"type": "text", "text": text}
        return self._message([block], _REASONS.get(reason or "", "end_turn"))

    def called(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A message that calls a tool."""
        block = {"type": "tool_use", "id": f"toolu_{tool}", "name": tool, "input": dict(arguments)}
        return self._message([block], "tool_use")

    def plain(self, answer: dict[str, Any]) -> dict[str, Any]:
        return answer

    def stream(self, answer: dict[str, Any]) -> str:
        """The whole message as server-sent events."""
        block, reason = answer["content"][0], answer["stop_reason"]
        closing: list[dict[str, Any]] = [
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": USAGE["output_tokens"]},
            },
            {"type": "message_stop"},
        ]
        return self._opening(block) + "".join(map(_event, closing))

    def start(self, text: str) -> str:
        """A stream that begins well, up to the end of its text."""
        return self._opening({"type": "text", "text": text})

    def _opening(self, block: Mapping[str, Any]) -> str:
        if block["type"] == "tool_use":
            empty: dict[str, Any] = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        head = {**self._message([], None), "usage": {**USAGE, "output_tokens": 1}}
        opening: list[dict[str, Any]] = [
            {"type": "message_start", "message": head},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
        ]
        return "".join(map(_event, opening))

    def _message(self, content: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
        return {
            "id": "msg_simulated",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": USAGE,
        }


def _event(event: Mapping[str, Any]) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
