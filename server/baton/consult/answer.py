"""From what an agent's program told to an answer, or to why there is none. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from baton.consult.adapters.protocol import Reply
from baton.consult.prompt import is_strict
from baton.contract.consult import Answer, Source
from baton.contract.json_schema import value_fault
from baton.contract.reply import ReplyFailure

MAX_ENTRIES = 100
MAX_ENTRY = 4_000
"""Entries of a list in an answer, and characters of one; the raw output has the rest."""


@dataclass(frozen=True)
class Read:
    """An answer as far as there is one, and why it does not count, if it does not."""

    answer: Answer | None
    failure: ReplyFailure | None
    detail: str | None


def read(reply: Reply, answer_schema: Mapping[str, Any] | None) -> Read:
    """What the reply is worth.

    A form other than the one asked for costs nothing but the form: the text is the answer then. Only where
    the caller's own schema is not satisfied does the turn fail, its text kept.
    """
    answer = _answer(reply)
    detail = " ".join(reply.detail.split()) or None
    if reply.failure not in (None, ReplyFailure.BAD_ANSWER):
        return Read(answer, reply.failure, detail)
    if answer is None or not answer.text.strip():
        return Read(None, ReplyFailure.NO_ANSWER, detail or "it ended without an answer")
    if answer_schema is None:
        return Read(answer, None, None if reply.failure else detail)
    if not answer.as_asked:
        return Read(answer, ReplyFailure.BAD_ANSWER, detail or "the answer is not in the form asked for")
    structured, fault = _structured(answer.structured, answer_schema)
    if fault is not None:
        return Read(answer, ReplyFailure.BAD_ANSWER, fault)
    return Read(answer.model_copy(update={"structured": structured}), None, detail)


def _answer(reply: Reply) -> Answer | None:
    for value in (reply.structured, _json_in(reply.text) if reply.text else None):
        if isinstance(value, Mapping) and isinstance(value.get("answer"), str):
            return Answer(
                text=value["answer"],
                assumptions=_texts(value.get("assumptions")),
                uncertainties=_texts(value.get("uncertainties")),
                follow_ups=_texts(value.get("followUps")),
                sources=_sources(value.get("sources")),
                structured=value.get("structured"),
            )
    if reply.text:
        return Answer(text=reply.text, as_asked=False)
    if reply.structured is not None:
        return Answer(text=json.dumps(reply.structured, ensure_ascii=False), as_asked=False)
    return None


def _json_in(text: str) -> object:
    """The first JSON object in a text, which may have words or a fence around it; None without one."""
    decoder = json.JSONDecoder()
    start = text.find("{")
    for _ in range(20):
        if start < 0:
            return None
        try:
            value: object = decoder.raw_decode(text, start)[0]
            return value
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
    return None


def _structured(value: Any, schema: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The caller's data and None, or what it lacks."""
    if not is_strict(schema) and isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None, "`structured` is not JSON"
    fault = value_fault(value, schema)
    return (value, None) if fault is None else (None, f"the answer does not satisfy the schema: {fault}")


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        return []
    return [entry[:MAX_ENTRY] for entry in value[:MAX_ENTRIES] if isinstance(entry, str) and entry.strip()]


def _sources(value: object) -> list[Source]:
    found = []
    for entry in value[:MAX_ENTRIES] if isinstance(value, list) else ():
        if isinstance(entry, str):
            found.append(Source(title=entry[:MAX_ENTRY]))
        elif isinstance(entry, Mapping) and isinstance(entry.get("title"), str):
            location = entry.get("location")
            place = location[:MAX_ENTRY] if isinstance(location, str) else None
            found.append(Source(title=entry["title"][:MAX_ENTRY], location=place))
    return found
