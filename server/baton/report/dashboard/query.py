"""What an address asks for, read with care."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.requests import Request

from baton.contract.errors import InvalidInput

MAX_NUMBER = 10**15


class Query:
    """The parts of one request's address."""

    def __init__(self, request: Request) -> None:
        self.path: Mapping[str, str] = request.path_params
        self.asked = request.query_params
        self.address = request.url.path

    def text(self, name: str) -> str | None:
        """A parameter that is there and not empty."""
        return self.asked.get(name) or None

    def number(self, name: str, least: int = 0) -> int | None:
        """Raises `InvalidInput` for what is no number, or is less than `least`."""
        text = self.text(name)
        if text is None:
            return None
        # Its length first: thousands of digits are not even read as a number.
        if len(text) > len(str(MAX_NUMBER)) or not (text.isascii() and text.isdecimal()):
            raise InvalidInput(f"{name}={text[:40]} is no number from {least} on")
        number = int(text)
        if not least <= number <= MAX_NUMBER:
            raise InvalidInput(f"{name}={text} is no number from {least} to {MAX_NUMBER}")
        return number

    def with_(self, **changes: object) -> str:
        """This address with other parameters; None leaves one out."""
        kept = {name: value for name, value in self.asked.items() if name not in changes}
        kept |= {name: str(value) for name, value in changes.items() if value is not None}
        return self.address + (f"?{urlencode(kept, errors='replace')}" if kept else "")
