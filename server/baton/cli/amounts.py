"""Times and amounts in few characters, and moments as people type them."""

from __future__ import annotations

import datetime
import re
import time

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def duration(seconds: float) -> str:
    """`42s`, `2m03s`, `1h05m`, `3d04h`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 86_400}d{whole % 86_400 // 3600:02d}h"


def age(seconds: float) -> str:
    """How long ago something was."""
    return f"{duration(max(0.0, seconds))} ago"


def tokens(count: int | None, *, complete: bool = True) -> str:
    """`940`, `12.3k`, `4.1M`; `?` when unknown, and a `+` when there are more that are not known yet."""
    if count is None:
        return "?"
    if count < 1000:
        text = str(count)
    elif count < 999_950:
        text = f"{count / 1000:.1f}k"
    else:
        text = f"{count / 1_000_000:.1f}M"
    return text if complete else f"{text}+"


def when(moment: float) -> str:
    """Local date and time to the minute."""
    return datetime.datetime.fromtimestamp(moment).strftime("%Y-%m-%d %H:%M")


class Moment(click.ParamType[float]):
    """A time: `90s`, `30m`, `12h`, `7d`, `2w` ago, or a date or time in ISO form (local unless it says)."""

    name = "moment"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds since 1970."""
        if isinstance(value, float):
            return value
        text = str(value)
        back = re.fullmatch(r"(\d{1,6})([smhdw])", text)
        if back:
            return time.time() - int(back[1]) * _UNITS[back[2]]
        try:
            return datetime.datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError):
            self.fail(f"{text!r} is neither like 30m, 12h or 7d nor a date like 2026-01-31", param, ctx)
