"""No worker gets out, and the suite that says so would see it if one did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import anyio
import pytest

from chaos._attempt import Finding, Mission, Outcome
from chaos._bare import run_bare
from chaos._lab import Lab, open_lab
from chaos.escape import ROOMS, line, run, summary
from real_codex import real_codex

pytestmark = pytest.mark.codex

SAMPLE = ("workdir", "links", "config-trusted", "leftovers")
"""Missions for every run of the tests; the whole suite takes minutes."""

SUCCEEDING_WITHOUT_A_SANDBOX = 100
"""At least so many of the attempts get out when nothing holds them."""


@pytest.fixture
def lab(test_root: Path) -> Iterator[Lab]:
    with open_lab(real_codex(), test_root) as made:
        yield made


def test_a_sample_of_the_ways_out_is_closed(lab: Lab) -> None:
    found = anyio.run(run, lab, lambda name: name in SAMPLE)
    assert {finding.mission for finding in found} >= set(SAMPLE)
    assert bad(found) == []


@pytest.mark.long
@pytest.mark.timeout(900)
def test_no_way_out_is_open(lab: Lab) -> None:
    found = anyio.run(run, lab, lambda name: True)
    assert bad(found) == []
    assert summary(found)["attempts"] >= 60
    names = [finding.attempt.name for finding in found]
    assert len(set(names)) == len(names)


@pytest.mark.long
def test_without_a_sandbox_the_same_attempts_succeed_and_are_seen(lab: Lab) -> None:
    missions: list[Mission] = [mission for room in ROOMS[:8] for mission in room(lab)]
    found = [finding for mission in missions for finding in run_bare(lab, mission)]
    seen = [each for each in found if each.outcome in (Outcome.ESCAPED, Outcome.UNDETECTED, Outcome.KNOWN)]
    assert len(seen) >= SUCCEEDING_WITHOUT_A_SANDBOX, table(found)


def bad(found: Sequence[Finding]) -> list[str]:
    wrong = (Outcome.ESCAPED, Outcome.UNDETECTED, Outcome.VOID)
    return [line(finding) for finding in found if finding.outcome in wrong]


def table(found: Sequence[Finding]) -> str:
    return "\n".join(map(line, found))


def test_security_page_names_only_what_there_is(lab: Lab) -> None:
    top = Path(__file__).resolve().parents[2]
    missions = [mission for room in ROOMS for mission in room(lab)]
    known = {
        name for mission in missions for name in (mission.name, *(each.name for each in mission.attempts))
    }
    text = (top / "SECURITY.md").read_text(encoding="utf-8")
    cells = [row.rsplit("|", 2)[1] for row in text.splitlines() if row.startswith("| ")]
    shown = [name for cell in cells[1:] for name in re.findall(r"`([^`]+)`", cell)]
    shown += re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(shown) > 40
    files = {name for name in shown if (top / name).is_file()}
    missing = [name for name in shown if name not in files and not any(fnmatchcase(k, name) for k in known)]
    assert missing == []
