"""Who used a worktree last, as a mark in it: what a process knows of it holds while that is the mark it left.

Nothing but the mark is proof of that. Another process may have restored every file and the index to the very
size and times that they had.
"""

from __future__ import annotations

import secrets

from baton.workspace.worktree import Worktree

_MARK = "baton-use"


def mark_use(worktree: Worktree) -> str:
    """Leave a new mark, which no other use has; it is returned. Its caller holds the worktree's lock.

    Raises `OSError`; then there is none.
    """
    mark = secrets.token_hex(16)
    path = worktree.admin / _MARK
    path.unlink(missing_ok=True)
    path.write_text(mark)
    return mark


def last_use(worktree: Worktree) -> str | None:
    """The mark of the last use, None when there is none."""
    try:
        return (worktree.admin / _MARK).read_text()
    except FileNotFoundError:
        return None
