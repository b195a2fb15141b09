"""What a worker is told, and what its final report is read as."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from baton.contract.base import parse
from baton.contract.claim import Claim
from baton.contract.errors import InvalidInput
from baton.contract.evidence import PatternReading
from baton.contract.findings import Exploration, Finding
from baton.contract.task import Task
from baton.policy.templating import render_template

TEMPLATE = "worker-brief.md.j2"

MAX_MALFORMED = 4000
"""Characters kept of a report that cannot be read."""

_FENCE = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n(.*?)```", re.DOTALL)


def brief(
    task: Task,
    readings: Sequence[PatternReading],
    instructions: Sequence[tuple[str, str]] = (),
    checks: Sequence[str] = (),
    *,
    exploring: bool = False,
) -> str:
    """The text of a worker's first turn.

    `instructions` are pairs of path and text from the repository, which are framed as data; `checks` are the
    verification commands as shown to a person. With `exploring` findings are asked for.
    """
    return render_template(
        TEMPLATE,
        task=task,
        scope_readings=list(readings),
        instructions=list(instructions),
        checks=list(checks),
        exploring=exploring,
    )


@dataclass(frozen=True)
class Report:
    """A worker's final message: a claim, or the text that is none and why."""

    claim: Claim | None
    malformed: str | None = None
    why: str | None = None
    findings: tuple[Finding, ...] = ()
    """What an exploration found, not checked yet."""


def parse_claim(message: str | None) -> Report:
    """Read a final message as a claim.

    One JSON object is wanted; code fences and prose around a single object are tolerated, since Codex does
    not enforce the output schema. Anything else is kept as text, cut to a few thousand characters.
    """
    return _parse(message, lambda found: Report(parse(Claim, found, "report")))


def parse_exploration(message: str | None) -> Report:
    """As `parse_claim`, for the report of a worker that explores."""
    return _parse(message, _explored)


def _explored(found: dict[str, object]) -> Report:
    report = parse(Exploration, found, "report")
    claim = Claim(
        status=report.status,
        summary=report.summary,
        files_changed=[],
        checks_run=[],
        blockers=report.blockers,
        notes=report.notes,
    )
    return Report(claim, findings=tuple(report.findings))


def _parse(message: str | None, read: Callable[[dict[str, object]], Report]) -> Report:
    if message is None or not message.strip():
        return Report(None, "", "the worker ended without a final message")
    objects = _objects(message)
    if len(objects) != 1:
        why = "the final message holds no JSON object" if not objects else "it holds several JSON objects"
        return Report(None, message[:MAX_MALFORMED], why)
    try:
        return read(objects[0])
    except InvalidInput as error:
        return Report(None, message[:MAX_MALFORMED], error.message)


def _objects(message: str) -> list[dict[str, object]]:
    """The JSON objects in a message: itself, those in its fences, or the one inside its prose."""
    text = message.strip().removeprefix("\ufeff")
    whole = _load(text)
    if whole is not None:
        return [whole]
    fenced = [found for block in _FENCE.findall(text) if (found := _load(block)) is not None]
    if fenced:
        return fenced
    begin, end = text.find("{"), text.rfind("}")
    inner = _load(text[begin : end + 1]) if 0 <= begin < end else None
    return [] if inner is None else [inner]


def _load(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
