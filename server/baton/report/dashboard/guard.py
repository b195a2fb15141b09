"""Every request is looked at before any page is: where it is addressed, where it comes from, who sends it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from baton.report.dashboard.keys import Keys

ENTER = "/enter"

EDITING = "/agents"
"""The page whose forms change something, and where they are sent to; only there where that is wanted."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Guard:
    """Lets through what a browser that has entered asks of this very address, and only to read.

    With `edit` the forms below `EDITING` are let through as well, from this very origin alone.

    Host and Origin are compared so that no other site can reach the pages through the person's browser, also
    not under a name that it lets point to this machine.
    """

    def __init__(self, app: ASGIApp, keys: Keys, port: int, *, edit: bool = False) -> None:
        self.app, self.keys, self.edit = app, keys, edit
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self.origins = tuple(f"http://{host}" for host in self.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a WebSocket is not answered: the server closes it
        nonce = secrets.token_urlsafe(16)
        scope.setdefault("state", {})["nonce"] = nonce

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = policy(nonce)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if self._edits(scope["path"]):
                    # With no referrer at all a browser does not tell the origin of a form either.
                    headers["Referrer-Policy"] = "same-origin"
            await send(message)

        refused = self._refused(scope, Headers(scope=scope))
        await (refused or self.app)(scope, receive, send_guarded)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        entering = scope["path"] == ENTER
        if len(headers.getlist("host")) != 1 or headers["host"].lower() not in self.hosts:
            return _no(403, f"this dashboard answers only as {' or '.join(self.hosts)}")
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return _no(403, "requests from other sites are refused")
        # A link to the way in may stand anywhere; what it leads to is opened by its token alone.
        if not entering and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _no(403, "requests from other sites are refused")
        sent = scope["method"] == "POST" and self._edits(scope["path"])
        if not sent and scope["method"] not in ("GET", "HEAD"):
            return _no(405, "the dashboard only shows")
        if sent and (
            headers.getlist("origin") != [f"http://{headers['host'].lower()}"]
            or headers.get("sec-fetch-site", "same-origin") != "same-origin"
        ):
            return _no(403, "a form is taken only from the dashboard's own page")
        if not entering and not self.keys.knows(_cookies(headers).get(self.keys.cookie)):
            return _no(401, "open the link that `baton dashboard` printed; every link works once")
        return None

    def _edits(self, path: str) -> bool:
        return self.edit and (path == EDITING or path.startswith(f"{EDITING}/"))


def policy(nonce: str) -> str:
    """The content security policy of a page: what carries the nonce, and requests to this address."""
    return (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self';"
        " img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def _cookies(headers: Headers) -> Mapping[str, str]:
    found: SimpleCookie = SimpleCookie()
    try:
        found.load(headers.get("cookie", ""))
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in found.items()}


def _no(status: int, why: str) -> PlainTextResponse:
    return PlainTextResponse(f"baton dashboard: {why}\n", status)
