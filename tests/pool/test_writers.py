"""The directories that writers hold, against other pools and other processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from baton.contract.errors import StateUnavailable
from baton.pool.writers import WriterLocks


def test_a_directory_is_one_pools_at_a_time(folder: Callable[[str], Path]) -> None:
    workdir, mine, other = folder("a"), WriterLocks(), WriterLocks()
    assert mine.try_acquire(workdir)
    assert not other.try_acquire(workdir)
    mine.release(workdir)
    assert other.try_acquire(workdir)
    other.close()
    assert mine.try_acquire(workdir)
    mine.close()


def test_what_lies_above_and_below_is_kept_out_and_what_lies_beside_is_not(
    folder: Callable[[str], Path],
) -> None:
    above, workdir, below = folder("b"), folder("b/c"), folder("b/c/d")
    beside = folder("b/e")
    mine = WriterLocks()
    assert mine.try_acquire(workdir)
    assert not WriterLocks().try_acquire(above)
    assert not WriterLocks().try_acquire(below)
    other = WriterLocks()
    assert other.try_acquire(beside)
    other.close()
    mine.close()


def test_a_pool_may_have_several_writers_in_one_directory_and_gives_it_back_with_the_last(
    folder: Callable[[str], Path],
) -> None:
    workdir, mine, other = folder("several"), WriterLocks(), WriterLocks()
    assert mine.try_acquire(workdir) and mine.try_acquire(workdir)
    assert mine.writers(workdir) == 2
    mine.release(workdir)
    assert not other.try_acquire(workdir)
    mine.release(workdir)
    assert mine.writers(workdir) == 0
    assert other.try_acquire(workdir)
    other.close()


def _hold(workdir: Path, pipe: Connection) -> None:
    pipe.send(WriterLocks().try_acquire(workdir))
    pipe.recv()


def test_a_directory_is_free_again_when_its_process_is_killed(folder: Callable[[str], Path]) -> None:
    workdir = folder("killed")
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(workdir, theirs), daemon=True)
    process.start()
    assert ours.poll(30) and ours.recv() is True
    mine = WriterLocks()
    assert not mine.try_acquire(workdir)
    process.kill()
    process.join(30)
    assert mine.try_acquire(workdir)
    mine.close()


def test_a_directory_that_is_gone_is_said_in_one_line(test_root: Path) -> None:
    with pytest.raises(StateUnavailable, match="cannot lock the directory"):
        WriterLocks().try_acquire(test_root / "nowhere")
