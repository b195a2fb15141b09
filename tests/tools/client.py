"""A client on a server's stdin and stdout, with a deadline on everything it waits for."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

DEADLINE = 60.0

Message = dict[str, Any]


class Client:
    """Starts a server and talks to it in lines. `notes` collects the notifications met on the way."""

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.notes: list[Message] = []
        self.raw: list[bytes] = []
        self._early: dict[object, Message] = {}
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise
        finally:
            self._reader.join(DEADLINE)
            self.process.stdout.close()

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, *messages: Message) -> None:
        """Send messages in one write."""
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def answer(self, number: object) -> Message:
        """The answer to request `number`, whatever order answers come in."""
        while number not in self._early:
            line = self._lines.get(timeout=DEADLINE)
            if not line:
                raise EOFError(f"the server ended without an answer to {number!r}")
            self.raw.append(line)
            message = json.loads(line)
            if "id" in message:
                assert message["id"] not in self._early, f"answered twice: {message}"
                self._early[message["id"]] = message
            else:
                self.notes.append(message)
        return self._early[number]

    def ask(self, number: object, method: str, params: Message | None = None) -> Message:
        self.send(request(number, method, params))
        return self.answer(number)

    def call(self, number: object, tool: str, arguments: Message, meta: Message | None = None) -> Message:
        """The result of a tool's call."""
        self.send(call(number, tool, arguments, meta))
        return self.result(number)

    def result(self, number: object) -> Message:
        answer = self.answer(number)
        assert "result" in answer, answer
        found: Message = answer["result"]
        return found

    def greet(self, version: str = "2025-06-18") -> Message:
        answer = self.ask(0, "initialize", hello(version))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        found: Message = answer["result"]
        return found

    def close_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")


def request(number: object, method: str, params: Message | None = None) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else {**message, "params": params}


def call(number: object, tool: str, arguments: Message, meta: Message | None = None) -> Message:
    params: Message = {"name": tool, "arguments": arguments}
    if meta is not None:
        params["_meta"] = meta
    return request(number, "tools/call", params)


def hello(version: str = "2025-06-18") -> Message:
    client = {"name": "test", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
