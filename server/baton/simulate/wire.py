"""The HTTP side of the scripted model: requests in, server-sent events out."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from baton.simulate import answer
from baton.simulate.request import Request
from baton.simulate.script import Action, Claiming, Drop, Fail, FailStream, Slow, Stall

LOOK_SECONDS = 0.05
"""How often a silent answer looks whether Codex has hung up."""


class Model(Protocol):
    """Who decides what is answered. Its methods are called from the threads of the connections."""

    @property
    def usage(self) -> answer.TokenUsage:
        """Tokens that each completed answer reports."""

    @property
    def closing(self) -> threading.Event:
        """Set when the server closes: whatever waits gives up."""

    def record(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Request:
        """Note a request; every other call is about one that was noted."""

    def next_action(self, request: Request) -> Action:
        """What to answer to it."""

    def completed(self, request: Request) -> None:
        """The answer was given to its end."""

    def surprise(self, what: str) -> None:
        """Note what could not be answered as it was written down."""


class Handler(BaseHTTPRequestHandler):
    """One connection; HTTP/1.0, so that the end of an answer is the end of the connection."""

    model: Model
    headers_sent = False

    @classmethod
    def bound_to(cls, model: Model) -> type[Handler]:
        """A handler class for one server."""
        return type("BoundHandler", (cls,), {"model": model})

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the request log of the model is the record."""

    def do_GET(self) -> None:
        if self.path.split("?")[0].rstrip("/").endswith("/models"):
            self._json(200, {"object": "list", "data": []})
        else:
            self._json(
                404, {"error": {"message": f"nothing at {self.path}", "type": "invalid_request_error"}}
            )

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            self._json(400, {"error": {"message": "the body is not a JSON object"}})
        elif not self.path.split("?")[0].rstrip("/").endswith("/responses"):
            self._json(
                404, {"error": {"message": f"nothing at {self.path}", "type": "invalid_request_error"}}
            )
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = self.model.record(self.path, headers, body)
            try:
                self._answer(request)
            except (BrokenPipeError, ConnectionResetError):
                pass  # Codex hung up: an interrupted turn
            except ValueError as error:
                self.model.surprise(str(error))
                if not self.headers_sent:
                    self._json(400, {"error": {"message": str(error), "type": "invalid_request_error"}})

    def _body(self) -> dict[str, Any] | None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            return None
        return body if isinstance(body, dict) else None

    def _answer(self, request: Request) -> None:
        if request.kind != "turn":
            self._stream(request, [answer.message("A summary of the work so far.")])
            return
        action = self.model.next_action(request)
        while isinstance(action, Stall):
            if not self._silence(action):
                return
            action = self.model.next_action(request)
        self._perform(action, request)

    def _perform(self, action: Action, request: Request, extra: dict[str, str] | None = None) -> None:
        match action:
            case Fail(status, body, headers):
                self._json(status, body, headers=dict(headers))
            case FailStream(code, message):
                self._begin(extra)
                error = {"code": code, "message": message}
                failed = {"id": "resp_sim", "object": "response", "status": "failed", "error": error}
                self._event({"type": "response.failed", "response": failed})
            case Drop():
                self._begin(extra)
                self._reset()
            case Slow(seconds, then):
                if self._wait(threading.Event(), seconds):
                    self._perform(then, request, extra)
            case Claiming(name, then):
                self._perform(then, request, {"openai-model": name})
            case _:
                self._stream(request, answer.items(action, request), extra)

    def _stream(
        self, request: Request, items: Iterable[dict[str, Any]], extra: dict[str, str] | None = None
    ) -> None:
        self._begin(extra)
        for item in items:
            self._event({"type": "response.output_item.done", "item": item})
        self.model.completed(request)
        done = {"id": "resp_sim", "object": "response", "usage": self.model.usage.wire()}
        self._event({"type": "response.completed", "response": done})

    def _begin(self, extra: dict[str, str] | None) -> None:
        if self.headers_sent:
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.headers_sent = True
        self._event({"type": "response.created", "response": {"id": "resp_sim", "object": "response"}})

    def _event(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("content-length", str(len(raw)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.headers_sent = True
        self.wfile.write(raw)

    def _silence(self, stall: Stall) -> bool:
        """Wait for the release; False when Codex hung up or the server closes."""
        if stall.begin:
            self._begin(None)
        return self._wait(stall.until or threading.Event(), None)

    def _wait(self, released: threading.Event, seconds: float | None) -> bool:
        """Wait for an event or a time, watching the connection; False when it or the server is closing."""
        waited = 0.0
        while not released.wait(LOOK_SECONDS):
            waited += LOOK_SECONDS
            if self.model.closing.is_set() or self._hung_up():
                return False
            if seconds is not None and waited >= seconds:
                return True
        return True

    def _hung_up(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        if not readable:
            return False
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
