"""How much our programs say of themselves: the level of their logs, by one variable."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping

from baton.contract.visible import LINES, visible

VARIABLE = "BATON_LOG"

LEVELS = ("debug", "info", "warning", "error", "critical")


class _Harmless(logging.Formatter):
    """What cannot be printed becomes a visible escape: messages quote what others wrote."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record), LINES)


def set_up_logging(default: str, form: str, env: Mapping[str, str] | None = None) -> None:
    """Log to standard error at the level that `BATON_LOG` names, or at `default`.

    A name that is no level is said in one line and changes nothing: a program that works is worth more than
    one that logs.
    """
    named = (os.environ if env is None else env).get(VARIABLE, "").strip().lower()
    level = named if named in LEVELS else default
    handler = logging.StreamHandler()
    handler.setFormatter(_Harmless(form))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    if named and named not in LEVELS:
        sys.stderr.write(
            f"{VARIABLE} is {named!r}, which is none of {', '.join(LEVELS)}; {default} is used\n"
        )
