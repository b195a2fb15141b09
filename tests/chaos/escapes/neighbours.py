"""Other runs: what they left, and what they are doing now."""

from __future__ import annotations

from chaos._attempt import Mission
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    return []
