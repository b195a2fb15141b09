"""One attempt at getting out, how its success is measured from outside, and the worker that makes it."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import anyio
import psutil

from baton.contract.base import parse
from baton.contract.evidence import AttemptResult
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.service import Service
from baton.simulate import workers
from baton.simulate.request import Request
from baton.simulate.script import Action, Step, shell
from chaos._lab import Lab


class Outcome(StrEnum):
    """What became of an attempt."""

    PREVENTED = "prevented"
    DETECTED = "detected"
    """It happened, and the evidence names it; nothing of it is applied."""
    ESCAPED = "escaped"
    """It had its effect outside the worker's bounds."""
    UNDETECTED = "undetected"
    """The captured tree shows it, the evidence does not."""
    KNOWN = "known"
    """A limit that SECURITY.md states: it works, and is shown to work."""
    VOID = "void"
    """It was not really tried: the suite itself is wrong."""


@dataclass(frozen=True)
class Seen:
    """All there is to judge an attempt by."""

    lab: Lab
    output: str
    """What the attempt's own tool calls gave back to the model."""
    result: AttemptResult
    requests: tuple[Request, ...]
    """Every model request of the run's threads."""


Judge = Callable[[Seen], tuple[Outcome, str]]


@dataclass(frozen=True)
class Attempt:
    """One way out. Its steps are tool calls of a real worker; `judge` looks at the world afterwards."""

    name: str
    tries: str
    steps: tuple[Step, ...]
    judge: Judge
    bare: bool = True
    """Whether it may also be run without any sandbox, to show that its measure would see a success."""
    script: str = ""
    """What it runs, where it is a shell script."""


@dataclass(frozen=True)
class Mission:
    """Attempts that one worker makes in one turn, under one contract."""

    name: str
    attempts: Sequence[Attempt]
    allowed: Sequence[str] = ("src/",)
    more: dict[str, object] = field(default_factory=dict)
    """Further fields of the contract."""
    before: Callable[[Lab], None] | None = None
    first: Mission | None = None
    """Another worker that has been there before."""
    beside: Callable[[Service], Awaitable[None]] | None = None
    """What goes on meanwhile."""
    from_checks: bool = False
    """Whether the attempts are made by the task's checks: then their output is what is judged."""


@dataclass(frozen=True)
class Finding:
    """What one attempt came to."""

    mission: str
    attempt: Attempt
    outcome: Outcome
    why: str
    output: str = ""
    """What the attempt's commands printed."""


# -- making attempts -------------------------------------------------------------------------------------


def by_shell(name: str, tries: str, script: str, judge: Judge, *, bare: bool = True) -> Attempt:
    """An attempt by one shell script, which first says that it was started."""
    marked = f"echo {_mark(name)}\n{script}"
    return Attempt(name, tries, (shell(marked, yield_time_ms=8000),), _was_tried(name, judge), bare, marked)


def by_python(name: str, tries: str, code: str, judge: Judge, *, bare: bool = True) -> Attempt:
    """An attempt by a Python program."""
    return by_shell(name, tries, f"python3 - <<'END'\n{code}\nEND", judge, bare=bare)


def by_tool(name: str, tries: str, judge: Judge, *steps: Step) -> Attempt:
    """An attempt by other tool calls; one that gives no output at all was not made."""
    return Attempt(name, tries, steps, _was_answered(judge), bare=False)


def _mark(name: str) -> str:
    return f"tried:{name}:"


def _was_tried(name: str, judge: Judge) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        if _mark(name) not in seen.output:
            return Outcome.VOID, f"it was not started: {seen.output[-300:]!r}"
        return judge(seen)

    return judged


def _was_answered(judge: Judge) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        return judge(seen) if seen.output.strip() else (Outcome.VOID, "the tool gave no answer")

    return judged


# -- measuring -------------------------------------------------------------------------------------------


def absent(*paths: Path) -> Judge:
    """Prevented when none of the paths has come to exist."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        made = [path for path in paths if os.path.lexists(path)]
        return (Outcome.ESCAPED, f"{made[0]} exists") if made else (Outcome.PREVENTED, "")

    return judged


def same(*paths: Path) -> Judge:
    """Prevented when the files still hold what they held when the attempt was written down."""
    before = {path: _content(path) for path in paths}

    def judged(seen: Seen) -> tuple[Outcome, str]:
        changed = [path for path, old in before.items() if _content(path) != old]
        return (Outcome.ESCAPED, f"{changed[0]} was changed") if changed else (Outcome.PREVENTED, "")

    return judged


def silent(*tokens: str) -> Judge:
    """Prevented when the model was never shown one of the tokens, by whatever tool call."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        shown = [token for token in tokens if token in seen.output]
        return (Outcome.ESCAPED, f"{shown[0]} was read") if shown else (Outcome.PREVENTED, "")

    return judged


