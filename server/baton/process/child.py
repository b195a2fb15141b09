"""Children under the guard: one that runs to its end (`run`), and one that is talked to (`open_child`).

Whatever happens to the caller (an error, a time-out, cancellation, its death by SIGKILL), the whole tree of
the child is ended. Every wait in here is bounded, also while cancellation is shielded off.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import IO, Self

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup

from baton.process import tree
from baton.process.guarded import Ended, Guarded

MAX_OUTPUT_IN_MEMORY = 16 * 1024 * 1024

MEMORY_INTERVAL = 0.5
"""Seconds between two looks at the memory of a tree. Between two looks a tree can pass its limit unseen."""

DRAIN_SECONDS = 2.0
"""How long the end of the output is awaited once the tree has ended; only a survivor can delay it."""


@dataclass(frozen=True)
class Finished:
    """How a child ended. Exactly one of `exit_code` and `signal` is set."""

    exit_code: int | None
    signal: int | None
    timed_out: bool
    over_limit: str | None
    """`output` or `memory` when the child was ended for going beyond it."""
    seconds: float
    leftovers: int
    """Processes it left running when it ended; they have been ended."""
    survivors: int
    """Processes that could not be ended (another user's, uninterruptible)."""
    output_bytes: int
    """What was kept of the output, at most the limit."""
    output: bytes = b""
    """The output when no file was given."""
    errors: bytes = b""
    """Standard error when it was asked for apart."""
    guard_lost: bool = False
    """Its guard was killed, and it with it: how it would have ended is not known."""


async def run(
    argv: Sequence[bytes | str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    timeout: float | None,
    stdin: bytes | None = None,
    output: Path | None = None,
    max_output: int | None = None,
    memory_limit: int | None = None,
    errors_apart: bool = False,
    grace: float = 1.0,
) -> Finished:
    """Run a program to its end.

    Standard input is empty unless given. Output and errors, in the order written, go to the file `output`
    (made anew, mode 0600), or to `Finished.output` when none is given; with `errors_apart` errors go to
    `Finished.errors` (at most 16 MiB). Beyond `max_output` bytes (16 MiB when kept in memory), `memory_limit`
    bytes (of the whole tree, shared pages once, looked at twice a second) or `timeout` seconds the tree is
    ended; `grace` is what it has between SIGTERM and SIGKILL.

    Raises `OSError` (`FileNotFoundError`, `PermissionError` …) when the program cannot be started, and when
    the output cannot be written, then with the tree ended.
    """
    begun = time.monotonic()
    in_memory = MAX_OUTPUT_IN_MEMORY if max_output is None else max_output
    limit = math.inf if output is not None and max_output is None else in_memory
    async with _opened(argv, cwd, env, grace, stdin is not None, PIPE if errors_apart else STDOUT) as guarded:
        with _Sink(output, limit) as sink, _Sink(None, MAX_OUTPUT_IN_MEMORY) as errors:
            watch = _Watch(guarded)
            async with anyio.create_task_group() as tasks:
                if stdin is not None:
                    tasks.start_soon(_feed, guarded.stdin, stdin)
                if timeout is not None:
                    tasks.start_soon(watch.clock, timeout)
                if memory_limit is not None:
                    tasks.start_soon(watch.weigh, memory_limit)
                ended = await _until_end(guarded, watch, sink, errors if errors_apart else None, tasks)
            if watch.fault is not None:
                raise watch.fault
            return Finished(
                exit_code=ended.exit_code,
                signal=ended.signal,
                timed_out=watch.timed_out,
                over_limit=watch.over_limit,
                seconds=time.monotonic() - begun,
                leftovers=ended.leftovers,
                survivors=ended.survivors,
                output_bytes=sink.size,
                output=sink.data(),
                errors=errors.data(),
                guard_lost=ended.guard_lost,
            )


@dataclass
class Child:
    """A running child that is talked to over its standard streams. Use it as an async context manager.

    `stdout` gives the bytes as they come: there is no limit on the length of a line (see `read_lines`).
    """

    guarded: Guarded
    stdin: ByteSendStream
    stdout: ByteReceiveStream

    @property
    def pid(self) -> int:
        """The guard's pid: ending it with SIGTERM ends the tree. For the process record."""
        return self.guarded.pid

    @property
    def program_pid(self) -> int:
        return self.guarded.program_pid

    async def wait(self) -> Ended:
        """Until the child and its tree have ended; may be awaited by several tasks, and again."""
        return await self.guarded.wait()

    async def end(self) -> Ended:
        """End the tree, bounded, even under cancellation; idempotent."""
        return await self.guarded.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.guarded.close()


async def open_child(
    argv: Sequence[bytes | str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    stderr: Path,
    grace: float = 1.0,
) -> Child:
    """Start a long-lived child with pipes for its input and output; its errors are appended to a file (0600).

    Raises `OSError` when the program cannot be started.
    """
    with _private_file(stderr, append=True) as errors:
        guarded = await Guarded.start(
            argv, cwd=cwd, env=env, grace=grace, stdin=PIPE, stdout=PIPE, stderr=errors
        )
    return Child(guarded, guarded.stdin, guarded.stdout)


async def read_lines(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    """Lines of any length, split at line feeds alone, without them; an unfinished last line is given too."""
    parts: list[bytes] = []
    async for chunk in stream:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            yield b"".join((*parts, line))
            parts.clear()
        if rest:
            parts.append(rest)
    if parts:
        yield b"".join(parts)


@asynccontextmanager
async def _opened(
    argv: Sequence[bytes | str],
    cwd: Path | str,
    env: Mapping[str, str],
    grace: float,
    with_input: bool,
    stderr: int,
) -> AsyncIterator[Guarded]:
    guarded = await Guarded.start(
        argv,
        cwd=cwd,
        env=env,
        grace=grace,
        stdin=PIPE if with_input else DEVNULL,
        stdout=PIPE,
        stderr=stderr,
    )
    try:
        yield guarded
    finally:
        await guarded.close()


async def _until_end(
    guarded: Guarded, watch: _Watch, sink: _Sink, errors: _Sink | None, tasks: TaskGroup
) -> Ended:
    drained = [anyio.Event()]
    tasks.start_soon(watch.collect, guarded.stdout, sink, drained[0])
    if errors is not None:
        drained.append(anyio.Event())
        tasks.start_soon(watch.collect, guarded.stderr, errors, drained[1])
    ended = await guarded.wait()
    with anyio.move_on_after(DRAIN_SECONDS):
        for event in drained:
            await event.wait()
    tasks.cancel_scope.cancel()
    return ended


class _Watch:
    """What ends a child early, and why it did."""

    def __init__(self, guarded: Guarded) -> None:
        self.guarded = guarded
        self.timed_out = False
        self.over_limit: str | None = None
        self.fault: OSError | None = None
        """Why the output could not be written."""

    async def clock(self, timeout: float) -> None:
        await anyio.sleep(timeout)
        self.timed_out = True
        await self.guarded.end()

    async def weigh(self, limit: int) -> None:
        while True:
            await anyio.sleep(MEMORY_INTERVAL)
            used = await anyio.to_thread.run_sync(tree.memory_of_tree, self.guarded.pid, limit)
            if used > limit:
                self.over_limit = self.over_limit or "memory"
                await self.guarded.end()
                return

    async def collect(self, stream: ByteReceiveStream, sink: _Sink, drained: anyio.Event) -> None:
        async for chunk in stream:
            # What comes after the limit or a fault is read and dropped: the tree can end without blocking.
            if self.fault is None and not self._kept(sink, chunk):
                self.guarded.let_go()
        drained.set()

    def _kept(self, sink: _Sink, chunk: bytes) -> bool:
        try:
            if sink.take(chunk):
                return True
            self.over_limit = self.over_limit or "output"
        except OSError as error:
            self.fault = error
        return False


class _Sink:
    """Keeps output up to a limit, in a file or in memory."""

    def __init__(self, path: Path | None, limit: float) -> None:
        self.limit = limit
        self.size = 0
        self._chunks: list[bytes] = []
        self._file = None if path is None else _private_file(path, append=False)

    def take(self, chunk: bytes) -> bool:
        """Keep what fits; False when something did not."""
        fits = chunk if self.size + len(chunk) <= self.limit else chunk[: int(self.limit) - self.size]
        self.size += len(fits)
        if self._file is None:
            self._chunks.append(fits)
        else:
            rest = memoryview(fits)
            while rest:
                rest = rest[self._file.write(rest) :]
        return len(fits) == len(chunk)

    def data(self) -> bytes:
        return b"".join(self._chunks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def _private_file(path: Path, *, append: bool) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_APPEND if append else os.O_TRUNC)
    return os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)


async def _feed(stream: ByteSendStream, data: bytes) -> None:
    try:
        await stream.send(data)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return  # it ended, or closed its input, without reading everything: its right
    finally:
        await stream.aclose()
