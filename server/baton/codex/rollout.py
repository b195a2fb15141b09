"""What a rollout file tells of a thread: its tokens, and the settings of each turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from baton.codex.tokens import Tally
from baton.contract.evidence import Usage

_THREAD_ID = re.compile(r"[0-9A-Za-z-]{8,64}")
_FOLDERS = ("sessions", "archived_sessions")


@dataclass(frozen=True)
class TurnContext:
    """The settings of one turn."""

    turn_id: str | None
    model: str | None
    effort: str | None
    profile_id: str | None
    """Name of the permission profile in force."""
    permission_profile: Mapping[str, Any] | None
    """The exact profile that was enforced."""


@dataclass(frozen=True)
class Rollout:
    """One thread as recorded so far."""

    path: Path
    usage: Usage
    """Tokens of the whole thread; unknown when none were recorded."""
    turns: tuple[TurnContext, ...]
    """One for each turn, in order. Codex may record one again within a turn; the last counts."""
    skipped: int
    """Lines that could not be read, such as a last one that is still being written."""
    models: tuple[str, ...] = ()
    """Models of the turns in which the counted tokens were spent."""
    reached: bool = False
    """Whether anything at all was recorded up to the end of the time asked for."""


def find_rollout(home: Path, thread_id: str) -> Path | None:
    """The rollout of a thread below a Codex home, also an archived one; None when it has none yet."""
    if not _THREAD_ID.fullmatch(thread_id):
        return None
    for folder in _FOLDERS:
        for path in sorted((home / folder).rglob(f"rollout-*-{thread_id}.jsonl")):
            return path
    return None


def read_rollout(path: Path, *, since: float | None = None, until: float | None = None) -> Rollout:
    """Read a rollout line by line, also while it grows. Raises OSError when it is unreadable.

    With `since` or `until`, seconds since 1970, only tokens that were reported from the one to the other are
    counted; a report without a time counts always.
    """
    tally = Tally()
    turns: dict[str | None, TurnContext] = {}
    skipped = 0
    model: str | None = None
    spenders: dict[str, None] = {}
    reached = False
    with path.open("rb") as file:
        for record in _records(file):
            if record is None:
                skipped += 1
                continue
            payload = record.get("payload")
            if not isinstance(payload, dict):
                continue
            at = _time(record.get("timestamp"))
            if at is not None and until is not None and at > until:
                break
            reached = True
            if record.get("type") == "turn_context":
                context = _context(payload)
                turns.pop(context.turn_id, None)
                turns[context.turn_id] = context
                model = context.model
            elif payload.get("type") == "token_count":
                early = at is not None and since is not None and at < since
                if _count(tally, payload, early=early) and model is not None:
                    spenders[model] = None
    return Rollout(path, tally.usage(), tuple(turns.values()), skipped, tuple(spenders), reached)


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any] | None]:
    """The records of interest; None for a line that holds one and cannot be read."""
    for line in lines:
        # Most of a rollout is conversation: what cannot be of interest is not even parsed.
        if b'"turn_context"' not in line and b'"token_count"' not in line:
            continue
        try:
            record = json.loads(line)
        except ValueError:
            yield None
            continue
        yield record if isinstance(record, dict) else None


def _context(payload: Mapping[str, Any]) -> TurnContext:
    active = payload.get("active_permission_profile")
    profile = payload.get("permission_profile")
    return TurnContext(
        turn_id=_text(payload.get("turn_id")),
        model=_text(payload.get("model")),
        effort=_text(payload.get("effort")),
        profile_id=_text(active.get("id")) if isinstance(active, dict) else None,
        permission_profile=profile if isinstance(profile, dict) else None,
    )


def _count(tally: Tally, payload: Mapping[str, Any], *, early: bool) -> bool:
    """Take one report; whether its tokens count."""
    info = payload.get("info")
    if not isinstance(info, dict):
        return False
    total, last = info.get("total_token_usage"), info.get("last_token_usage")
    if not isinstance(total, dict) or not isinstance(last, dict):
        return False
    if early:
        tally.rebase(total)
    else:
        tally.add(total, last)
    return not early


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value).timestamp()
    except ValueError:
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
