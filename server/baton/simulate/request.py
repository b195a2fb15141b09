"""One model request as a script sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class ToolOutput:
    """What an earlier tool call of the thread gave back, as the model reads it."""

    call_id: str
    text: str

    @property
    def exit_code(self) -> int | None:
        """Exit status of a shell command; None when it is still running or was no command."""
        found = re.search(r'"exit_code":\s*(-?\d+)|Process exited with code (-?\d+)', self.text)
        return int(found.group(1) or found.group(2)) if found else None


@dataclass(frozen=True)
class Request:
    """One `POST` of Codex. Header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    number: int
    """Position among the requests of the same thread, from 0."""

    @property
    def thread_id(self) -> str:
        """The Codex thread; one request without any mark of a thread is a thread of its own."""
        return self.headers.get("thread-id") or str(self.body.get("prompt_cache_key") or "")

    @property
    def turn_id(self) -> str:
        """The turn within the thread: retries of one request carry the same."""
        return str(self.turn_metadata.get("turn_id", ""))

    @property
    def kind(self) -> str:
        """`turn` for the work itself; Codex also asks for compactions and the like."""
        return str(self.turn_metadata.get("request_kind", "turn"))

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def effort(self) -> str | None:
        reasoning = self.body.get("reasoning")
        effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
        return effort if isinstance(effort, str) else None

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON schema that the final message is to follow."""
        text = self.body.get("text")
        form = text.get("format") if isinstance(text, dict) else None
        schema = form.get("schema") if isinstance(form, dict) else None
        return schema if isinstance(schema, dict) else None

    @cached_property
    def turn_metadata(self) -> dict[str, Any]:
        try:
            data = json.loads(self.headers.get("x-codex-turn-metadata", "{}"))
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}

    @property
    def items(self) -> list[dict[str, Any]]:
        """The input items."""
        return [item for item in self.body.get("input", []) if isinstance(item, dict)]

    @property
    def code_mode(self) -> bool:
        """True when the model's tools are called from JavaScript."""
        return any(item.get("type") == "additional_tools" for item in self.items)

    @cached_property
    def text(self) -> str:
        """All text of the messages in the input, in order."""
        return "\n".join(
            text for item in self.items if item.get("type") == "message" for text in _texts(item)
        )

    @property
    def prompt(self) -> str:
        """The last message of the user."""
        for item in reversed(self.items):
            if item.get("type") == "message" and item.get("role") == "user":
                return "\n".join(_texts(item))
        return ""

    @property
    def cwd(self) -> str | None:
        """The working directory that Codex tells the model."""
        found = re.findall(r"<cwd>(.*?)</cwd>", self.text)
        return found[-1] if found else None

    @property
    def outputs(self) -> list[ToolOutput]:
        """Outputs of earlier tool calls, oldest first."""
        return [
            ToolOutput(str(item.get("call_id", "")), "\n".join(_texts({"content": item.get("output")})))
            for item in self.items
            if str(item.get("type", "")).endswith("_call_output")
        ]

    @property
    def last_output(self) -> str:
        """Text of the newest tool output, empty when there is none."""
        outputs = self.outputs
        return outputs[-1].text if outputs else ""


def _texts(item: Mapping[str, Any]) -> Iterator[str]:
    content = item.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        yield json.dumps(content)
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]
