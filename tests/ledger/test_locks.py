"""Locks: held by one, gone with its holder, and never taken for held by looking."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from baton.contract.errors import Busy, StateUnavailable
from baton.ledger.locks import FileLock, is_held

HOLDER = """
import sys
from pathlib import Path
from baton.ledger.locks import FileLock
with FileLock(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(test_root: Path) -> Path:
    return test_root / "one.lock"


def holder(path: Path, env: dict[str, str], how: str = "alone") -> subprocess.Popen[str]:
    running = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), how],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "held\n"
    return running


def test_lock_is_held_by_one_process_and_gone_when_it_is_killed(
    path: Path, program_env: dict[str, str]
) -> None:
    lock = FileLock(path)
    with holder(path, program_env) as running:
        assert is_held(path)
        assert not lock.try_acquire()
        with pytest.raises(Busy, match=r"one\.lock"):
            lock.acquire(timeout=0.05)
        running.kill()
    lock.acquire(timeout=60)
    assert lock.held
    assert is_held(path)
    lock.release()
    assert not is_held(path)


def test_shared_holders_go_together_and_keep_out_a_lone_one(path: Path, program_env: dict[str, str]) -> None:
    with holder(path, program_env, "shared") as running:
        with FileLock(path, shared=True):
            assert is_held(path)
        assert is_held(path)
        assert not FileLock(path).try_acquire()
        running.communicate("")
    assert FileLock(path, shared=True).try_acquire() is True


def test_two_objects_exclude_each_other_within_one_process(path: Path) -> None:
    with FileLock(path), pytest.raises(Busy):
        FileLock(path, timeout=0.0).__enter__()
    with FileLock(path) as lock, pytest.raises(RuntimeError, match="already held"):
        lock.try_acquire()


def test_looking_never_makes_another_fail(path: Path) -> None:
    path.touch()
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            is_held(path)

    looker = threading.Thread(target=look)
    looker.start()
    lock = FileLock(path)
    try:
        for _ in range(300):
            lock.acquire(timeout=60)
            lock.release()
    finally:
        done.set()
        looker.join()


def test_missing_file_is_a_free_lock_and_looking_does_not_make_it(path: Path) -> None:
    assert not is_held(path)
    assert not path.exists()


def test_lock_file_may_be_removed_by_its_holder_alone(path: Path) -> None:
    lock = FileLock(path)
    with pytest.raises(RuntimeError):
        lock.remove()
    lock.acquire()
    waiter = FileLock(path)
    waiting = threading.Thread(target=waiter.acquire, args=(60,))
    waiting.start()
    lock.remove()
    waiting.join()
    assert waiter.held
    assert path.exists()
    assert not FileLock(path).try_acquire()
    waiter.release()


def test_children_do_not_inherit_a_lock(path: Path) -> None:
    lock = FileLock(path)
    lock.acquire()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        lock.release()
        assert not is_held(path)


def test_place_that_cannot_hold_a_lock_is_said_in_one_line(test_root: Path) -> None:
    with pytest.raises(StateUnavailable, match="cannot open the lock"):
        FileLock(test_root / "missing" / "one.lock").try_acquire()
