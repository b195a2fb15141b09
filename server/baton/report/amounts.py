"""Times and amounts in few characters."""

from __future__ import annotations

import datetime

from baton.contract.wording import many


def took(seconds: float | None) -> str:
    """`0.4 s`, `42 s`, `2 min 03 s`, `1 h 05 min`, `3 d 04 h`; `unknown` for None."""
    if seconds is None:
        return "unknown"
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600:02d} h"


def count(number: int | None) -> str:
    """`12,300`; `unknown` for None."""
    return "unknown" if number is None else f"{number:,}"


def size(number: int) -> str:
    """`940 bytes`, `12.3 KB`, `4.1 MB`."""
    if number < 1000:
        return many(number, "byte")
    if number < 999_950:
        return f"{number / 1000:.1f} KB"
    return f"{number / 1_000_000:.1f} MB"


def money(dollars: float | None) -> str:
    """`$0.0123`, `$1.20`; `unknown` for None."""
    if dollars is None:
        return "unknown"
    return f"${dollars:.2f}" if dollars >= 1 or dollars == 0 else f"${dollars:.4f}"


def moment(seconds: float) -> str:
    """Local date and time to the second."""
    return datetime.datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def iso(seconds: float) -> str:
    """The same for machines, with the offset from UTC."""
    return datetime.datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
