"""Folders that a pool makes in a person's directory for its sandboxes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton.pool.boundary import job_plan
from baton.pool.jobs import Job
from baton.pool.made import MadeFolders, remove_left
from baton.pool.recover import recover_pools
from baton.simulate.script import say, shell
from e2e.sim import Sim
from pool.shop import Shop, a_writer, some_settings


def _writer(workdir: Path, scope: str) -> Job:
    return a_writer(scope, workdir, ownership_scope=scope)


def _made(record: Path, *jobs: Job) -> MadeFolders:
    record.mkdir()
    folders = MadeFolders(record)
    for job in jobs:
        folders.make(job.id, job_plan(job))
    return folders


def test_what_was_made_goes_when_it_is_empty_and_nothing_else_does(
    test_root: Path, folder: Callable[[str], Path]
) -> None:
    workdir = folder("shop")
    (workdir / "lib").mkdir()
    job = a_writer("one", workdir, allowed_files=("src/api/", "src/web/", "lib/deep/"))
    made = _made(test_root / "scratch", job)
    assert (workdir / "lib/deep").is_dir()
    (workdir / "src/web/page.html").write_text("a\n")
    made.give_back("one")
    assert sorted(str(path.relative_to(workdir)) for path in workdir.rglob("*")) == [
        "lib",
        "src",
        "src/web",
        "src/web/page.html",
    ]


def test_a_folder_stays_while_another_job_needs_it_and_goes_with_the_last(
    test_root: Path, folder: Callable[[str], Path]
) -> None:
    workdir = folder("shop")
    made = _made(test_root / "scratch", _writer(workdir, "src/api/"), _writer(workdir, "src/web/"))
    made.give_back("src/api/")
    assert [path.name for path in (workdir / "src").iterdir()] == ["web"]
    made.give_back("src/web/")
    assert not list(workdir.iterdir())


def test_a_folder_that_was_kept_is_the_persons_from_then_on(
    test_root: Path, folder: Callable[[str], Path]
) -> None:
    workdir = folder("shop")
    made = _made(test_root / "scratch", _writer(workdir, "src/"))
    (workdir / "src/work").touch()
    made.give_back("src/")
    (workdir / "src/work").unlink()
    made.make("src/", job_plan(_writer(workdir, "src/")))
    made.give_back("src/")
    remove_left(test_root / "scratch")
    assert (workdir / "src").is_dir()


def test_what_a_dead_process_made_goes_with_the_next_start(
    bare_shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("shop")
    job = _writer(workdir, "src/api/")
    with bare_shop.open([job], some_settings(bare_shop.folder)) as opened:
        bare_shop.house.ledger.update_pool(opened.pool_id, state="running")
        _made(bare_shop.house.state.scratch / opened.pool_id, job)
    assert (workdir / "src/api").is_dir()
    assert recover_pools(bare_shop.house) == [opened.pool_id]
    assert not list(workdir.iterdir())


@pytest.mark.codex
def test_a_job_that_came_to_nothing_leaves_no_folder_and_one_that_wrote_keeps_its_own(
    sim: Sim, shop: Shop, folder: Callable[[str], Path]
) -> None:
    workdir = folder("shop")
    idle, busy = _writer(workdir, "src/api"), _writer(workdir, "lib/new")
    sim.model.on(idle.prompt, say(""))
    sim.model.on(busy.prompt, shell("mkdir lib/new; echo x > lib/new/a.txt"), say("made"))
    shop.work([idle, busy], retries=0)
    assert sorted(str(path.relative_to(workdir)) for path in workdir.rglob("*")) == [
        "lib",
        "lib/new",
        "lib/new/a.txt",
    ]
