"""From the front to the full server: waits for the environment, then replaces this process by the server.

The process is replaced rather than joined by a second one: signals, the end of input and a kill reach the
server itself, nothing has to be pumped or reaped, and no process is left over. What the client has said so
far is handed on in an unnamed file, so that the server hears the conversation from its beginning.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

from baton.contract.errors import BatonError, StateUnavailable, Unsupported
from baton.runtime.build import BUSY
from baton.runtime.errors import RuntimeBuilding, RuntimeUnavailable
from baton.runtime.interpreter import find_python
from baton.runtime.places import Environment, environment_key, runtime_folder, unwritable
from baton.runtime.use import try_hold

HANDOVER = "BATON_HANDOVER"
"""The environment variable that tells the server the descriptor of what the client has said."""

LOOK_SECONDS = 0.1
PROGRESS_SECONDS = 2.0
DEFAULT_WAIT = 240.0
"""Seconds a call waits for a build unless `BATON_BUILD_WAIT` says otherwise; Codex gives up after 300."""


class Front:
    """What the hand-over needs of the front; see `scripts/serve.py`."""

    hello: bytes
    initialized: bytes | None

    def answer(self, line: bytes) -> bytes | None:
        raise NotImplementedError


class Pending:
    """A request that waits for the server."""

    def __init__(self, line: bytes) -> None:
        message = json.loads(line)
        self.line = line
        self.id = message["id"]
        self.method = message["method"]
        self.since = time.monotonic()
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        self.progress_token = meta.get("progressToken") if isinstance(meta, dict) else None


def hand_over(front: Front, root: str, lines: list[bytes], rest: bytes) -> None:
    """Go on with the conversation, starting with `lines`, whose first the front cannot answer.

    Becomes the full server as soon as its environment is ready. Until then it answers what the front can, and
    a request that cannot be served gets an error as its answer; the next one tries again. Returns when the
    client has left.
    """
    Conversation(front, root, dict(os.environ)).go_on(lines, rest)


class Conversation:
    """The client's side while the server is not there yet."""

    def __init__(self, front: Front, root: str, environment: Mapping[str, str]) -> None:
        self._front = front
        self._variables = environment
        self._builds = Builds(root, environment)
        self._pending: list[Pending] = []
        self._rest = b""
        self._reported = time.monotonic()

    def go_on(self, lines: list[bytes], rest: bytes) -> None:
        self._rest = rest
        for line in lines:
            self._hear(line)
        while True:
            if self._pending:
                self._try()
            wait = LOOK_SECONDS if self._pending else None
            if not select.select([0], [], [], wait)[0]:
                continue
            chunk = os.read(0, 65536)
            if not chunk:
                return
            heard = (self._rest + chunk).split(b"\n")
            self._rest = heard.pop()
            for line in heard:
                self._hear(line)

    def _hear(self, line: bytes) -> None:
        answer = self._front.answer(line)
        if answer is None:
            self._pending.append(Pending(line))
        elif answer:
            _write(answer)
        elif b"notifications/cancelled" in line:
            cancelled = _cancelled(line)
            self._pending = [request for request in self._pending if request.id != cancelled]

    def _try(self) -> None:
        """Become the server, or wait on, or answer everybody that it cannot be had."""
        try:
            python = self._variables.get("BATON_RUNTIME") or self._builds.python()
            if python is not None:
                self._become(python)
        except BatonError as error:
            self._fail(self._pending, error)
            return
        patience = _patience(self._variables)
        now = time.monotonic()
        late = [request for request in self._pending if now - request.since >= patience]
        if late:
            self._fail(
                late,
                RuntimeBuilding(
                    "Baton's environment is being built, once per version: call again in a minute "
                    f"(log: {self._builds.log})"
                ),
            )
        if now - self._reported >= PROGRESS_SECONDS:
            self._reported = now
            self._report(now)

    def _report(self, now: float) -> None:
        for request in self._pending:
            if request.progress_token is not None:
                waited = now - request.since
                # Stays below 1, where the server's own count begins: progress may only rise.
                params = {
                    "progressToken": request.progress_token,
                    "progress": round(waited / (waited + 60), 4),
                    "message": f"building Baton's environment, {waited:.0f} s",
                }
                _send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    def _fail(self, requests: list[Pending], error: BatonError) -> None:
        for request in requests:
            if request.method == "tools/call":
                result = {
                    "content": [{"type": "text", "text": error.message}],
                    "structuredContent": {"error": error.code, "message": error.message},
                    "isError": True,
                }
                _send({"jsonrpc": "2.0", "id": request.id, "result": result})
            else:
                fault = {"code": -32603, "message": error.message}
                _send({"jsonrpc": "2.0", "id": request.id, "error": fault})
        self._pending = [request for request in self._pending if request not in requests]

    def _become(self, python: str) -> None:
        said = [self._front.hello] if self._front.hello else []
        if self._front.initialized is not None:
            said.append(self._front.initialized)
        said += [request.line for request in self._pending]
        variables = dict(self._variables)
        variables[HANDOVER] = str(_unnamed_file(b"\n".join(said) + b"\n" + self._rest))
        try:
            os.execve(python, [python, "-I", "-m", "baton.tools.server"], variables)
        except OSError as error:
            raise RuntimeUnavailable(f"{python} cannot be started: {error.strerror}") from None


