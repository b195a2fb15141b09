"""The texts that reviewers are given. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from baton.ledger.review_records import ReviewFindingRecord

_ASK = (
    "Review the material for this goal: {goal}",
    "Look for what is wrong: behaviour, data loss, security, concurrency, errors that are swallowed, tests"
    " that cannot fail. Leave style alone. Name a file and a line of the new version for every finding, and"
    " say how it goes wrong. Report nothing that you did not see in the material; an empty list"
    " is a fine result.",
    "Severity: critical (data loss, a hole, a crash in normal use), important (wrong behaviour that someone"
    " will meet), minor, note. Confidence: high, medium or low. Put every finding into `structured.findings`;"
    " `answer` is your conclusion in two sentences.",
)
_EARLIER = (
    "An earlier review found what is listed in the piece `earlier findings`; the material is the state now."
    " Judge each of them in `structured.earlier`: still, gone or unclear, with a note on what shows it."
    " Beside that, report only new problems."
)
REPAIR = (
    "Your findings could not be read. Give the same findings once more, changed in nothing but their form: a"
    " JSON object with `findings`, a list of objects with `severity` (critical, important, minor or note),"
    " `title`, `detail`, `path`, `line`, `confidence` (high, medium or low) and `suggestion`."
)


def question(goal: str, checklist: Sequence[str], *, rechecks: bool) -> str:
    """What is asked of every reviewer."""
    parts = [_ASK[0].format(goal=goal), *_ASK[1:]]
    if checklist:
        parts.append("\n".join(["Check especially for:", *(f"- {entry}" for entry in checklist)]))
    if rechecks:
        parts.append(_EARLIER)
    return "\n\n".join(parts)


def earlier_findings(findings: Sequence[ReviewFindingRecord]) -> str:
    """The findings of the review before, for a recheck; who had them is not told."""
    lines = []
    for finding in findings:
        place = (
            f" {finding.path}:{finding.line}" if finding.path and finding.line else f" {finding.path or ''}"
        )
        lines.append(f"{finding.id} {finding.severity.value}{place}: {finding.title}")
        if finding.detail:
            lines.append(f"    {' '.join(finding.detail.split())[:1000]}")
    return "\n".join(lines)
