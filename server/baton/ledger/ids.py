"""Ids of runs, pools, consultations, reviews and workflows: short, yet too many to guess or to collide."""

from __future__ import annotations

import re
import secrets

RUN_ID = re.compile(r"r[a-z2-7]{8}")

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_run_id() -> str:
    """A fresh id: `r` and 8 characters of a-z and 2-7 (40 random bits)."""
    return "r" + "".join(secrets.choice(_ALPHABET) for _ in range(8))


def new_pool_id() -> str:
    """A fresh id of a pool: `p`, otherwise as a run's."""
    return "p" + new_run_id()[1:]


def new_consultation_id() -> str:
    """A fresh id of a consultation: `c`, otherwise as a run's."""
    return "c" + new_run_id()[1:]


def new_review_id() -> str:
    """A fresh id of a review: `v`, otherwise as a run's."""
    return "v" + new_run_id()[1:]


def new_workflow_id() -> str:
    """A fresh id of a workflow: `w`, otherwise as a run's."""
    return "w" + new_run_id()[1:]


def is_run_id(text: str) -> bool:
    return RUN_ID.fullmatch(text) is not None
