"""Adds up tokens without turning what is unknown into zero."""

from __future__ import annotations

from collections.abc import Iterable

from baton.contract.evidence import Usage


def total_usage(parts: Iterable[Usage]) -> Usage:
    """The sum, figure by figure; a figure that no part knows stays unknown."""
    known = list(parts)

    def total(name: str) -> int | None:
        figures = [value for part in known if isinstance(value := getattr(part, name), int)]
        return sum(figures) if figures else None

    return Usage(**{name: total(name) for name in Usage.model_fields})
