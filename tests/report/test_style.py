"""The colours can be read, in the light and in the dark."""

from __future__ import annotations

import re

import pytest

from baton.report.templating import source

PAIRS = [
    *[(ink, ground) for ink in ("ink", "soft", "link") for ground in ("page", "sheet", "shade")],
    *[(word, f"{word}-bg") for word in ("good", "warn", "bad", "active", "quiet")],
    *[(word, ground) for word in ("good", "bad") for ground in ("page", "sheet")],
    *[("ink", ground) for ground in ("added", "removed", "warn-bg", "bad-bg")],
    *[("soft", ground) for ground in ("added", "removed", "hunk")],
    ("warn", "page"),
]
LEAST = 4.5
"""Contrast that WCAG 2 (level AA) asks for text."""


def colours() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root \{(.*?)\}", source("style.css"), re.DOTALL)[:2]
    return {
        name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", text))
        for name, text in (("light", light), ("dark", dark))
    }


def brightness(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_text_stands_out_from_its_ground(scheme: str, ink: str, ground: str) -> None:
    known = colours()[scheme]
    brighter, darker = sorted((brightness(known[ink]), brightness(known[ground])), reverse=True)
    assert (brighter + 0.05) / (darker + 0.05) >= LEAST


def test_both_schemes_name_the_same_colours() -> None:
    known = colours()
    assert set(known["light"]) == set(known["dark"])
