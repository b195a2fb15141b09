"""A machine whose bubblewrap is too old for Codex: everything works, and a check sees PATH as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import old_bubblewrap
from baton.contract.states import Enforcement
from baton.simulate.script import add_file, say, shell
from baton.simulate.workers import report
from e2e.sim import Sim
from pool.shop import Shop, a_writer

pytestmark = pytest.mark.codex


@pytest.fixture(scope="module")
def sim(codex_binary: Path, machine_root: Path) -> Iterator[Sim]:
    old = old_bubblewrap.install(machine_root / "old", codex_binary)
    machine = Sim(machine_root / "machine", codex_binary)
    machine.env["PATH"] = f"{old.parent}:{machine.env['PATH']}"
    with machine:
        yield machine


def test_a_task_is_done_inside_its_scope_and_checked(sim: Sim) -> None:
    old = sim.env["PATH"].split(":")[0]
    place = sim.workspace("task", {"src/a": "a\n", "check.sh": f'[ "$(command -v bwrap)" = {old}/bwrap ]\n'})
    outside = shell("echo escaped > outside; echo escaped > ../outside")
    steps = (shell("echo by shell > src/a"), add_file("src/b", "by patch\n"), outside)
    asked = {
        "workspace": str(place.path),
        "objective": sim.script("old-task", *steps, report(files=["src/a", "src/b"])),
        "allowedFiles": ["src/"],
        "verificationCommands": ["grep -q shell src/a", "grep -q patch src/b", "sh check.sh"],
        "waitSeconds": 100,
    }
    answer = sim.delegate(asked)
    assert answer["verdict"] == "verified", answer
    assert sim.result(answer["runId"]).evidence.scope.enforcement is Enforcement.PREVENTED
    assert (place.read("src/a"), place.read("src/b")) == ("by shell\n", "by patch\n")
    assert not (place.path / "outside").exists()


@pytest.mark.parametrize("backend", ["exec", "app-server"])
def test_a_job_of_a_pool_is_done_inside_its_scope(sim: Sim, backend: str) -> None:
    place = sim.workspace(f"pool-{backend}", {"src/a": "a\n"}, git=False)
    shop = Shop(sim.service.house, sim.root / "pools" / backend)
    job = a_writer(f"old-{backend}", place.path, ownership_scope="src")
    steps = (shell("echo by shell > src/a; echo escaped > outside"), add_file("src/b", "by patch\n"))
    sim.model.on(job.prompt, *steps, say("done"))
    assert shop.work([job], backend_name=backend).succeeded
    assert {name: data for name, (_, data) in place.contents().items()} == {
        "src/a": b"by shell\n",
        "src/b": b"by patch\n",
    }
