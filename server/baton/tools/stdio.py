"""The server's stdin and stdout, taken over in mid-conversation from the front where there was one."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO

import anyio
from mcp.server.stdio import stdio_server
from mcp.shared._context_streams import ContextReceiveStream, ContextSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

HANDOVER = "BATON_HANDOVER"
"""Names the descriptor of what the client had sent before the front became this process."""

Streams = tuple[ContextReceiveStream[SessionMessage | Exception], ContextSendStream[SessionMessage]]


@asynccontextmanager
async def stdio() -> AsyncIterator[Streams]:
    """The message streams of this process's client.

    After a hand-over the client's own messages are read again from their beginning, and the answer to its
    `initialize`, which the front has given already, is dropped. Descriptors 0 and 1 are pointed elsewhere
    meanwhile, so that no child reads the client's messages or writes among the answers.
    """
    handover = os.environ.pop(HANDOVER, None)
    said = b""
    if handover is not None:
        with os.fdopen(int(handover), "rb") as file:
            said = file.read()
    source, sink = _take_standard_streams()
    reader = _Requests(io.BufferedReader(_Replayed(said, source)), encoding="utf-8", errors="replace")
    writer = _WithoutHello(os.fdopen(sink, "wb"), said)
    async with stdio_server(anyio.wrap_file(reader), anyio.wrap_file(writer)) as streams:
        yield streams


def _take_standard_streams() -> tuple[int, int]:
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


class _Replayed(io.RawIOBase):
    """Bytes already read, and then a descriptor."""

    def __init__(self, said: bytes, source: int) -> None:
        self._said = memoryview(said)
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]
        if self._said:
            count = min(len(buffer), len(self._said))
            buffer[:count] = self._said[:count]
            self._said = self._said[count:]
            return count
        return os.readv(self._source, [buffer])


class _Requests(io.TextIOWrapper):
    """Lines of messages, each request such that the SDK answers it."""

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return _answerable(super().readline(size))


def _answerable(line: str) -> str:
    """A request that the SDK would pass over in silence, as the nearest one that it refuses; else the line.

    Its client would wait for an answer until its own time is up.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(message, dict) or "method" not in message:
        return line
    number, method = message.get("id"), message["method"]
    if not isinstance(number, str | int) or isinstance(number, bool):
        return line
    if _is_read(line):
        return line
    head = {"jsonrpc": "2.0", "id": number, "method": method if isinstance(method, str) else ""}
    with contextlib.suppress(RecursionError):
        mended = json.dumps({**head, "params": message.get("params") or {}}) + "\n"
        if _is_read(mended):
            return mended
    # Its parameters are of the wrong kind, hold text that is no Unicode, or are nested too deeply.
    return json.dumps({**head, "params": {}}) + "\n"


def _is_read(line: str) -> bool:
    """Whether the SDK's own parser takes it."""
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return False
    return True


class _WithoutHello(io.TextIOWrapper):
    """Writes every message but the answer to the `initialize` that the client opened with, if it did."""

    def __init__(self, sink: BinaryIO, said: bytes) -> None:
        super().__init__(sink, encoding="utf-8")
        opening = json.loads(said.split(b"\n", 1)[0]) if said else {}
        self._hello: object = opening.get("id")
        self._dropped = opening.get("method") != "initialize"

    def write(self, text: str, /) -> int:
        if not self._dropped and json.loads(text).get("id") == self._hello:
            self._dropped = True
            return len(text)
        return super().write(text)
