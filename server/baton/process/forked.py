"""Guards from a guard server: one per process that starts many children, such as a run's runner."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import IO

import anyio

from baton.process import guard, tree
from baton.process.environment import RUN_MARKER
from baton.process.pipes import PipeReceiveStream, PipeSendStream

ANSWER_SECONDS = 60.0
"""How long a request may take to be taken; milliseconds where the server is not stopped or starved."""

END_SECONDS = 10.0
"""What the server has to end by itself."""

_server: GuardServer | None = None


@asynccontextmanager
async def guards_forked() -> AsyncIterator[None]:
    """Have every child of this process that is started meanwhile guarded by a fork of one server.

    What is promised of a child does not change, nor do children that already run; it takes 2 ms of processor
    time for each instead of 15. One at a time in a process, in one event loop. Where there is no such server,
    or it has died, every child gets a guard that is started for it.
    """
    global _server
    assert _server is None
    _server = GuardServer.start()
    try:
        yield
    finally:
        ending, _server = _server, None
        if ending is not None:
            with anyio.CancelScope(shield=True):
                await ending.close()


def guard_server_here() -> GuardServer | None:
    """The server of this process, None when there is none to be used."""
    return None if _server is None or _server.lost else _server


@dataclass
class Forked:
    """A guard that the server forked, as far as a process of one's own would be used."""

    stdin: PipeSendStream | None = None
    stdout: PipeReceiveStream | None = None
    stderr: PipeReceiveStream | None = None
    pid: int = 0
    """Known with the first report."""

    async def aclose(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                await stream.aclose()


class GuardServer:
    """The owner's side of `guard_server.py`."""

    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self.lost = False
        """Whether it is not to be asked again."""
        self._process = process
        self._channel = channel
        self._asking = anyio.Lock()

    @classmethod
    def start(cls) -> GuardServer | None:
        """None where it cannot be started. Returns at once; what is asked waits until it is ready."""
        if not guard.LINUX:
            return None
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-X",
                        "utf8",
                        "-I",
                        "-S",
                        "-E",
                        tree.guard_server(),
                        str(theirs.fileno()),
                    ],
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=DEVNULL,
                    cwd="/",
                    # Its guards show these as theirs: whoever looks for processes of a run finds them.
                    env={name: os.environ[name] for name in (RUN_MARKER,) if name in os.environ},
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                return None
        ours.setblocking(False)
        return cls(process, ours)

    async def fork(
        self,
        argv: Sequence[bytes | str],
        *,
        cwd: Path | str,
        env: Mapping[str, str],
        grace: float,
        stdin: int,
        stdout: int,
        stderr: int | IO[bytes],
        death: int,
        report: int,
    ) -> Forked | None:
        """Ask for a guard; None when the server has died. What becomes of it is told on the report pipe.

        `stdin`, `stdout` and `stderr` are what `subprocess` takes. `death` and `report` stay the caller's.
        """
        forked = Forked()
        theirs: list[int] = []
        try:
            for name, wanted in (("stdin", stdin), ("stdout", stdout), ("stderr", stderr)):
                theirs.append(_stream(forked, name, wanted, theirs))
            handles = array("i", [*theirs, death, report])
            asked = await self._ask(handles, _fields(argv, cwd, env, grace))
        except BaseException:
            await forked.aclose()
            raise
        finally:
            for handle in theirs:
                os.close(handle)
        if asked:
            return forked
        await forked.aclose()
        return None

    async def _ask(self, handles: array[int], fields: bytes) -> bool:
        async with self._asking:
            with anyio.move_on_after(ANSWER_SECONDS) as patience:
                try:
                    sent = 0 if self.lost else await self._send(struct.pack("!I", len(fields)), handles)
                    rest = memoryview(fields)
                    while sent and rest:
                        rest = rest[await self._send(rest) :]
                except OSError:
                    self.lost = True
            if patience.cancelled_caught:
                self.give_up()
        return not self.lost

    async def _send(self, data: bytes | memoryview, handles: array[int] | None = None) -> int:
        carried = [] if handles is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handles)]
        while True:
            try:
                return self._channel.sendmsg([data], carried, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                await anyio.wait_writable(self._channel)

    def give_up(self) -> None:
        """Kill a server that does not answer, so that no request is taken up after all; its guards stay."""
        self.lost = True
        self._process.kill()

    async def close(self) -> None:
        """End the server; its guards stay until they have ended their trees."""
        self.lost = True
        self._channel.close()
        await anyio.to_thread.run_sync(self._collect)

    def _collect(self) -> None:
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _stream(forked: Forked, name: str, wanted: int | IO[bytes], before: list[int]) -> int:
    """The program's end of one stream, to be closed here; ours is put into `forked`."""
    if wanted == PIPE:
        reader, writer = os.pipe()
        if name == "stdin":
            forked.stdin = PipeSendStream(writer)
            return reader
        setattr(forked, name, PipeReceiveStream(reader))
        return writer
    if wanted == STDOUT:
        return os.dup(before[1])
    if wanted == DEVNULL:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    return os.dup(wanted if isinstance(wanted, int) else wanted.fileno())


def _fields(argv: Sequence[bytes | str], cwd: Path | str, env: Mapping[str, str], grace: float) -> bytes:
    """The request's text. Raises `ValueError` for a NUL in any of it and for a variable with `=` in its name,
    as starting a program does.
    """
    if any("=" in name for name in env):
        raise ValueError("illegal environment variable name")
    variables = (os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items())
    words = [
        str(grace).encode(),
        os.fsencode(cwd),
        str(len(argv)).encode(),
        *map(os.fsencode, argv),
        *variables,
    ]
    if any(b"\0" in word for word in words):
        raise ValueError("embedded null byte")
    return b"".join(word + b"\0" for word in words)