class Builds:
    """The environment of this bundle, and the builder that this process started for it."""

    def __init__(self, root: str, variables: Mapping[str, str]) -> None:
        self._root = root
        self._variables = variables
        self._environment: Environment | None = None
        self._python = ""
        self._builder: subprocess.Popen[bytes] | None = None
        self._tried = False

    @property
    def log(self) -> str:
        return self._environment.log if self._environment is not None else ""

    def python(self) -> str | None:
        """The server's interpreter, its environment held for this process's life; None while it is built.

        Starts the builder when nobody has. Raises `BatonError` when the build has failed; the next call
        starts another one.
        """
        environment = self._locate()
        try:
            held = try_hold(environment)
            if held is None:
                return None
            if environment.ready():
                os.set_inheritable(held, True)
                self._dismiss()
                return environment.python
            os.close(held)
            self._see_to_it(environment)
            return None
        except OSError as error:
            raise unwritable(environment.runtime, error) from None

    def _locate(self) -> Environment:
        if self._environment is None:
            runtime = runtime_folder(self._variables)
            python = find_python(self._variables)
            self._python = python.path
            self._environment = Environment(runtime, environment_key(self._root, python.abi))
        return self._environment

    def _see_to_it(self, environment: Environment) -> None:
        """Nobody is building: start a builder, or say why the one that ended was of no use."""
        if self._builder is not None and self._builder.poll() is None:
            return
        if self._builder is None:
            self._builder = self._start(environment)
            return
        status, self._builder = self._builder.returncode, None
        self._environment = None
        if status == BUSY and not os.path.exists(environment.failure):
            return
        raise _read_failure(environment)

    def _start(self, environment: Environment) -> subprocess.Popen[bytes]:
        script = os.path.join(self._root, "server", "baton", "runtime", "build.py")
        arguments = [environment.runtime, environment.key, self._root, self._python]
        # Another builder may be writing it: who gets the lock empties it.
        with open(environment.log, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", script, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                # A session of its own: the build goes on when this session of Codex ends.
                start_new_session=True,
            )

    def _dismiss(self) -> None:
        """Reap the builder: its end would otherwise be the server's business."""
        if self._builder is not None:
            self._builder.terminate()
            self._builder.wait()
            self._builder = None


def _read_failure(environment: Environment) -> BatonError:
    try:
        with open(environment.failure, encoding="utf-8") as file:
            note: dict[str, Any] = json.load(file)
        kinds: list[Callable[[str], BatonError]] = [StateUnavailable, Unsupported]
        for kind in kinds:
            if getattr(kind, "code", None) == note["code"]:
                return kind(note["message"])
        return RuntimeUnavailable(note["message"])
    except (OSError, ValueError, KeyError):
        return RuntimeUnavailable(
            f"the build of Baton's environment was interrupted: call again (log: {environment.log})"
        )


def _patience(variables: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(variables.get("BATON_BUILD_WAIT") or DEFAULT_WAIT))
    except ValueError:
        return DEFAULT_WAIT


def _cancelled(line: bytes) -> object:
    try:
        return json.loads(line)["params"]["requestId"]
    except (ValueError, KeyError, TypeError):
        return None


def _unnamed_file(content: bytes) -> int:
    """An inheritable descriptor, at its start, of a file without a name that holds `content`."""
    try:
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("baton-handover", 0)
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        remaining = content
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.set_inheritable(descriptor, True)
    except OSError as error:
        raise StateUnavailable("no room to start Baton's server: %s" % (error.strerror or error)) from None
    return descriptor


def _send(message: dict[str, object]) -> None:
    _write(json.dumps(message, separators=(",", ":")).encode() + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]
