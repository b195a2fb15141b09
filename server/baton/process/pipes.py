"""The ends of pipes as streams, for children that asyncio did not start itself."""

from __future__ import annotations

import os

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, ByteSendStream


class _End:
    def __init__(self, handle: int) -> None:
        os.set_blocking(handle, False)
        self._handle = handle

    async def aclose(self) -> None:
        """Close this end; who waits for it gets `ClosedResourceError`. Idempotent."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            anyio.notify_closing(handle)
            os.close(handle)

    def _open(self) -> int:
        if self._handle < 0:
            raise anyio.ClosedResourceError
        return self._handle


class PipeReceiveStream(_End, ByteReceiveStream):
    """The end to read from; owns the handle."""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                data = os.read(self._open(), max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(self._open())
                continue
            if not data:
                raise anyio.EndOfStream
            return data


class PipeSendStream(_End, ByteSendStream):
    """The end to write to; owns the handle."""

    async def send(self, item: bytes) -> None:
        await anyio.lowlevel.checkpoint()
        rest = memoryview(item)
        while rest:
            try:
                rest = rest[os.write(self._open(), rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._open())
            except BrokenPipeError:
                raise anyio.BrokenResourceError from None
