"""The session that calls: what Codex says of it with every tool call."""

from __future__ import annotations

from baton.contract.base import Wire


class Session(Wire):
    """A Codex session as its `_meta` describes it; a terminal session has only a folder.

    `profile` is the raw permission profile of the session as Codex sent it. None means that nobody stated
    one: a session in a terminal, bounded by the person's own rights.
    """

    cwd: str | None = None
    thread_id: str | None = None
    parent_thread_id: str | None = None
    turn_id: str | None = None
    model: str | None = None
    effort: str | None = None
    profile: dict[str, object] | None = None
    launcher: str | None = None
    """The Codex executable that runs this session."""
