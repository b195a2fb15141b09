"""One `codex app-server` process: requests with deadlines, events by thread, an end that is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from baton.codex.bubblewrap import with_bubblewrap
from baton.codex.declining import answer
from baton.codex.events import Notification, ThreadEvents
from baton.codex.faults import NoAnswer, RequestRefused, ServerDied
from baton.codex.launch import server_argv
from baton.codex.lines import read_object, write_object
from baton.contract.errors import CodexFailure
from baton.process.child import Child, open_child, read_lines

log = logging.getLogger(__name__)

START_SECONDS = 30.0
REQUEST_SECONDS = 30.0
WRITE_SECONDS = 30.0
CLOSE_SECONDS = 3.0
"""How long the app-server has to end by itself once its input is closed."""

NOTICES = 200
"""How many notices outside any thread are kept."""


class AppServer:
    """A running app-server. Many threads may use it at once, all on one asyncio event loop.

    Every request has a deadline. When the process ends, everyone who waits gets `ServerDied`. Requests that
    the server makes (approvals, questions) are declined. Not to be shared between event loops.
    """

    def __init__(self, child: Child, binary: Path, stderr: Path | None = None) -> None:
        self.binary = binary
        """The Codex program that it is."""
        self._child = child
        self._stderr = stderr
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._threads: dict[str, ThreadEvents] = {}
        self._writing = asyncio.Lock()
        self._death: ServerDied | None = None
        self._closing = False
        self._silent = False
        self.garbage = 0
        """Lines of the server that were no JSON object."""
        self.notices: deque[Notification] = deque(maxlen=NOTICES)
        """The latest notifications that belong to no thread."""
        self.user_agent = ""
        self._reader = asyncio.create_task(self._read(), name="app-server reader")

    @classmethod
    async def start(
        cls,
        binary: Path,
        home: Path,
        env: Mapping[str, str],
        *,
        stderr: Path,
        cwd: Path,
        extra: Mapping[str, bool | int | str] | None = None,
        disabled_servers: tuple[str, ...] = (),
        timeout: float = START_SECONDS,
    ) -> AppServer:
        """Start under the guard and shake hands.

        `env` is the whole environment of the process; CODEX_HOME is added, and its PATH leads to a bubblewrap
        that Codex can use. Raises `CodexFailure` when it does not answer within `timeout` seconds; the
        message then ends with what it wrote to its error output.
        """
        led = await anyio.to_thread.run_sync(with_bubblewrap, env, binary)
        environment = {**led, "CODEX_HOME": str(home)}
        argv = server_argv(binary, extra, disabled_servers)
        try:
            child = await open_child(argv, cwd=cwd, env=environment, stderr=stderr)
        except OSError as error:
            raise CodexFailure(f"Codex could not be started ({binary}): {error}") from error
        server = cls(child, binary, stderr)
        try:
            await server._shake_hands(timeout)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await server.close()
            raise
        return server

    @property
    def pid(self) -> int:
        """The guard's pid, for the process record: ending it with SIGTERM ends the tree."""
        return self._child.pid

    @property
    def program_pid(self) -> int:
        """The app-server's own pid."""
        return self._child.program_pid

    @property
    def alive(self) -> bool:
        """False once the process has ended or was closed."""
        return self._death is None and not self._closing

    @property
    def answers(self) -> bool:
        """False while it lives and has left a request unanswered, until it answers one again."""
        return not self._silent

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, timeout: float = REQUEST_SECONDS
    ) -> dict[str, Any]:
        """Send a request and return its result.

        Raises `RequestRefused` for an error answer, `NoAnswer` after `timeout` seconds, `ServerDied` when the
        process is gone.
        """
        self._check_alive()
        number = next(self._ids)
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        try:
            with anyio.fail_after(timeout):
                await self._send({"id": number, "method": method, "params": dict(params or {})})
                message = await answered
        except TimeoutError:
            self._silent = True
            raise NoAnswer(f"Codex did not answer {method} within {timeout:g} s") from None
        finally:
            self._waiting.pop(number, None)
            if answered.done() and not answered.cancelled():
                answered.exception()  # looked at, so that nobody warns of it
        return _result(method, message)

    def events(self, thread_id: str) -> ThreadEvents:
        """The events of one thread, from the first one on."""
        events = self._threads.get(thread_id)
        if events is None:
            events = self._threads[thread_id] = ThreadEvents()
            if self._death is not None:
                events.fail(self._death)
        return events

    def forget(self, thread_id: str) -> None:
        """Drop what is queued for a thread that is no longer used."""
        self._threads.pop(thread_id, None)

    async def close(self) -> None:
        """End the process and its whole tree within a few seconds. May be called again."""
        self._closing = True
        with anyio.CancelScope(shield=True):
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._child.stdin.aclose()
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._child.wait()
            await self._child.guarded.close()
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
            self._die("Codex was closed")

    async def __aenter__(self) -> AppServer:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _shake_hands(self, timeout: float) -> None:
        client = {"name": "baton", "title": "Baton", "version": "1"}
        capabilities = {"experimentalApi": True}
        answered = await self.request(
            "initialize", {"clientInfo": client, "capabilities": capabilities}, timeout
        )
        self.user_agent = str(answered.get("userAgent", ""))
        await self._send({"method": "initialized"})

    async def _send(self, message: dict[str, object]) -> None:
        self._check_alive()
        try:
            # A message cut in the middle would spoil the stream: it is written whole, or the server is done.
            async with self._writing:
                with anyio.CancelScope(shield=True), anyio.fail_after(WRITE_SECONDS):
                    await self._child.stdin.send(write_object(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, TimeoutError):
            self._die("Codex does not read its input any more")
            self._check_alive()

    def _check_alive(self) -> None:
        if self._death is not None:
            raise ServerDied(self._death.message)
        if self._closing:
            raise ServerDied("Codex was closed")

    async def _read(self) -> None:
        try:
            async for line in read_lines(self._child.stdout):
                await self._take(line)
            self._die(await self._how_it_ended())
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            self._die(await self._how_it_ended())
        except ServerDied:
            pass
        except Exception as error:
            log.exception("reading from the app-server failed")
            self._die(f"reading from Codex failed: {error}")

    async def _how_it_ended(self) -> str:
        if self._closing:
            return "Codex was closed"
        with anyio.move_on_after(CLOSE_SECONDS):
            ended = await self._child.wait()
            if ended.signal is not None:
                return f"Codex was killed by signal {ended.signal}"
            tail = _tail(self._stderr)
            return f"Codex ended with status {ended.exit_code}" + (f": {tail}" if tail else "")
        return "Codex closed its output"

    async def _take(self, line: bytes) -> None:
        message = read_object(line)
        if message is None:
            if line.strip():
                self.garbage += 1
                log.warning("the app-server wrote a line that is no JSON object (%d bytes)", len(line))
            return
        method = message.get("method")
        if not isinstance(method, str):
            self._answered(message)
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" in message:
            self._route(Notification(f"declined/{method}", params))
            await self._send({"id": message["id"], **answer(method)})
        else:
            self._route(Notification(method, params))

    def _answered(self, message: dict[str, Any]) -> None:
        self._silent = False
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _route(self, event: Notification) -> None:
        thread_id = _thread_of(event)
        if thread_id is None:
            self.notices.append(event)
        else:
            self.events(thread_id).put(event)

    def _die(self, why: str) -> None:
        if self._death is not None:
            return
        self._death = ServerDied(why)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ServerDied(self._death.message))
        for events in self._threads.values():
            events.fail(self._death)


def _result(method: str, message: dict[str, Any]) -> dict[str, Any]:
    if "error" in message:
        error = message["error"] if isinstance(message["error"], dict) else {}
        code = error.get("code")
        raise RequestRefused(method, code if isinstance(code, int) else None, str(error.get("message", "")))
    result = message.get("result")
    return result if isinstance(result, dict) else {}


def _thread_of(event: Notification) -> str | None:
    thread = event.params.get("thread")
    found = event.params.get("threadId") or event.params.get("conversationId")
    found = found or (thread.get("id") if isinstance(thread, dict) else None)
    return found if isinstance(found, str) else None


def _tail(path: Path | None) -> str:
    """The last line of the error output, short, for a message."""
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", lines[-1] if lines else "")
    return plain[:400]
