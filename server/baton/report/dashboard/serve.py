"""Serves the dashboard on this machine alone, until it is interrupted."""

from __future__ import annotations

import html
import os
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import uvicorn

from baton.contract.errors import InvalidInput
from baton.engine.house import House
from baton.policy.layer import PERSON_FILE
from baton.report.dashboard.app import dashboard
from baton.report.dashboard.keys import Keys

ADDRESS = "127.0.0.1"

GRACE_SECONDS = 2
"""For requests under way when it ends."""


def serve(house: House, port: int, *, browse: bool, say: Callable[[str], None], edit: bool = False) -> None:
    """Serve until SIGINT or SIGTERM. Port 0 takes a free one. Raises `InvalidInput` when it is taken.

    With `edit` there is a page that changes agents in the person's policy file.
    """
    with _listening(port) as listener:
        bound = listener.getsockname()[1]
        keys = Keys(bound, lambda link: say(f"another browser: {link}"))
        server = uvicorn.Server(
            uvicorn.Config(
                dashboard(house, keys, bound, lambda: server.should_exit, edit=edit),
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ws="none",
            )
        )
        say(f"the dashboard, to be opened once: {keys.link}")
        if edit:
            say(f"its page of agents changes {house.codex_home / PERSON_FILE} when you save there")
        say("Ctrl+C ends it")
        file = _open(keys.link) if browse and _has_screen() else None
        # The server gives a signal back when it has ended: what ended it is no failure.
        before = {number: signal.signal(number, _ended) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            server.run(sockets=[listener])
        except _Ended:
            pass
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            if file is not None:
                file.unlink(missing_ok=True)


class _Ended(BaseException):
    """Raised by a signal that ends the dashboard."""


def _ended(number: int, frame: FrameType | None) -> None:
    raise _Ended


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((ADDRESS, port))
        # From here on a browser that is faster than the server waits, and is not refused.
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidInput(f"--port {port} cannot be used ({error.strerror}); name another one") from None
    return listener


def _has_screen() -> bool:
    """Whether a browser could show anything; without a screen one would take the terminal over."""
    if sys.platform == "darwin":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _open(link: str) -> Path:
    """Have the browser open the link, by a file that only this user can read.

    Everybody on the machine can see the arguments of a program: the link is not among them.
    """
    handle, name = tempfile.mkstemp(prefix="baton-dashboard-", suffix=".html")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(link)}">\n')
    webbrowser.open(Path(name).as_uri())
    return Path(name)
