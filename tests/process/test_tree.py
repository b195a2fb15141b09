"""Trees of processes: nothing is missed, and nothing else is hit."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from baton.process import tree
from process.stubborn import Stubborn, wait_until, wait_until_gone


def test_process_is_told_by_pid_and_start_time_together() -> None:
    start = tree.start_time(os.getpid())
    assert start is not None
    assert tree.is_alive(tree.ProcessId(os.getpid(), start))
    assert not tree.is_alive(tree.ProcessId(os.getpid(), start + 1))
    assert tree.start_time(2**22 + 1) is None


def test_recycled_pid_is_never_ended(env: dict[str, str]) -> None:
    with subprocess.Popen(["sleep", "3600"], env=env) as sleeper:
        start = tree.start_time(sleeper.pid)
        assert start is not None
        earlier = tree.ProcessId(sleeper.pid, start - 1)
        assert tree.end_tree(earlier, grace=0.0) == ()
        assert tree.end_processes([earlier], grace=0.0) == ()
        assert sleeper.poll() is None
        assert tree.end_tree(tree.ProcessId(sleeper.pid, start), grace=0.0) == ()
        assert sleeper.wait(60) != 0


def test_boot_id_is_the_same_in_another_process() -> None:
    library = os.pathsep.join(path for path in sys.path if path)
    told = subprocess.run(
        [sys.executable, "-c", "from baton.process import tree; print(tree.boot_id())"],
        env={**os.environ, "PYTHONPATH": library}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert told.stdout.strip() == tree.boot_id() != ""


def test_orphans_of_a_dead_runner_are_found_by_their_marker(stubborn: Stubborn, env: dict[str, str]) -> None:
    marked = {**env, "BATON_RUN": "rtestmark"}
    subprocess.run(stubborn.argv(stays=False), env=marked, check=True, timeout=60)
    started = {kind: process for kind, process in stubborn.processes().items() if kind != "main"}
    try:
        found = tree.processes_with_marker("BATON_RUN", "rtestmark")
        assert set(found) == set(started.values())
        assert tree.processes_with_marker("BATON_RUN", "rtestmar") == ()
    finally:
        assert tree.end_processes(list(started.values()), grace=0.0) == ()
    wait_until_gone(started)


def test_marker_never_finds_the_caller_or_its_ancestors(env: dict[str, str]) -> None:
    look = "from baton.process import tree; print(tree.processes_with_marker('BATON_RUN', 'rancestor'))"
    library = os.pathsep.join(path for path in sys.path if path)
    told = subprocess.run(
        ["sh", "-c", '"$0" -c "$1"; true', sys.executable, look],
        env={**env, "BATON_RUN": "rancestor", "PYTHONPATH": library},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert told.stdout.strip() == "()"


def test_subreaper_adopts_and_ends_what_daemonised_below_it(stubborn: Stubborn, env: dict[str, str]) -> None:
    program = (
        "import os, subprocess, sys\n"
        "from baton.process import tree\n"
        "assert tree.become_subreaper()\n"
        "subprocess.run(sys.argv[1:], check=True)\n"
        "below = tree.descendants(os.getpid())\n"
        "print(len(below), tree.end_descendants(grace=0.05), tree.descendants(os.getpid()))\n"
        "try:\n"
        "    os.waitpid(-1, os.WNOHANG); print('zombies')\n"
        "except ChildProcessError:\n"
        "    print('none left')\n"
    )
    library = os.pathsep.join(path for path in sys.path if path)
    told = subprocess.run(
        [sys.executable, "-c", program, *stubborn.argv(stays=False)],
        env={**env, "PYTHONPATH": library}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert told.stdout.splitlines() == ["2 () ()", "none left"]


def test_ending_a_tree_includes_what_is_orphaned_meanwhile(env: dict[str, str]) -> None:
    # The middle shell dies at SIGTERM at once and orphans a child that ignores it.
    script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.01; done' & wait"
    with subprocess.Popen(["sh", "-c", script], env=env, stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        orphan_start, start = tree.start_time(pid), tree.start_time(shell.pid)
        assert orphan_start is not None
        assert start is not None
        assert tree.end_tree(tree.ProcessId(shell.pid, start), grace=0.1) == ()
        wait_until(lambda: not tree.is_alive(tree.ProcessId(pid, orphan_start)), "the end of the orphan")


def test_ground_that_the_caller_stands_on_is_never_ended() -> None:
    for pid in (os.getpid(), os.getppid(), 1):
        start = tree.start_time(pid)
        assert start is not None
        with pytest.raises(ValueError, match="this process or one of its ancestors"):
            tree.end_tree(tree.ProcessId(pid, start))
        assert tree.end_processes([tree.ProcessId(pid, start)]) == ()
    for session in (0, os.getsid(0)):
        with pytest.raises(ValueError, match="not one that Baton started"):
            tree.session_members(session)
