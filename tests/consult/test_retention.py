"""Consultations go when they have had their time, and not before."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from baton.cli.main import baton
from baton.consult.retention import forget_old
from baton.process.tree import processes_with_marker
from consult.conftest import Desk
from consult.waiting import until

DAY = 24 * 3600.0


def test_consultation_is_forgotten_when_its_days_are_over(desk: Desk) -> None:
    name = desk.consult(targets=["claude"])["consultationId"]
    until(lambda: processes_with_marker("BATON_RUN", name) == ())
    desk.policy.write_text(desk.policy.read_text().replace("[consult]", "[consult]\nkeep_days = 7", 1))
    assert forget_old(desk.house, at=time.time() + 6.9 * DAY).consultations == []
    later = time.time() + 7.1 * DAY
    assert forget_old(desk.house, at=later, dry_run=True).consultations == [name]
    assert desk.house.ledger.consultation(name)
    done = forget_old(desk.house, at=later)
    assert done.consultations == [name] and done.freed_bytes > 0 and done.faults == []
    assert list(desk.house.artifacts.all()) == []


def test_consultation_at_work_stays(desk: Desk, test_root: Path) -> None:
    does = {"gate": str(test_root / "gate")}
    name = desk.script(does, targets=["claude"], waitSeconds=0)["consultationId"]
    assert forget_old(desk.house, at=time.time() + 1000 * DAY, dry_run=True).consultations == []
    (test_root / "gate").touch()
    desk.records("wait", id=name)


def test_gc_counts_consultations(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    name = desk.consult(targets=["claude"])["consultationId"]
    until(lambda: processes_with_marker("BATON_RUN", name) == ())
    told = json.loads(CliRunner().invoke(baton, ["gc", "--json"]).output)
    assert "consultations" not in told["swept"] and told["faults"] == []
    later = time.time() + 91 * DAY
    monkeypatch.setattr(time, "time", lambda: later)
    told = json.loads(CliRunner().invoke(baton, ["gc", "--json"]).output)
    assert told["swept"]["consultations"] == 1 and told["freedBytes"] > 0
