"""How the scripted service speaks OpenAI's chat completions: whole answers and streams."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 7,
    "total_tokens": 107,
    "prompt_tokens_details": {"cached_tokens": 30},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


class Writer:
    """Answers to one request."""

    def __init__(self, model: str, tools: tuple[str, ...]) -> None:
        self.model = model

    def said(self, text: str, reason: str | None = None) -> dict[str, Any]:
        """A message with this text."""
        return {"message": {"role": "assistant", "content": text}, "finish_reason": reason or "stop"}

    def called(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A message that calls a tool."""
        function = {"name": tool, "arguments": json.dumps(dict(arguments))}
        called = {"id": f"call_{tool}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [called]}
        return {"message": message, "finish_reason": "tool_calls"}

    def plain(self, answer: dict[str, Any]) -> dict[str, Any]:
        return {**self._head("chat.completion"), "choices": [{"index": 0, **answer}], "usage": USAGE}

    def stream(self, answer: dict[str, Any]) -> str:
        """The whole answer as server-sent events."""
        message = dict(answer["message"])
        if "tool_calls" in message:
            message["tool_calls"] = [
                {"index": index, **called} for index, called in enumerate(message["tool_calls"])
            ]
        chunks = [
            self._chunk([{"index": 0, "delta": message, "finish_reason": None}]),
            self._chunk([{"index": 0, "delta": {}, "finish_reason": answer["finish_reason"]}]),
            self._chunk([], usage=USAGE),
        ]
        return "".join(chunks) + "data: [DONE]\n\n"

    def start(self, text: str) -> str:
        """A stream that begins well, and has no finish reason yet."""
        delta = {"role": "assistant", "content": text}
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])

    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> str:
        return f"data: {json.dumps({**self._head('chat.completion.chunk'), 'choices': choices, **more})}\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "chat_simulated", "object": kind, "created": 1, "model": self.model}
