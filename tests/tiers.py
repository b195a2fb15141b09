"""Which cases of a table are in the fast tier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest


def sampled(cases: Iterable[Any], count: int) -> list[Any]:
    """The cases as parameters: the first `count` in the fast tier, the rest among the long ones."""
    tiers: Iterator[Any] = chain(repeat((), count), repeat(pytest.mark.long))
    return [pytest.param(case, marks=marks) for case, marks in zip(cases, tiers, strict=False)]
