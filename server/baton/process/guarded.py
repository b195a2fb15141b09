"""One program under the guard, seen from the owner's side: start, wait, end; nothing of what it is for."""

from __future__ import annotations

import errno
import importlib.util
import os
import secrets
import signal
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from baton.process import guard, tree
from baton.process.environment import WORKER_MARKER
from baton.process.forked import Forked, GuardServer, guard_server_here

GUARD_MARKER = "BATON_GUARD"
"""Unguessable per child: finds what is left of a tree whose guard was killed."""

START_SECONDS = 60.0
"""The guard needs milliseconds; a machine that needs more than this cannot work."""

ORPHAN_ROUNDS = 10
"""How often the tree of a killed guard is looked for: what is ended may set others free."""

ORPHAN_PAUSE = 0.02
"""Seconds before a tree in which nothing is found is looked at once more."""

_HEADER = struct.Struct("<4sIII")
"""How a compiled module begins (PEP 552): magic number, flags, time and size of its source."""

_WORD = 0xFFFFFFFF

FORCE_SECONDS = guard.KILL_SECONDS + 5.0
"""What the guard has beyond the grace to end a tree before it is ended itself."""


@dataclass(frozen=True)
class Ended:
    """How the program and its tree ended. Exactly one of `exit_code` and `signal` is set."""

    exit_code: int | None
    signal: int | None
    leftovers: int
    survivors: int
    guard_lost: bool = False
    """The guard itself was killed; what could be found of its tree has been ended."""


