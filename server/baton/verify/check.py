"""Runs one check on one tree and says how it ended."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from baton.contract.errors import BatonError
from baton.contract.evidence import CheckResult, CheckStatus
from baton.contract.wording import many
from baton.ledger.artifacts import Artifacts
from baton.process.child import Finished
from baton.process.environment import check_environment
from baton.verify.command import Command
from baton.verify.failing import failing_part
from baton.verify.launch import Launch
from baton.verify.origin import Moved, Origin, move_arguments, settle_origin
from baton.verify.place import CheckEnvironment, CheckLimits, CheckPlace, CheckSandbox
from baton.verify.program import Missing, Program, find_program
from baton.verify.toolchain import toolchain

READ_FOR_TAIL = 4 * 1024 * 1024
"""Bytes of each end of an output that are searched for the failing part."""

SANDBOX_SPEAKS = "bwrap: "
"""How an output begins when the sandbox itself failed and the program was never started."""


async def run_check(
    command: Command,
    place: CheckPlace,
    environment: CheckEnvironment,
    *,
    sandbox: CheckSandbox | None,
    limits: CheckLimits,
    artifacts: Artifacts,
) -> CheckResult:
    """Run a command in the sandbox, without a shell, with closed input and a home of its own.

    It ends when its main process ends; what it leaves running is ended and noted. Its whole output is kept as
    an artifact. With `sandbox=None` only what the person's policy lets run unsandboxed is run, anything else
    is `refused`; a result says whether it was sandboxed. Raises `StateUnavailable` when the output cannot be
    kept; everything about the command itself is a result.
    """
    allowed_out = any(command.argv[: len(prefix)] == prefix for prefix in environment.unsandboxed if prefix)
    if sandbox is None and not allowed_out:
        why = "not run: there is no working sandbox here, and the policy lets no check run without one"
        return _not_run(command, place, CheckStatus.REFUSED, why, sandboxed=False)
    fenced = None if allowed_out else sandbox
    try:
        prepared = await anyio.to_thread.run_sync(_prepare, command, place, environment, fenced)
        if isinstance(prepared.program, Missing):
            return _not_run(
                command, place, CheckStatus.MISSING, prepared.program.why, sandboxed=fenced is not None
            )
        origin = (
            Origin()
            if place.in_place
            else await settle_origin(prepared.program, place, prepared.inside, prepared.launch)
        )
    except OSError as error:  # what a worker or the person's environment put in the way
        why = f"could not be prepared: {error}"
        return _not_run(command, place, CheckStatus.REFUSED, why, sandboxed=fenced is not None)
    if origin.refused is not None:
        return _not_run(command, place, CheckStatus.NOT_ON_TREE, origin.refused, sandboxed=fenced is not None)
    return await _run(prepared, origin, limits, artifacts)


@dataclass(frozen=True)
class _Prepared:
    command: Command
    program: Program | Missing
    moved: Moved
    inside: Mapping[str, str]
    launch: Launch


def _prepare(
    command: Command, place: CheckPlace, environment: CheckEnvironment, sandbox: CheckSandbox | None
) -> _Prepared:
    home, temporary = place.scratch / "home", place.scratch / "tmp"
    for folder in (home, temporary):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    base = environment.base
    allowed = check_environment(
        base, environment.extra_names, home=home, tmpdir=temporary, run_id=environment.run_id
    )
    tools = toolchain(
        base,
        scratch=place.scratch / "tools",
        cwd=place.cwd,
        worktree=place.worktree,
        workspace_root=place.person_root,
    )
    moved = move_arguments(command.argv, dict(command.environment), place)
    inside = {**tools.variables, "TMPDIR": str(temporary), "PATH": tools.path, **moved.environment}
    program = find_program(moved.argv[0], cwd=place.cwd, path=inside["PATH"])
    return _Prepared(command, program, moved, inside, Launch(place, sandbox, allowed))


async def _run(prepared: _Prepared, origin: Origin, limits: CheckLimits, artifacts: Artifacts) -> CheckResult:
    assert isinstance(prepared.program, Program)
    place, launch = prepared.launch.place, prepared.launch
    # Beside its folder and not in it: there the check could put a link in its place, to be read by us.
    log = place.scratch.with_name(f"{place.scratch.name}.output")
    argv = (str(prepared.program.path), *prepared.moved.argv[1:])
    inside = {**prepared.inside, **origin.variables}
    try:
        left_open = await anyio.to_thread.run_sync(lambda: launch.fenced(argv, inside).left_open)
        done = await _to_its_end(launch, argv, inside, limits, log)
    except (BatonError, OSError) as error:
        why = f"could not be started: {error}"
        sandboxed = launch.sandbox is not None
        return _not_run(prepared.command, place, CheckStatus.REFUSED, why, sandboxed=sandboxed)
    text = await anyio.to_thread.run_sync(_read, log)
    status, detail = conclude(done, text, limits, place)
    notes = [detail, *origin.notes, *prepared.moved.notes, *left_open, *_leftovers(done)]
    if launch.sandbox is None:
        notes.append("run without the sandbox, as the policy allows for this command")
    notes += [] if status is CheckStatus.PASSED else list(prepared.command.notes)
    kept = await anyio.to_thread.run_sync(_keep, artifacts, log)
    return CheckResult(
        command=prepared.command.shown,
        argv=list(prepared.command.argv),
        tree=place.tree,
        status=status,
        exit_code=done.exit_code,
        seconds=round(done.seconds, 3),
        sandboxed=launch.sandbox is not None,
        detail="; ".join(note for note in notes if note) or None,
        tail=failing_part(text, limits.shown_characters)
        if status is not CheckStatus.PASSED
        else _end(text, limits.shown_characters),
        output=kept,
        output_bytes=done.output_bytes,
    )


async def _to_its_end(
    launch: Launch, argv: tuple[str, ...], inside: Mapping[str, str], limits: CheckLimits, log: Path
) -> Finished:
    """Run the program to its end.

    Once more when its guard was killed or its sandbox could not be set up (a part of that may have been
    killed), because neither says anything about the check.
    """
    for last in (False, True):
        try:
            done = await launch.run(
                argv,
                inside,
                timeout=limits.seconds,
                output=log,
                max_output=limits.output_bytes,
                memory_limit=limits.memory_bytes,
            )
        except BlockingIOError:  # before it could tell that the program has started
            if last:
                raise
            continue
        if last or not (done.guard_lost or _not_set_up(done, log)):
            return done
    raise AssertionError("the last run returns or raises")


def _not_set_up(done: Finished, log: Path) -> bool:
    with log.open("rb") as file:
        return done.exit_code != 0 and file.read(len(SANDBOX_SPEAKS)) == SANDBOX_SPEAKS.encode()


def conclude(
    done: Finished, output: str, limits: CheckLimits, place: CheckPlace
) -> tuple[CheckStatus, str | None]:
    """Status and one line for how a program ended. Pure."""
    if done.timed_out:
        return CheckStatus.TIMED_OUT, f"ended after {limits.seconds:g} s"
    if done.over_limit == "memory":
        return CheckStatus.LIMIT, f"ended for using more than {limits.memory_bytes or 0} bytes of memory"
    if done.over_limit is not None:
        return CheckStatus.LIMIT, f"ended for printing more than {limits.output_bytes} bytes"
    if done.exit_code == 0:
        return CheckStatus.PASSED, None
    if output.startswith(SANDBOX_SPEAKS):
        return CheckStatus.REFUSED, f"the sandbox could not be set up: {output.splitlines()[0][:200]}"
    how = f"ended by signal {done.signal}" if done.exit_code is None else f"exit status {done.exit_code}"
    if not place.in_place and f"{place.person_root}{os.sep}" in output:
        how += (
            f"; its output names {place.person_root}, which a check cannot read: it may lead out of the tree"
        )
    return CheckStatus.FAILED, how


def _leftovers(done: Finished) -> list[str]:
    notes = []
    if done.leftovers:
        left = many(done.leftovers, "process", "processes")
        notes.append(f"ended {left} that it had left running")
    if done.survivors:
        left = many(done.survivors, "process", "processes")
        notes.append(f"could not end {left} that it had left running")
    return notes


def _read(log: Path) -> str:
    with log.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= 2 * READ_FOR_TAIL:
            data = file.read()
        else:
            head = file.read(READ_FOR_TAIL)
            file.seek(size - READ_FOR_TAIL)
            data = head + b"\n" + file.read()
    return data.decode("utf-8", "replace")


def _keep(artifacts: Artifacts, log: Path) -> str:
    kept = artifacts.put_file(log)
    log.unlink()
    return kept


def _end(text: str, limit: int) -> str:
    return failing_part(text[-limit * 4 :], min(limit, 400)) if text else ""


def _not_run(
    command: Command, place: CheckPlace, status: CheckStatus, why: str, *, sandboxed: bool
) -> CheckResult:
    return CheckResult(
        command=command.shown or shlex.join(command.argv),
        argv=list(command.argv),
        tree=place.tree,
        status=status,
        seconds=0.0,
        sandboxed=sandboxed,
        detail=why,
    )
