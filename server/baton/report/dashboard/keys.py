"""Who may look: whoever opens the link once. It becomes a cookie that no page and no other site can read."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

TOKEN_BYTES = 32


class Keys:
    """The secrets of one dashboard; they end with its process."""

    def __init__(self, port: int, on_used: Callable[[str], None] = lambda link: None) -> None:
        """`on_used` is called with the next link when one has been used."""
        self.cookie = f"baton-{port}"
        """Cookies are shared by all ports of a host: the name keeps two dashboards apart."""
        self.session = secrets.token_urlsafe(TOKEN_BYTES)
        self.form = secrets.token_urlsafe(TOKEN_BYTES)
        """In every form that changes something: who sends one back has seen the page."""
        self._base = f"http://127.0.0.1:{port}/enter?token="
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._on_used = on_used

    @property
    def link(self) -> str:
        """The link that can be opened now; every link works once."""
        return self._base + self._token

    def enter(self, token: str) -> bool:
        """Use up the link with this token; False when it is not the one that can be opened."""
        if not _same(token, self._token):
            return False
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._on_used(self.link)
        return True

    def knows(self, cookie: str | None) -> bool:
        """Whether a request with this cookie comes from a browser that has entered."""
        return cookie is not None and _same(cookie, self.session)

    def knows_form(self, token: str | None) -> bool:
        """Whether a form with this token stood on a page of this dashboard."""
        return token is not None and _same(token, self.form)


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), known.encode())
