"""The scripted services of the other agents' command lines: Anthropic messages and OpenAI chat completions.

Whatever a command line is answered from here is simulated.
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from baton.simulate import chat, messages
from baton.simulate.script import Call, Claiming, Drop, Fail, Say, Stall
from baton.simulate.serving import Serving

LOOK_SECONDS = 0.05

KEY = "simulated-key-for-loopback-0123456789"
"""A key to give to a command line. Long and odd: some replace it wherever it stands in their words."""


@dataclass(frozen=True)
class Ends:
    """A text that ends for another reason than being complete: `length`, `content_filter`."""

    text: str
    reason: str


@dataclass(frozen=True)
class Unfinished:
    """A well-formed stream that stops without a reason, with the connection closed in order."""

    text: str = ""


@dataclass(frozen=True)
class Raw:
    """Status 200 with a body of any kind."""

    body: str = ""
    content_type: str = "text/html"


Answer = Say | Call | Claiming | Fail | Drop | Stall | Ends | Unfinished | Raw


@dataclass(frozen=True)
class Asked:
    """One request for an answer."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that the model is offered."""
        listed = [tool.get("function", tool) for tool in self.body.get("tools") or ()]
        return tuple(sorted(str(tool.get("name")) for tool in listed))

    @property
    def text(self) -> str:
        """Everything that the model is told, as one text of JSON."""
        return json.dumps(self.body, ensure_ascii=False)


class ScriptedService(Serving):
    """A service on 127.0.0.1 and a free port, open while it is used as a context manager.

    Each request takes the next answer; the last one is given again and again. A request for an answer that a
    command line repeats takes the next one too. All methods may be called from any thread.
    """

    def __init__(self, *answers: Answer) -> None:
        if not answers:
            raise ValueError("at least one answer is needed")
        super().__init__()
        self._answers: Sequence[Answer] = answers
        self._asked: list[Asked] = []
        self._changed = threading.Condition()

    @property
    def root(self) -> str:
        """Base URL without a version, as Claude Code wants it."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Base URL with the version, as the others want it."""
        return f"{self.root}/v1"

    @property
    def asked(self) -> tuple[Asked, ...]:
        """Every request for an answer so far, oldest first."""
        with self._changed:
            return tuple(self._asked)

    def wait_for(self, wanted: Callable[[tuple[Asked, ...]], bool], timeout: float = 60.0) -> None:
        """Until the requests satisfy `wanted`. TimeoutError after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: wanted(tuple(self._asked)), timeout):
                raise TimeoutError(f"the service was not asked so within {timeout:g} s")

    def take(self, asked: Asked) -> Answer:
        """Note a request; its answer."""
        with self._changed:
            number = len(self._asked)
            self._asked.append(asked)
            self._changed.notify_all()
        return self._answers[min(number, len(self._answers) - 1)]

    def handler(self) -> type[BaseHTTPRequestHandler]:
        return type("Bound", (_Handler,), {"service": self})


class _Handler(BaseHTTPRequestHandler):
    """One connection; HTTP/1.0, so that the end of an answer is the end of the connection."""

    service: ScriptedService

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the log of the service is the record."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.split("?")[0]
        dialect = {"/v1/messages": messages, "/v1/chat/completions": chat}.get(path)
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if dialect is None or not isinstance(body, dict):
            self._json(404, {"error": {"message": f"nothing at {path}", "type": "invalid_request_error"}})
            return
        asked = Asked(path, {name.lower(): value for name, value in self.headers.items()}, body)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # whoever asked hung up
            self._answer(asked, self.service.take(asked), dialect.Writer(asked.model, asked.tools))

    def _answer(self, asked: Asked, answer: Answer, write: messages.Writer | chat.Writer) -> None:
        match answer:
            case Claiming(model, then):
                write.model = model
                self._answer(asked, then, write)  # type: ignore[arg-type]
            case Fail(status, body, headers):
                self._json(status, body, headers)
            case Raw(text, kind):
                self._begin(kind)
                self.wfile.write(text.encode())
            case Stall(until):
                self._begin("text/event-stream")
                while not self.service.closing.wait(LOOK_SECONDS):
                    if until is not None and until.is_set():
                        return
            case Drop():
                self._begin("text/event-stream")
                self.wfile.write(write.start("cut").encode())
                self.wfile.flush()
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
            case Say(text):
                self._whole(asked, write.said(text), write)
            case Call(tool, arguments):
                self._whole(asked, write.called(tool, arguments), write)
            case Ends(text, reason):
                self._whole(asked, write.said(text, reason), write)
            case Unfinished(text):
                self._begin("text/event-stream")
                self.wfile.write(write.start(text).encode())

    def _whole(self, asked: Asked, answer: Any, write: messages.Writer | chat.Writer) -> None:
        if not asked.body.get("stream"):
            self._json(200, write.plain(answer))
            return
        self._begin("text/event-stream")
        self.wfile.write(write.stream(answer).encode())

    def _begin(self, content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.end_headers()
        self.wfile.flush()

    def _json(self, status: int, body: object, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