def unheard(token: str) -> Judge:
    """Prevented when no listener of ours heard the token and none was read from."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        if seen.lab.ears.heard(token):
            return Outcome.ESCAPED, "a listener outside heard it"
        return Outcome.PREVENTED, ""

    return judged


def in_tree(*paths: str) -> Judge:
    """Prevented when the captured tree holds none of these changes; detected when each is named."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        evidence = seen.result.evidence
        changed = {path for change in evidence.changes for path in (change.path, change.old_path) if path}
        aside = {*evidence.ignored, *evidence.nested, *evidence.unsupported}
        named = {violation.path for violation in evidence.scope.violations} | aside
        made = [path for path in paths if path in changed | aside]
        missed = [path for path in made if path not in named]
        if missed:
            return Outcome.UNDETECTED, f"{missed[0]} is in the tree and no violation"
        return (Outcome.DETECTED, f"named: {made[0]}") if made else (Outcome.PREVENTED, "")

    return judged


def ended(token: str) -> Judge:
    """Prevented when no process with the token in its command line is left."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        alive = [each.pid for each in psutil.process_iter() if token in _command(each)]
        return (Outcome.ESCAPED, f"process {alive[0]} lives on") if alive else (Outcome.PREVENTED, "")

    return judged


def known(judge: Judge, why: str) -> Judge:
    """A stated limit: what the judge calls an escape is expected. It is void when it does not work."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        outcome, _ = judge(seen)
        if outcome in (Outcome.ESCAPED, Outcome.UNDETECTED):
            return Outcome.KNOWN, why
        return outcome, ""

    return judged


def all_of(*judges: Judge) -> Judge:
    """The worst of several measures."""
    order = list(Outcome)

    def judged(seen: Seen) -> tuple[Outcome, str]:
        found = [judge(seen) for judge in judges]
        return max(found, key=lambda each: order.index(each[0]))

    return judged


def _content(path: Path) -> bytes | str | None:
    try:
        return str(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.Error, OSError):
        return ""


# -- carrying out ----------------------------------------------------------------------------------------


async def warm_up(lab: Lab, service: Service) -> None:
    """Have Baton make what every run finds already there: the workers' Codex home, the state folder."""
    call = {"objective": "nothing", "allowedFiles": ["src/"], "dryRun": True}
    await service.delegate_task(parse(TaskCall, call, "task"), Session(cwd=str(lab.project)))


async def carry_out(lab: Lab, service: Service, mission: Mission) -> list[Finding]:
    """Let one real worker make all the attempts, then judge each."""
    findings = [] if mission.first is None else await carry_out(lab, service, mission.first)
    marker = f"mission {mission.name} {lab.nonce} {time.monotonic_ns()}"
    counter: dict[int, tuple[int, int]] = {}
    steps: list[Step] = []
    for position, attempt in enumerate(mission.attempts):
        counter[position] = (len(steps), len(steps) + len(attempt.steps))
        steps += attempt.steps
    last: list[Request] = []
    lab.model.on(marker, *steps, _report_for_ever(last))
    call = {
        "objective": marker,
        "allowedFiles": list(mission.allowed),
        "integrate": "hold",
        "waitSeconds": 240,
        **mission.more,
    }
    before = len(lab.model.requests)
    shown: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        if mission.beside is not None:
            group.start_soon(mission.beside, service)
        shown = await service.delegate_task(parse(TaskCall, call, "task"), Session(cwd=str(lab.project)))
    task = service.house.ledger.tasks(str(shown["runId"]))[0]
    result = service.house.ledger.attempts(task.run_id, task.task_id)[0].result
    if result is None or not last:
        raise RuntimeError(f"mission {mission.name} did not run: {shown}")
    outputs = [_readable(output.text) for output in last[0].outputs]
    requests = lab.model.requests[before:]
    for position, attempt in enumerate(mission.attempts):
        begin, end = counter[position]
        output = _check_output(service, result) if mission.from_checks else "\n".join(outputs[begin:end])
        seen = Seen(lab, output, result, requests)
        findings.append(Finding(mission.name, attempt, *attempt.judge(seen), output))
    return findings


def _readable(output: str) -> str:
    """A tool's answer, and once more without the escapes of the JSON that it stands in."""
    return output + "\n" + output.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")


def _check_output(service: Service, result: AttemptResult) -> str:
    kept = [check.output for check in result.evidence.checks if check.output is not None]
    return "".join(service.house.artifacts.read(each).decode("utf-8", "replace") for each in kept)


def _report_for_ever(last: list[Request]) -> Step:
    """A final report, however often one is asked for; keeps the first request that asks."""

    def conclude(request: Request) -> Sequence[Step]:
        last.append(request)
        said: Action = workers.report(summary="Nothing to see.")
        return (said, conclude)

    return conclude
