"""Guards forked by one server: beyond what `test_child.py` shows of both kinds, what becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import psutil
import pytest

from baton.process import forked, guard, guarded, tree
from baton.process.child import open_child, run
from baton.process.forked import guard_server_here, guards_forked
from process.stubborn import Stubborn, wait_until_gone

pytestmark = pytest.mark.anyio

SECONDS = 60.0

INHERITED = """
import os, resource
signals = [line for line in open('/proc/self/status') if line[:6] in ('SigBlk', 'SigIgn', 'SigCgt', 'NoNewP')]
limits = [resource.getrlimit(number) for number in range(16)]
oom, group = open('/proc/self/oom_score_adj').read(), open('/proc/self/cgroup').read()
print(sorted(os.listdir('/proc/self/fd')), signals, limits, oom, group, os.umask(0), os.nice(0), os.getcwd())
print(os.getsid(0) == os.getpgrp() == os.getpid(), sorted(os.environ))
"""


@pytest.fixture
async def server() -> AsyncIterator[psutil.Process]:
    """The server that forks the guards of this test."""
    async with guards_forked():
        yield the_server()


def the_server() -> psutil.Process:
    # Not told by its command line, which is empty for a moment after it was started.
    here = guard_server_here()
    assert here is not None
    return psutil.Process(here._process.pid)


async def test_guards_are_forks_of_one_server(
    server: psutil.Process, env: dict[str, str], test_root: Path
) -> None:
    async with (
        await open_child(["cat"], cwd="/", env=env, stderr=test_root / "one") as one,
        await open_child(["cat"], cwd="/", env=env, stderr=test_root / "other") as other,
    ):
        for child in (one, other):
            entry = guard.entry(child.pid)
            assert entry is not None
            assert (entry.parent, entry.session) == (server.pid, child.pid)


async def test_program_gets_no_descriptor_of_the_servers(server: psutil.Process, env: dict[str, str]) -> None:
    done = await run(["ls", "/proc/self/fd"], cwd="/", env=env, timeout=SECONDS)
    assert done.output.split() == [b"0", b"1", b"2", b"3"]  # the last is the folder that is listed


async def test_children_outlive_a_killed_server_and_the_next_one_has_a_guard_of_its_own(
    server: psutil.Process, env: dict[str, str], test_root: Path
) -> None:
    async with await open_child(["cat"], cwd="/", env=env, stderr=test_root / "errors") as before:
        server.kill()
        server.wait(SECONDS)
        done = await run(["echo", "started"], cwd="/", env=env, timeout=SECONDS)
        assert (done.exit_code, done.output) == (0, b"started\n")
        assert guard_server_here() is None
        await before.stdin.send(b"still here")
        assert await before.stdout.receive() == b"still here"
        await before.stdin.aclose()
        assert (await before.wait()).exit_code == 0


async def test_child_asked_of_a_server_that_dies_over_it_is_started_once(
    server: psutil.Process, env: dict[str, str], test_root: Path
) -> None:
    count = test_root / "count"
    server.suspend()
    results = []

    async def ask() -> None:
        argv = ["/bin/sh", "-c", f"echo once >> {count}"]
        results.append(await run(argv, cwd="/", env=env, timeout=SECONDS))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        server.kill()
    assert results[0].exit_code == 0
    assert count.read_text() == "once\n"


async def test_all_of_many_children_end_once_though_the_server_is_killed_among_them(
    server: psutil.Process, env: dict[str, str], test_root: Path
) -> None:
    async def ask(number: int) -> None:
        argv = ["/bin/sh", "-c", f"echo once >> {test_root}/{number}; exit {number}"]
        codes[number] = (await run(argv, cwd="/", env=env, timeout=SECONDS)).exit_code

    codes: dict[int, int | None] = {}
    async with anyio.create_task_group() as tasks:
        for number in range(48):
            tasks.start_soon(ask, number)
        await anyio.wait_all_tasks_blocked()
        server.kill()
    assert codes == {number: number for number in range(48)}
    assert {(test_root / str(number)).read_text() for number in codes} == {"once\n"}


@pytest.mark.parametrize("size", [1, 1 << 20])
async def test_server_that_does_not_answer_is_not_waited_for_and_does_nothing_later(
    server: psutil.Process,
    env: dict[str, str],
    test_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(guarded, "START_SECONDS", 5.0)  # the guard started in its place has no more than that
    monkeypatch.setattr(forked, "ANSWER_SECONDS", 0.3)
    count = test_root / "count"
    many = ["x" * min(size, 1 << 16)] * (1 + (size >> 16))
    server.suspend()
    with anyio.fail_after(SECONDS):
        done = await run(["/bin/sh", "-c", f"echo once >> {count}", *many], cwd="/", env=env, timeout=SECONDS)
    assert done.exit_code == 0
    server.wait(SECONDS)
    assert count.read_text() == "once\n"


async def test_stopped_server_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked, "END_SECONDS", 0.1)
    with anyio.fail_after(SECONDS):
        async with guards_forked():
            found = the_server()
            found.suspend()
    assert not found.is_running()


async def test_program_finds_the_same_under_either_guard(env: dict[str, str]) -> None:
    """Descriptors, signals, limits, session and all else that a process inherits."""

    async def look() -> bytes:
        done = await run([sys.executable, "-I", "-S", "-c", INHERITED], cwd="/tmp", env=env, timeout=SECONDS)
        assert done.exit_code == 0
        return done.output

    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        own = await look()
        async with guards_forked():
            assert await look() == own
    finally:
        signal.signal(signal.SIGUSR1, before)


async def test_folder_that_is_not_there_is_named(server: psutil.Process, env: dict[str, str]) -> None:
    with pytest.raises(FileNotFoundError, match="/no/such/folder"):
        await run(["true"], cwd="/no/such/folder", env=env, timeout=SECONDS)


async def test_arguments_and_variables_arrive_as_they_are(
    server: psutil.Process, env: dict[str, str]
) -> None:
    odd = os.fsdecode(b"a=\xff\n b")
    argv = [b"/usr/bin/env", b"printenv", b"ODD"]
    done = await run(argv, cwd="/", env={**env, "ODD": odd}, timeout=SECONDS)
    assert done.output == os.fsencode(odd) + b"\n"
    long = "x" * (1 << 16)
    done = await run(["printf", "%s", *[long] * 20], cwd="/", env=env, timeout=SECONDS)
    assert done.output == long.encode() * 20
    with pytest.raises(ValueError, match="null"):
        await run(["true", "a\0b"], cwd="/", env=env, timeout=SECONDS)
    with pytest.raises(ValueError, match="name"):
        await run(["true"], cwd="/", env={**env, "A=B": "c"}, timeout=SECONDS)
    with pytest.raises(OSError, match="too long"):
        await run(["true", "x" * (1 << 18)], cwd="/", env=env, timeout=SECONDS)


async def test_death_of_the_owner_by_sigkill_ends_children_and_server(
    stubborn: Stubborn, env: dict[str, str]
) -> None:
    owner = (
        "import anyio, sys\n"
        "from baton.process.child import run\n"
        "from baton.process.forked import guards_forked\n"
        "async def main():\n"
        "    async with guards_forked():\n"
        "        await run(sys.argv[1:], cwd='/', env={}, timeout=None, grace=0.1)\n"
        "anyio.run(main)\n"
    )
    library = os.pathsep.join(path for path in sys.path if path)
    argv = [sys.executable, "-c", owner, *stubborn.argv(stays=True)]
    with subprocess.Popen(argv, env={**env, "PYTHONPATH": library}) as running:
        started = await anyio.to_thread.run_sync(stubborn.wait_for_all)
        below = psutil.Process(running.pid).children()
        assert [tree.guard_server() in child.cmdline() for child in below] == [True]
        running.kill()
    wait_until_gone(started)
    psutil.wait_procs(below, SECONDS)
    assert not any(child.is_running() for child in below)


async def test_program_that_cannot_be_started_leaves_the_owner_no_zombie() -> None:
    owner = (
        "import anyio, contextlib, psutil\n"
        "from baton.process import tree\n"
        "from baton.process.child import run\n"
        "from baton.process.forked import guards_forked\n"
        "async def fail():\n"
        "    with contextlib.suppress(FileNotFoundError):\n"
        "        await run(['no-such-program'], cwd='/', env={}, timeout=None)\n"
        "async def main():\n"
        "    tree.become_subreaper()\n"
        "    await fail()\n"
        "    async with guards_forked():\n"
        "        await fail()\n"
        "        print(len(psutil.Process().children()))\n"
        "anyio.run(main)\n"
    )
    library = os.pathsep.join(path for path in sys.path if path)
    done = await anyio.run_process([sys.executable, "-c", owner], env={**os.environ, "PYTHONPATH": library})
    assert done.stdout == b"1\n"  # the server


async def test_commands_with_an_environment_of_their_own_do_not_outlive_a_killed_forked_guard() -> None:
    program = Path(__file__).with_name("lost_guard.py")
    library = os.pathsep.join(path for path in sys.path if path)
    done = await anyio.run_process(
        [sys.executable, str(program), "forked"], env={**os.environ, "PYTHONPATH": library}
    )
    assert done.stdout.split() == [b"ended"]


async def test_signal_to_a_forked_guard_ends_its_tree_and_no_other(
    server: psutil.Process, stubborn: Stubborn, env: dict[str, str], test_root: Path
) -> None:
    argv = stubborn.argv(stays=True)
    async with (
        await open_child(argv, cwd="/", env=env, stderr=test_root / "one", grace=0.1) as child,
        await open_child(["cat"], cwd="/", env=env, stderr=test_root / "other") as other,
    ):
        started = await anyio.to_thread.run_sync(stubborn.wait_for_all)
        os.kill(child.pid, signal.SIGTERM)
        assert (await child.wait()).survivors == 0
        wait_until_gone(started)
        await other.stdin.send(b"still here")
        assert await other.stdout.receive() == b"still here"
