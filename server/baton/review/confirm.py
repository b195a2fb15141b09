"""Asks the person before anything is sent; where none can be asked, a one-time token stands for the plan."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from baton.contract.visible import one_line
from baton.ledger.review_records import ReviewRecord
from baton.review.stored import StoredPlan


class Says(Enum):
    """What became of the question to the person."""

    YES = "yes"
    NO = "no"
    NOBODY = "nobody"
    """The program of the session cannot ask, or answered by itself."""


Person = Callable[[str], Awaitable[Says]]
"""Puts one question to the person in front of the session."""


async def nobody(_: str) -> Says:
    """Where there is no way to a person."""
    return Says.NOBODY


def question_to_person(review: ReviewRecord) -> str:
    """What the person is asked before anything is sent."""
    plan = StoredPlan.of(review)
    size = sum(piece.bytes for piece in plan.manifest)
    who = ", ".join(one.agent for one in plan.reviewers)
    pinned = plan.wanted.pinned
    lines = [
        f"Send {size} bytes of material to {who} for review?",
        f"Goal: {review.goal[:200]}",
        "Material: " + _some([piece.label for piece in plan.manifest]),
    ]
    if pinned is not None:
        ends = pinned.shown()
        lines.append(f"Diff: {ends['diffRef'][:200]}, from {ends['from']} to {ends['to']}")
    if plan.secrets:
        lines.append("It holds what looks like credentials: " + _some(plan.secrets))
    # Names of files are foreign text: none makes a line of its own here.
    return "\n".join(one_line(line) for line in lines)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name[:200] for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def approval_of(shown: Mapping[str, Any]) -> str:
    """Stands for everything that a plan showed."""
    return hashlib.sha256(json.dumps(shown, sort_keys=True, ensure_ascii=True).encode()).hexdigest()


def new_token() -> str:
    """A one-time token: 48 random bits, short enough to be passed on."""
    return secrets.token_hex(6)


def bound(token: str, approval: str) -> str:
    """What is kept of a token: useless without it, and for any other plan."""
    return hashlib.sha256(f"{token} {approval}".encode()).hexdigest()


def fits(token: str, approval: str, kept: str | None) -> bool:
    """Whether a token is the one that was given out for a plan, and not spent."""
    return kept is not None and secrets.compare_digest(bound(token, approval), kept)
