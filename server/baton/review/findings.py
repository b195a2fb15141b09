"""Reads findings out of a reviewer's answer, however it is spelled. Pure.

One that is given in a foreign form is normalised; one that cannot be is counted and left out, its text kept
with the answer. An answer is unparsable only when no list of findings is in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from baton.contract.consult import Answer
from baton.contract.review import Confidence, Finding, Recheck, RecheckStatus, Severity

MAX_FINDINGS = 200
MAX_TITLE = 300
MAX_DETAIL = 8_000
MAX_PATH = 1_000

_SEVERITIES = {
    Severity.CRITICAL: ("critical", "blocker", "blocking", "severe", "p0", "fatal", "sev0"),
    Severity.IMPORTANT: ("important", "major", "high", "error", "p1", "warning", "bug", "serious", "sev1"),
    Severity.MINOR: ("minor", "medium", "moderate", "low", "p2", "p3", "nit", "style", "trivial", "sev2"),
    Severity.NOTE: ("note", "info", "informational", "suggestion", "praise", "question", "comment"),
}
_LISTS = ("findings", "issues", "problems", "comments", "results")
_CONFIDENCES = {"certain": Confidence.HIGH, "likely": Confidence.MEDIUM, "unsure": Confidence.LOW}


@dataclass(frozen=True)
class Parsed:
    """What an answer held."""

    findings: list[Finding]
    rechecks: list[Recheck]
    left_out: int = 0
    """Entries that are no findings."""


def parse_findings(answer: Answer) -> Parsed | None:
    """The findings of an answer; None when it has no list of them, not even an empty one."""
    for value in _candidates(answer):
        found = _listed(value)
        if found is None:
            continue
        entries, source = found
        findings = [made for entry in entries[:MAX_FINDINGS] if (made := _finding(entry)) is not None]
        if entries and not findings:
            continue
        rechecks = _rechecks(source.get("earlier")) if isinstance(source, Mapping) else []
        return Parsed(findings, rechecks, len(entries) - len(findings))
    return None


def _candidates(answer: Answer) -> Iterator[object]:
    if answer.structured is not None:
        yield answer.structured
        if isinstance(answer.structured, str):
            yield from _json_in(answer.structured)
    yield from _json_in(answer.text)


def _json_in(text: str) -> Iterator[object]:
    """JSON values in a text, which may have words or fences around them; the largest first."""
    decoder = json.JSONDecoder()
    found: list[tuple[int, object]] = []
    at = 0
    for _ in range(200):
        match = re.compile(r"[\[{]").search(text, at)
        if match is None:
            break
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        found.append((end - match.start(), value))
        at = end
    for _, value in sorted(found, key=lambda one: -one[0]):
        yield value


def _listed(value: object, depth: int = 0) -> tuple[list[Any], object] | None:
    """A list of findings in a value, and the object that it is in."""
    if isinstance(value, list):
        is_list = all(isinstance(entry, Mapping) for entry in value) and (depth > 0 or bool(value))
        return (value, {}) if is_list else None
    if not isinstance(value, Mapping):
        return None
    for name in _LISTS:
        if isinstance(value.get(name), list):
            return value[name], value
    if depth < 3:
        for name in ("structured", "review", "answer", "result", "data"):
            inner = value.get(name)
            if isinstance(inner, str):
                for one in _json_in(inner):
                    found = _listed(one, depth + 1)
                    if found is not None:
                        return found
            found = _listed(inner, depth + 1) if isinstance(inner, Mapping) else None
            if found is not None:
                return found
    return None


def _finding(entry: object) -> Finding | None:
    if not isinstance(entry, Mapping):
        return None
    given = {re.sub(r"[^a-z]", "", str(key).lower()): value for key, value in entry.items()}
    detail = _text(given, "detail", "details", "description", "body", "message", "explanation", "comment")
    title = _text(given, "title", "summary", "name", "issue", "problem", "finding", "headline")
    if title is None:
        title = detail.strip().splitlines()[0] if detail and detail.strip() else None
    if title is None:
        return None
    path, line = _place(given)
    return Finding(
        severity=_severity(_text(given, "severity", "level", "priority", "importance", "category")),
        title=" ".join(title.split())[:MAX_TITLE],
        detail=detail[:MAX_DETAIL] if detail else None,
        path=path[:MAX_PATH] if path else None,
        line=line,
        confidence=_confidence(given.get("confidence", given.get("certainty"))),
        suggestion=(_text(given, "suggestion", "fix", "recommendation", "remedy") or "")[:MAX_DETAIL] or None,
    )


def _text(given: Mapping[str, object], *names: str) -> str | None:
    for name in names:
        value = given.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return None


def _severity(word: str | None) -> Severity:
    """What nobody can read counts as important: it is never dropped for being misspelt."""
    words = re.findall(r"[a-z0-9]+", (word or "").lower())
    for severity, names in _SEVERITIES.items():
        if any(one in names for one in words):
            return severity
    return Severity.IMPORTANT


def _confidence(value: object) -> Confidence:
    if isinstance(value, bool):
        return Confidence.MEDIUM
    if isinstance(value, int | float):
        share = min(value, 100) / 100 if value > 1 else value
        return Confidence.HIGH if share >= 0.8 else Confidence.MEDIUM if share >= 0.5 else Confidence.LOW
    word = str(value or "").strip().lower()
    if number := re.fullmatch(r"([0-9]{0,9}(?:\.[0-9]{0,9})?)\s*%?", word):
        return _confidence(float(number[1])) if re.search(r"[0-9]", number[1]) else Confidence.MEDIUM
    for known in Confidence:
        if known.value in word:
            return known
    return _CONFIDENCES.get(word, Confidence.MEDIUM)


def _place(given: Mapping[str, object]) -> tuple[str | None, int | None]:
    location = given.get("location", given.get("place", given.get("position")))
    if isinstance(location, Mapping):
        inner = {re.sub(r"[^a-z]", "", str(key).lower()): value for key, value in location.items()}
        return _place({**inner, "location": None})
    path = _text(given, "path", "file", "filename", "filepath")
    line = next(
        (
            number
            for name in ("line", "linenumber", "startline", "lineno", "lines", "linestart")
            if (number := _number(given.get(name))) is not None
        ),
        None,
    )
    if path is None and isinstance(location, str) and location.strip():
        path = location.strip()
    if path is not None:
        match = re.fullmatch(r"(.+?)(?::|#L|, ?line )(\d+)(?:[:-]L?\d+)*", path.strip())
        if match:
            return match[1], line if line is not None else _number(match[2])
    return path, line


def _number(value: object) -> int | None:
    if isinstance(value, list) and value:
        return _number(value[0])
    if isinstance(value, str) and (match := re.match(r"\D{0,6}(\d{1,9})", value)):
        value = int(match[1])
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_line = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**9
    return int(value) if is_line else None  # type: ignore[call-overload]


def _rechecks(value: object) -> list[Recheck]:
    found: dict[str, Recheck] = {}
    for entry in value if isinstance(value, list) else ():
        if not isinstance(entry, Mapping):
            continue
        name = re.search(r"F?\s*#?(\d{1,5})", str(entry.get("finding", entry.get("id", ""))))
        word = str(entry.get("status", "")).lower()
        if name is None:
            continue
        status = RecheckStatus.UNCLEAR
        if any(one in word for one in ("gone", "fixed", "resolved", "dropped")) and "not" not in word:
            status = RecheckStatus.GONE
        elif any(one in word for one in ("still", "open", "present", "not", "confirmed", "remains")):
            status = RecheckStatus.STILL
        note = entry.get("note")
        text = note[:MAX_DETAIL] if isinstance(note, str) and note.strip() else None
        found.setdefault(f"F{int(name[1])}", Recheck(finding=f"F{int(name[1])}", status=status, note=text))
    return list(found.values())
