"""A form that a browser has sent, read with care."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from baton.contract.errors import InvalidInput

TOKEN = "token"
"""The field with the dashboard's own token."""

MAX_BYTES = 64 * 1024
MAX_FIELDS = 100

_KIND = "application/x-www-form-urlencoded"


async def read_form(request: Request) -> dict[str, str]:
    """Its fields by name. Raises `InvalidInput` or `HTTPException` for what no page of ours sends."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _KIND:
        raise HTTPException(415, f"A form is sent as {_KIND}.")
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BYTES:
            raise HTTPException(413, f"The form is larger than {MAX_BYTES} bytes.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise InvalidInput("this is no form that a page of this dashboard sends") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise InvalidInput("the form names a field twice")
    return form
