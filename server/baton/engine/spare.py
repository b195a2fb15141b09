"""A runner started ahead of need: loaded and waiting, so that a run does not wait for its program to load.

It belongs to one session, waits on a socket of it and ends with it, or after an idle time. What it is given,
a run and its lock, it has from the moment in which it says so; until then both are the session's. While it
waits it makes ready what the next run will want (`ahead.py`); a run is taken at any time.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from baton.engine.ahead import Ahead
from baton.engine.house import House
from baton.engine.spawn import spawn
from baton.ledger.ids import is_run_id, new_run_id
from baton.ledger.locks import FileLock
from baton.process.environment import RUN_MARKER

log = logging.getLogger(__name__)

WAIT_OPTION = "--wait"

IDLE_SECONDS = 900.0
"""A spare that is not needed for so long ends by itself."""

TAKE_SECONDS = 5.0
"""How long it may take to say that it has a run; then another runner is started."""

_TAKEN = b"taken\n"


class SpareRunner:
    """A session's end: at most one runner that waits. Safe to use from several threads."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._lock = threading.Lock()
        self._waiting: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def prepare(self, ahead: Ahead | None = None) -> None:
        """Start one unless one waits already, and tell it what to make ready.

        That it cannot be started is no fault: it is only a spare. Does not wait for anything it does.
        """
        with self._lock:
            if self._waiting is None or self._waiting[0].poll() is not None:
                self._start()
            if self._waiting is not None and ahead is not None:
                self._tell(ahead.line())

    def give(self, run_id: str, lock: FileLock, output: Path) -> bool:
        """Hand a run and its held lock to the spare; False when there is none that takes them."""
        with self._lock:
            if self._waiting is None:
                return False
            process, ours = self._waiting
            self._waiting = None
            with ours:
                try:
                    ours.settimeout(TAKE_SECONDS)
                    socket.send_fds(ours, [f"{run_id} {output}\n".encode()], [lock.handle()])
                    taken = ours.recv(len(_TAKEN)) == _TAKEN
                except OSError:
                    taken = False
            if not taken:
                # Whatever keeps it: it must not come to have the run later.
                process.kill()
                process.wait()
            return taken

    def close(self) -> None:
        """Let go of the spare, which then ends."""
        with self._lock:
            self._drop()

    def _start(self) -> None:
        self._drop()
        ours, theirs = socket.socketpair()
        try:
            argv = [sys.executable, "-m", "baton.engine.runner", WAIT_OPTION, str(theirs.fileno())]
            # Its environment cannot be changed from outside any more: there is room for a run's id in it.
            process = spawn(self._house, argv, Path(os.devnull), new_run_id(), theirs.fileno())
        except OSError as error:
            ours.close()
            log.info("no spare runner: %s", error)
            return
        finally:
            theirs.close()
        self._waiting = process, ours

    def _tell(self, line: bytes) -> None:
        assert self._waiting is not None
        process, ours = self._waiting
        with contextlib.suppress(OSError):
            if ours.send(line, socket.MSG_DONTWAIT) < len(line):
                process.kill()  # it would take what comes next for the rest of the line

    def _drop(self) -> None:
        if self._waiting is not None:
            process, ours = self._waiting
            self._waiting = None
            ours.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(TAKE_SECONDS)


def await_run(handle: int, ask: Callable[[bytes], None]) -> tuple[str, int] | None:
    """The spare's end: wait for a run; its id and the handle of its lock. None when there is none to come.

    Lines that tell of something to be made ready go to `ask`, which must not wait. What the process prints
    goes to the run's own log from then on, and whoever looks for processes of the run finds it by its
    environment.
    """
    with socket.socket(fileno=handle) as theirs:
        theirs.settimeout(IDLE_SECONDS)
        try:
            message, lock = _message(theirs, ask)
        except OSError:
            return None
        run_id, _, output = message.decode().partition(" ")
        if lock is None or not is_run_id(run_id) or not _mark(run_id):
            return None
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for stream in (1, 2):
            os.dup2(target, stream)
        os.close(target)
        try:
            theirs.sendall(_TAKEN)
        except OSError:
            return None
    return run_id, lock


def _message(theirs: socket.socket, ask: Callable[[bytes], None]) -> tuple[bytes, int | None]:
    """The line that came with a handle, and the handle; empty at the end of all lines."""
    rest = b""
    while True:
        data, handles, _, _ = socket.recv_fds(theirs, 1 << 16, 1)
        *lines, rest = (rest + data).split(b"\n")
        if handles:
            lines, message = lines[:-1], lines[-1]
        for line in lines:
            ask(line)
        if handles:
            return message, handles[0]
        if not data:
            return b"", None


def _mark(run_id: str) -> bool:
    """Put the run's id where the environment of this process holds its room for one.

    Others read the environment that a process was started with, and that is the very memory in which it lies.
    """
    room = os.environ.get(RUN_MARKER, "")
    getenv = ctypes.CDLL(None).getenv
    getenv.argtypes, getenv.restype = [ctypes.c_char_p], ctypes.c_void_p
    place = getenv(RUN_MARKER.encode())
    if place is None or len(room) != len(run_id):
        return False
    ctypes.memmove(place, run_id.encode(), len(run_id))
    os.environ[RUN_MARKER] = run_id
    return True
