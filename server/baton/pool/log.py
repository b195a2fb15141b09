"""The stream of an attempt's events: appended to a file as they come, never held or read as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self


class EventLog:
    """JSON lines in a file of the person's alone (0600). What cannot be written does not stop the work."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault: str | None = None
        """Why something could not be written, the first time."""
        self._file: IO[bytes] | None = None

    def line(self, data: bytes) -> None:
        """Append one line as it came."""
        try:
            if self._file is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._file = os.fdopen(os.open(self.path, flags, 0o600), "ab")
            self._file.write(data + b"\n")
        except OSError as error:
            self.fault = self.fault or f"the log {self.path} could not be written ({error.strerror})"

    def event(self, method: str, params: Mapping[str, Any]) -> None:
        """Append one event of the app-server."""
        self.line(json.dumps({"method": method, "params": params}, separators=(",", ":")).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as fault:
                self.fault = self.fault or f"the log {self.path} could not be written ({fault.strerror})"
