"""Scripted workers with a character, for the demo and the tests. None of this is a real model's work."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from shlex import quote

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.findings import Exploration, Finding
from baton.simulate.request import Request
from baton.simulate.script import Say, Step, say, shell, stall

IDLE_ANSWER = "Context loaded. Ready."


def report(
    status: ClaimStatus = ClaimStatus.PASS,
    summary: str = "Done.",
    *,
    files: Sequence[str] = (),
    checks: Sequence[str] = (),
    blockers: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Say:
    """A final report in the form that the output schema asks for."""
    claim = Claim(
        status=status,
        summary=summary,
        files_changed=list(files),
        checks_run=list(checks),
        blockers=list(blockers),
        notes=list(notes),
    )
    return say(claim.wire())


def honest(files: Mapping[str, str], checks: Sequence[str] = ()) -> tuple[Step, ...]:
    """Writes the files, runs the checks and reports what it saw: FAILED when one of them failed."""

    def conclude(request: Request) -> Step:
        codes = [output.exit_code for output in request.outputs][-len(checks) :] if checks else []
        failed = [check for check, code in zip(checks, codes, strict=False) if code != 0]
        status = ClaimStatus.FAILED if failed else ClaimStatus.PASS
        summary = (
            f"These checks fail: {', '.join(failed)}." if failed else "Wrote the files; the checks pass."
        )
        return report(status, summary, files=list(files), checks=checks)

    return (*(write(path, content) for path, content in files.items()), *map(shell, checks), conclude)


def false_pass(files: Mapping[str, str], checks: Sequence[str] = ()) -> tuple[Step, ...]:
    """Writes the files, runs nothing, claims that every check passed, and claims it again when told."""
    claim = report(ClaimStatus.PASS, "Everything passes.", files=list(files), checks=checks)
    return (*(write(path, content) for path, content in files.items()), claim, claim)


def escaping(files: Mapping[str, str], outside: str, content: str = "escaped\n") -> tuple[Step, ...]:
    """Does its work, also tries to write `outside` its scope, and never mentions that."""
    claim = report(ClaimStatus.PASS, "Wrote the files.", files=list(files))
    return (
        *(write(path, text) for path, text in files.items()),
        write(outside, content),
        claim,
        claim,
    )


def exploring(
    findings: Sequence[Finding], commands: Sequence[str] = (), summary: str = "Looked at the files."
) -> tuple[Step, ...]:
    """Runs the commands, then cites the findings."""
    told = Exploration(
        status=ClaimStatus.PASS, summary=summary, findings=list(findings), blockers=[], notes=[]
    )
    return (*map(shell, commands), say(told.wire()))


def stalling(
    files: Mapping[str, str] | None = None, until: threading.Event | None = None
) -> tuple[Step, ...]:
    """Writes the files and then says nothing more, for ever or until released."""
    return (*(write(path, text) for path, text in (files or {}).items()), stall(until), report())


def blocked(why: str = "A decision is missing.") -> tuple[Step, ...]:
    """Changes nothing and says what it needs."""
    return (report(ClaimStatus.BLOCKED, "Could not begin.", blockers=[why]),)


def idle_answer() -> tuple[Step, ...]:
    """Does nothing and answers as if that were an answer."""
    return (say(IDLE_ANSWER),)


def malformed_report(files: Mapping[str, str]) -> tuple[Step, ...]:
    """Does its work and ends with prose instead of a report."""
    return (*(write(path, text) for path, text in files.items()), say("All done, have a look!"))


def write(path: str, content: str) -> Step:
    """Write one file, relative to the worker's directory, by shell."""
    return shell(f"mkdir -p -- {quote(_parent(path))} && printf %s {quote(content)} > {quote(path)}")


def _parent(path: str) -> str:
    parent, slash, _ = path.rpartition("/")
    return parent or (slash or ".")