class Guarded:
    """A guard and its program. Made by `start`; `close` must be called."""

    def __init__(self, process: Process | Forked, death: int, report: int, grace: float, marker: str) -> None:
        self.process = process
        self.program_pid = 0
        self._death: int | None = death
        self._report = report
        self._grace = grace
        self._marker = marker
        self._told = b""
        self._unanswered = False
        self._ended: Ended | None = None
        self._collecting = anyio.Lock()

    @classmethod
    async def start(
        cls,
        argv: Sequence[bytes | str],
        *,
        cwd: Path | str,
        env: Mapping[str, str],
        grace: float,
        stdin: int,
        stdout: int,
        stderr: int | IO[bytes],
    ) -> Guarded:
        """Start the guard and see the program started.

        Raises `OSError` with the program's name when it cannot be executed. Cancellation is held off for
        the moment this takes, because a half-started guard could not be ended in order.
        """
        with anyio.CancelScope(shield=True):
            server = guard_server_here()
            guarded = await cls._spawn(argv, cwd, env, grace, stdin, stdout, stderr, server)
            failure = await guarded._first_report()
            if server is not None and failure and not guarded._told:
                # It has died with the request, or the guard at its birth: closing ends what that had started.
                # Or it does not answer, and might yet.
                server.lost = True
                if guarded._unanswered:
                    server.give_up()
                await guarded.close()
                guarded = await cls._spawn(argv, cwd, env, grace, stdin, stdout, stderr, None)
                failure = await guarded._first_report()
            if failure:
                what = cwd if guarded._told.endswith(b" cwd\n") else argv[0]
                await guarded.close()
                raise OSError(failure, os.strerror(failure), os.fsdecode(what))
        return guarded

    @classmethod
    async def _spawn(
        cls,
        argv: Sequence[bytes | str],
        cwd: Path | str,
        env: Mapping[str, str],
        grace: float,
        stdin: int,
        stdout: int,
        stderr: int | IO[bytes],
        server: GuardServer | None,
    ) -> Guarded:
        marker = secrets.token_hex(8)
        death_reader, death = os.pipe()
        report, report_writer = os.pipe()
        env = {**env, GUARD_MARKER: marker}
        process: Process | Forked | None = None
        try:
            if server is not None:
                process = await server.fork(
                    argv,
                    cwd=cwd,
                    env=env,
                    grace=grace,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    death=death_reader,
                    report=report_writer,
                )
            if process is None:
                process = await anyio.open_process(
                    [*_guard_argv(death_reader, report_writer, grace, env), *argv],
                    cwd=cwd,
                    env=env,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                    pass_fds=(death_reader, report_writer),
                )
        except BaseException:
            os.close(death)
            os.close(report)
            raise
        finally:
            os.close(death_reader)
            os.close(report_writer)
        os.set_blocking(report, False)
        return cls(process, death, report, grace, marker)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def stdin(self) -> ByteSendStream:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def stdout(self) -> ByteReceiveStream:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def stderr(self) -> ByteReceiveStream:
        assert self.process.stderr is not None
        return self.process.stderr

    def let_go(self) -> None:
        """Close the death pipe: the guard now ends the tree. Returns at once; idempotent."""
        if self._death is not None:
            os.close(self._death)
            self._death = None

    async def wait(self) -> Ended:
        """Until the guard has ended, and with it the tree."""
        code = -signal.SIGKILL
        if not isinstance(self.process, Forked):
            code = await self.process.wait()
        async with self._collecting:
            while self._ended is None and await self._hear():
                pass
            with anyio.CancelScope(shield=True):
                ended = self._ended or await self._conclude(code)
            self._ended = ended
        return ended

    async def end(self) -> Ended:
        """End the tree: bounded, not interrupted by cancellation, idempotent."""
        with anyio.CancelScope(shield=True):
            self.let_go()
            with anyio.move_on_after(self._grace + FORCE_SECONDS) as patience:
                await self.wait()
            start = tree.start_time(self.pid)
            if patience.cancelled_caught and start is not None:
                # The guard is stopped or starved: take its tree from it.
                await anyio.to_thread.run_sync(tree.end_tree, tree.ProcessId(self.pid, start), 0.0)
            with anyio.move_on_after(FORCE_SECONDS):
                await self.wait()
            # None yet: a guard that cannot be ended, or whose pid was never told.
            ended = self._ended = self._ended or await self._conclude(-signal.SIGKILL)
        return ended

    async def close(self) -> None:
        """End what still runs and give everything back."""
        with anyio.CancelScope(shield=True):
            await self.end()
            await self.process.aclose()
            if self._report >= 0:
                os.close(self._report)
                self._report = -1

    async def _first_report(self) -> int:
        """The errno that kept the program from starting, or 0."""
        with anyio.move_on_after(START_SECONDS) as patience:
            while b"\n" not in self._told and await self._hear():
                pass
        self._unanswered = patience.cancelled_caught
        word, *values = self._told.partition(b"\n")[0].decode().split(" ")
        if word == "started":
            self.program_pid = int(values[0])
            if isinstance(self.process, Forked):
                self.process.pid = int(values[1])
            return 0
        return int(values[0]) if word == "failed" else errno.EAGAIN

    async def _hear(self) -> bool:
        await anyio.wait_readable(self._report)
        try:
            chunk = os.read(self._report, 4096)
        except BlockingIOError:
            return True
        self._told += chunk
        return bool(chunk)

    async def _conclude(self, code: int) -> Ended:
        lines = self._told.decode().splitlines()
        if lines and lines[-1].startswith("ended "):
            said = dict(pair.split("=") for pair in lines[-1].split()[1:])
            number = int(said["signal"])
            return Ended(
                exit_code=None if number else int(said["exit"]),
                signal=number or None,
                leftovers=int(said["leftovers"]),
                survivors=int(said["survivors"]),
            )
        if code >= 0 or (lines[:1] and lines[0].startswith("failed ")):  # the program could not be started
            code = max(code, 126)
            return Ended(exit_code=code, signal=None, leftovers=0, survivors=0)
        survivors = await anyio.to_thread.run_sync(self._end_orphans)
        return Ended(None, -code, leftovers=0, survivors=survivors, guard_lost=True)

    def _end_orphans(self) -> int:
        """What a killed guard left: the program's session, whoever carries this child's marker, and workers'
        commands that this process adopted. Their environment is not their program's, so they carry no mark of
        this child; but a worker's command without a guard above it belongs to nobody any more.
        """
        survivors: set[tree.ProcessId] = set()
        quiet = False
        for _ in range(ORPHAN_ROUNDS):
            found = set(tree.processes_with_marker(GUARD_MARKER, self._marker))
            if self.program_pid:  # unknown when the guard was killed before it could tell
                found.update(tree.session_members(self.program_pid))
            found.update(tree.adopted(WORKER_MARKER, "1"))
            if not found:
                if quiet:
                    break
                # One that is just dying shows neither itself nor yet whom it leaves behind.
                quiet = True
                time.sleep(ORPHAN_PAUSE)
                continue
            quiet = False
            survivors = {left for process in found for left in tree.end_tree(process, 0.0)}
            tree.reap(process.pid for process in found)
        return len(survivors)


def _guard_argv(death: int, report: int, grace: float, env: Mapping[str, str]) -> list[str]:
    # Python itself sets LC_CTYPE in a C locale; the program must not see what the caller did not give.
    drop = [] if "LC_CTYPE" in env else ["--drop", "LC_CTYPE"]
    options = ["--death-fd", str(death), "--report-fd", str(report), "--grace", str(grace), *drop]
    return [sys.executable, "-X", "utf8", "-I", "-S", "-E", guard_program(), *options, "--"]


def guard_program() -> str:
    """What Python is to run as the guard: its compiled form where an import would take that, else its source.

    A program given by its source is compiled at every start.
    """
    source, compiled = guard.__file__, tree.compiled_guard()
    try:
        with Path(compiled).open("rb") as file:
            header = file.read(_HEADER.size)
        facts = os.stat(source)  # noqa: PTH116
    except (OSError, TypeError):
        return source
    same = (importlib.util.MAGIC_NUMBER, 0, int(facts.st_mtime) & _WORD, facts.st_size & _WORD)
    return compiled if len(header) == _HEADER.size and _HEADER.unpack(header) == same else source
