"""What adapters share in reading a program's output: tolerant of anything, and never the whole at once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from baton.codex.failures import classify, retry_after
from baton.consult.adapters.protocol import Exit, Reply
from baton.contract.evidence import Usage
from baton.contract.reply import ReplyFailure

MAX_DETAIL = 300
"""Characters of a program's own message that go into the one line of a failure."""

TAIL_BYTES = 16 * 1024

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.S)

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_REQUESTS = (
    (r"not logged in|please run /login|no authentication information|authentication required|"
     r"api key is (missing|not)|credential", ReplyFailure.AUTH),
    (r"no conversation found|no rollout found|session not found|no session|session .{1,80} not found|"
     r"no (matching )?session", ReplyFailure.SESSION_GONE),
    (r"hit your .{0,40}limit|premium requests?.{0,40}(exceed|exhaust|used|limit)|quota",
     ReplyFailure.USAGE_LIMIT),
    (r"modelnotfound|not found on provider|issue with the selected model|model .{0,80}not available",
     ReplyFailure.UNKNOWN_MODEL),
    (r"content.?filter|(stop_reason|reason).{0,5}refusal", ReplyFailure.REFUSED),
    (r"no response was returned", ReplyFailure.NO_ANSWER),
    (r"output token maximum", ReplyFailure.CUT),
    (r"empty or malformed response|not valid json|connection closed|socket hang up|fetch failed|econnre",
     ReplyFailure.NETWORK),
)  # fmt: skip
"""What the command lines say in words of their own, ahead of what services say."""


def events(path: Path) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of a file of lines; anything else is passed over, also an unfinished last line."""
    try:
        with path.open("rb") as file:
            for line in file:
                event = table_of(line)
                if event is not None:
                    yield event
    except OSError:
        return


def table_of(line: bytes | str) -> Mapping[str, Any] | None:
    """The JSON object of a line, or None."""
    if line.lstrip()[:1] not in (b"{", "{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def table(value: object, *keys: str) -> Mapping[str, Any]:
    """The object that lies at `keys`, or an empty one."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def tables(value: object) -> list[Mapping[str, Any]]:
    """The objects in a list; of anything else none."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_of(value: object) -> str | None:
    """A text that is not empty, or None."""
    return value if isinstance(value, str) and value.strip() else None


def number(value: object) -> int | None:
    """A count that was told, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def money(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < float("inf") else None


def added(*values: int | None) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def usage(
    fresh_input: int | None,
    cache_read: int | None,
    cache_write: int | None,
    output: int | None,
    reasoning: int | None = None,
) -> Usage | None:
    """Usage as the ledger counts it: input includes what came from the cache, output includes reasoning."""
    whole = added(fresh_input, cache_read, cache_write)
    if not whole and not output:
        return None  # nothing was told, or zeros stand for it: no answer is made of no tokens
    return Usage(
        input_tokens=whole,
        cached_input_tokens=cache_read,
        output_tokens=output,
        reasoning_output_tokens=reasoning,
        total_tokens=None if whole is None or output is None else whole + output,
    )


def last_line(path: Path) -> str:
    """The last line that begins with `Error`, else the last that says anything, without colours, short."""
    lines = [" ".join(_ANSI.sub("", line).split()) for line in tail(path).splitlines()]
    told = [line for line in lines if line]
    errors = [line for line in told if line.lower().startswith("error")]
    return (errors or told or [""])[-1][:MAX_DETAIL]


def tail(path: Path) -> str:
    """The end of a file as text."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def one_line(text: str) -> str:
    return " ".join(_ANSI.sub("", text).split())[:MAX_DETAIL]


def failure_of(text: str, status: int | None = None) -> ReplyFailure:
    """The class of a failure from what was said of it, and the HTTP status where it is known."""
    for pattern, found in _REQUESTS:
        if re.search(pattern, text, re.I):
            return found
    info = None if status is None else {"httpConnectionFailed": {"httpStatusCode": status}}
    return ReplyFailure(classify({"message": text, "codexErrorInfo": info}).failure_class.value)


def failed(reply: Reply, failure: ReplyFailure, detail: str) -> Reply:
    """The reply as a failed one, with everything that it carries."""
    return replace(reply, failure=failure, detail=one_line(detail))


def killed(reply: Reply, ended: Exit) -> Reply:
    """The reply of a program that was ended from here; what it told is kept, no text of an unfinished one."""
    assert ended.kill is not None
    return failed(replace(reply, text=None, structured=None), ended.kill.failure, ended.kill.detail)


def wait_of(text: str) -> float | None:
    """Seconds to wait that a message states."""
    return retry_after(text, datetime.now().astimezone())


def how_it_ended(ended: Exit, stderr: Path) -> str:
    """One line on a program that ended without saying why."""
    how = f"signal {ended.signal}" if ended.signal is not None else f"status {ended.code}"
    said = last_line(stderr)
    return f"it ended with {how}" + (f": {said}" if said else " and said nothing")


def ended_badly(reply: Reply, ended: Exit, stderr: Path, said: str) -> Reply:
    """The reply of a program that ended without its own word on it: why, by what it `said` last."""
    found = failure_of(said) if said and ended.signal is None else ReplyFailure.CRASH
    return failed(reply, found, how_it_ended(ended, stderr))


def structured_from(text: str | None) -> Any | None:
    """The JSON object or list in an answer: the answer itself, its one fence, or the one inside its prose."""
    if text is None:
        return None
    for candidate in _candidates(text.strip()):
        try:
            found = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict | list):
            return found
    return None


def _candidates(text: str) -> Iterator[str]:
    yield text
    fenced = _FENCE.findall(text)
    if len(fenced) == 1:
        yield fenced[0]
    begin, end = text.find("{"), text.rfind("}")
    if 0 <= begin < end:
        yield text[begin : end + 1]


def with_schema(prompt: str, schema: Mapping[str, Any] | None) -> str:
    """The prompt of a program that cannot be given a schema in any other way."""
    if schema is None:
        return prompt
    shape = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return (
        f"{prompt}\n\nAnswer with one JSON object and nothing else, no fence and no prose around it."
        f" It must satisfy this JSON Schema:\n{shape}\n"
    )
