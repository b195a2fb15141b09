"""From a step to the items of a Responses answer, in the form that the model's tools have."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from baton.simulate.request import Request
from baton.simulate.script import (
    Action,
    Call,
    Javascript,
    Native,
    Patch,
    Reason,
    Say,
    Shell,
    Together,
)

_numbers = itertools.count(1)


@dataclass(frozen=True)
class TokenUsage:
    """Tokens that each completed answer reports."""

    input_tokens: int = 1200
    cached_tokens: int = 200
    output_tokens: int = 80
    reasoning_tokens: int = 16

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def wire(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input_tokens,
            "input_tokens_details": {"cached_tokens": self.cached_tokens},
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.total_tokens,
        }


def items(step: Action, request: Request) -> list[dict[str, Any]]:
    """The output items of a step that says or does something.

    Raises ValueError for a step that has no items, and for JavaScript with a model that has no such tool.
    """
    return list(_items(step, request))


def _items(step: Action, request: Request) -> Iterator[dict[str, Any]]:
    match step:
        case Say(text):
            yield message(text)
        case Reason(summary, then):
            yield _reasoning(summary)
            yield from _items(then, request)
        case Together(steps):
            for part in steps:
                yield from _items(part, request)
        case Javascript(code):
            if not request.code_mode:
                raise ValueError(f"{request.model} has no JavaScript tool")
            yield _custom("exec", code)
        case Patch(text):
            yield (
                _custom("exec", _program("apply_patch", text))
                if request.code_mode
                else _custom("apply_patch", text)
            )
        case Shell(command, workdir, options):
            arguments = {"cmd": command, **({"workdir": workdir} if workdir else {}), **options}
            yield _call("exec_command", arguments, request)
        case Call(tool, arguments):
            yield _call(tool, arguments, request)
        case Native(namespace, tool, arguments):
            yield {**_function(tool, arguments), "namespace": namespace}
        case _:
            raise ValueError(f"{type(step).__name__} cannot be a part of another step")


def _call(tool: str, arguments: Mapping[str, Any], request: Request) -> dict[str, Any]:
    if request.code_mode:
        return _custom("exec", _program(tool, dict(arguments)))
    item = _function(tool, arguments)
    if tool.startswith("mcp__") and tool.count("__") >= 2:
        namespace, _, item["name"] = tool.rpartition("__")
        item["namespace"] = namespace
    return item


def _function(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": _id("fc"),
        "call_id": _id("call"),
        "name": tool,
        "arguments": json.dumps(dict(arguments)),
    }


def _program(tool: str, argument: object) -> str:
    return f"text(await tools[{json.dumps(tool)}]({json.dumps(argument)}));"


def _custom(tool: str, text: str) -> dict[str, Any]:
    return {"type": "custom_tool_call", "id": _id("ctc"), "call_id": _id("call"), "name": tool, "input": text}


def message(text: str) -> dict[str, Any]:
    """A message item of the assistant."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "type": "message",
        "id": _id("msg"),
        "role": "assistant",
        "status": "completed",
        "content": content,
    }


def _reasoning(summary: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": _id("rs"), "summary": [{"type": "summary_text", "text": summary}]}


def _id(prefix: str) -> str:
    return f"{prefix}_sim_{next(_numbers):08d}"
