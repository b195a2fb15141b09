"""Reads the calling session from the `_meta` that Codex sends with every tool call."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from baton.contract.session import Session

SANDBOX_STATE = "codex/sandbox-state-meta"
"""The capability that makes Codex send a session's folder and permission profile; also the key of both."""

HOST_RUNTIME = "BATON_HOST_RUNTIME"
"""Names the program that the server is registered with, when that is not Codex."""

_LAUNCHER = "codex/sandbox-launcher"
_TURN = "x-codex-turn-metadata"


def read_session(meta: Mapping[str, object] | None, folder: str | None = None) -> Session:
    """The session behind a call; `folder` is its folder where the call does not name one.

    What is absent or of an unexpected form is None, never an error. `profile` is the whole sandbox state as
    sent, with `sandboxCwd`: what bounds the session is read by the room that knows profiles.
    """
    meta = meta or {}
    turn = _mapping(meta.get(_TURN))
    state = _mapping(meta.get(SANDBOX_STATE))
    return Session(
        cwd=_path(state.get("sandboxCwd")) or folder,
        thread_id=_text(meta.get("threadId")) or _text(turn.get("thread_id")),
        parent_thread_id=_text(turn.get("parent_thread_id")),
        turn_id=_text(turn.get("turn_id")),
        model=_text(turn.get("model")),
        effort=_text(turn.get("reasoning_effort")),
        profile=dict(state) or None,
        launcher=_text(_mapping(meta.get(_LAUNCHER)).get("codexExecutable")),
    )


def host_folder(env: Mapping[str, str]) -> str | None:
    """The session's folder where another program than Codex is the host: it starts the server in it.

    Codex names the folder with every call and starts the server elsewhere, so there is none for it.
    """
    if env.get(HOST_RUNTIME, "codex") == "codex":
        return None
    folder = os.path.realpath(env.get("CLAUDE_PROJECT_DIR") or Path.cwd())
    return folder if folder != "/" else None


def _mapping(value: object) -> Mapping[str, object]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _path(value: object) -> str | None:
    """The absolute path of a file URI or of a plain path."""
    text = _text(value)
    if text is None:
        return None
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path, errors="surrogateescape")
    return text if text.startswith("/") else None
