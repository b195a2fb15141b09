"""Children as the rest of Baton starts them: bounded in every direction, and never outliving their caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteReceiveStream

from baton.process import tree
from baton.process.child import open_child, read_lines, run
from baton.process.environment import WORKER_MARKER
from process.stubborn import Stubborn, wait_until_gone

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("guards")]


async def test_output_and_errors_arrive_in_the_order_written(env: dict[str, str]) -> None:
    finished = await run(["sh", "-c", "echo a; echo b >&2; echo c"], cwd="/", env=env, timeout=60)
    assert (finished.exit_code, finished.signal, finished.output) == (0, None, b"a\nb\nc\n")


async def test_errors_can_be_had_apart(env: dict[str, str]) -> None:
    finished = await run(["sh", "-c", "echo a; echo b >&2"], cwd="/", env=env, timeout=60, errors_apart=True)
    assert (finished.output, finished.errors) == (b"a\n", b"b\n")


async def test_output_file_is_whole_and_private(env: dict[str, str], test_root: Path) -> None:
    output = test_root / "out"
    finished = await run(["seq", "200000"], cwd="/", env=env, timeout=60, output=output)
    assert output.read_bytes().split() == [b"%d" % number for number in range(1, 200001)]
    assert finished.output_bytes == output.stat().st_size
    assert output.stat().st_mode & 0o777 == 0o600


async def test_standard_input_is_empty_unless_given(env: dict[str, str]) -> None:
    assert (await run(["cat"], cwd="/", env=env, timeout=60)).output == b""
    given = os.urandom(300_000)
    assert (await run(["cat"], cwd="/", env=env, timeout=60, stdin=given)).output == given


async def test_program_that_does_not_read_its_input_is_no_error(env: dict[str, str]) -> None:
    finished = await run(["true"], cwd="/", env=env, timeout=60, stdin=b"x" * 1_000_000)
    assert finished.exit_code == 0


async def test_program_sees_the_given_environment_and_nothing_else(env: dict[str, str]) -> None:
    finished = await run(["env"], cwd="/", env={**env, "ONE": "1"}, timeout=60)
    names = {line.partition(b"=")[0] for line in finished.output.splitlines()}
    assert names == {b"PATH", b"ONE", b"BATON_GUARD"}


async def test_death_by_signal_is_reported_as_such(env: dict[str, str]) -> None:
    finished = await run(["sh", "-c", "kill -SEGV $$"], cwd="/", env=env, timeout=60)
    assert (finished.exit_code, finished.signal) == (None, signal.SIGSEGV)


async def test_status_above_128_is_not_taken_for_a_signal(env: dict[str, str]) -> None:
    finished = await run(["sh", "-c", "exit 137"], cwd="/", env=env, timeout=60)
    assert (finished.exit_code, finished.signal) == (137, None)


async def test_program_that_cannot_be_started_is_an_error_with_its_name(env: dict[str, str]) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await run(["no-such-program"], cwd="/", env=env, timeout=60)
    with pytest.raises(PermissionError, match="/etc/passwd"):
        await run(["/etc/passwd"], cwd="/", env=env, timeout=60)
    with pytest.raises(FileNotFoundError, match="/no/such/folder"):
        await run(["true"], cwd="/no/such/folder", env=env, timeout=60)


async def test_time_out_ends_the_whole_tree(stubborn: Stubborn, env: dict[str, str]) -> None:
    finished = await run(stubborn.argv(stays=True), cwd="/", env=env, timeout=3.0, grace=0.1)
    assert finished.timed_out
    assert finished.signal == signal.SIGKILL
    assert [pid for pid in stubborn.pids() if tree.start_time(pid) is not None] == []


async def test_child_ends_when_its_main_process_ends(stubborn: Stubborn, env: dict[str, str]) -> None:
    finished = await run(stubborn.argv(stays=False), cwd="/", env=env, timeout=600, grace=0.1)
    assert (finished.exit_code, finished.timed_out, finished.leftovers) == (0, False, 2)
    assert [pid for pid in stubborn.pids() if tree.start_time(pid) is not None] == []


async def test_endless_output_is_cut_exactly_at_the_limit(env: dict[str, str], test_root: Path) -> None:
    output = test_root / "out"
    finished = await run(["yes"], cwd="/", env=env, timeout=600, output=output, max_output=1_000_001)
    assert finished.over_limit == "output"
    assert output.stat().st_size == finished.output_bytes == 1_000_001


async def test_output_of_exactly_the_limit_is_not_beyond_it(env: dict[str, str]) -> None:
    finished = await run(["printf", "12345"], cwd="/", env=env, timeout=60, max_output=5)
    assert (finished.output, finished.over_limit, finished.exit_code) == (b"12345", None, 0)


async def test_memory_of_the_whole_tree_is_limited(env: dict[str, str]) -> None:
    eats = "data = bytearray(b'x') * 200_000_000; import time; time.sleep(3600)"
    argv = ["sh", "-c", '"$0" -c "$1"; true', sys.executable, eats]
    finished = await run(argv, cwd="/", env=env, timeout=600, memory_limit=100_000_000, grace=0.1)
    assert finished.over_limit == "memory"


async def test_shared_memory_counts_once(env: dict[str, str]) -> None:
    shares = (
        "import os, time; data = bytearray(b'x') * 60_000_000\n"
        "children = [os.fork() or (time.sleep(1.2), os._exit(0)) for _ in range(4)]\n"
        "[os.wait() for _ in children]"
    )
    argv = [sys.executable, "-I", "-S", "-c", shares]
    finished = await run(argv, cwd="/", env=env, timeout=600, memory_limit=200_000_000)
    assert (finished.over_limit, finished.exit_code) == (None, 0)


async def test_output_that_cannot_be_written_ends_the_child(env: dict[str, str]) -> None:
    with pytest.raises(OSError, match="No space left"):
        await run(["yes"], cwd="/", env=env, timeout=600, output=Path("/dev/full"), grace=0.1)


async def test_cancellation_ends_the_whole_tree_before_it_goes_on(
    stubborn: Stubborn, env: dict[str, str]
) -> None:
    started: dict[str, tree.ProcessId] = {}
    async with anyio.create_task_group() as tasks:

        async def child() -> None:
            try:
                await run(stubborn.argv(stays=True), cwd="/", env=env, timeout=None, grace=0.1)
            finally:
                assert started
                assert not any(tree.is_alive(process) for process in started.values())

        tasks.start_soon(child)
        started.update(await anyio.to_thread.run_sync(stubborn.wait_for_all))
        tasks.cancel_scope.cancel()


async def test_killed_guard_leaves_nothing_behind(stubborn: Stubborn, env: dict[str, str]) -> None:
    async with await open_child(
        stubborn.argv(stays=True), cwd="/", env=env, stderr=Path(os.devnull), grace=0.1
    ) as child:
        started = await anyio.to_thread.run_sync(stubborn.wait_for_all)
        os.kill(child.pid, signal.SIGKILL)
        ended = await child.wait()
    assert ended.guard_lost
    assert ended.survivors == 0
    wait_until_gone(started)


async def test_killed_guard_does_not_take_other_children_with_it(
    env: dict[str, str], test_root: Path
) -> None:
    marked = {**env, WORKER_MARKER: "1"}
    async with (
        await open_child(["cat"], cwd="/", env=marked, stderr=test_root / "one") as one,
        await open_child(["cat"], cwd="/", env=marked, stderr=test_root / "other") as other,
    ):
        os.kill(one.pid, signal.SIGKILL)
        assert (await one.wait()).guard_lost
        await other.stdin.send(b"still here\n")
        assert await other.stdout.receive() == b"still here\n"


async def test_guard_killed_before_it_could_tell_anything_is_an_error_and_hurts_nobody(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bystander = await open_child(["cat"], cwd="/", env=env, stderr=Path(os.devnull))
    async with bystander:
        with monkeypatch.context() as patched:
            patched.setattr("baton.process.guarded.guard_server_here", lambda: None)
            patched.setattr("baton.process.guarded._guard_argv", lambda *_: ["sh", "-c", "kill -9 $$"])
            with pytest.raises(OSError, match="true"):
                await run(["true"], cwd="/", env=env, timeout=60)
        await bystander.stdin.send(b"still here")
        assert await bystander.stdout.receive() == b"still here"


async def test_stopped_guard_cannot_hold_up_the_end(
    stubborn: Stubborn, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("baton.process.guarded.FORCE_SECONDS", 0.1)
    child = await open_child(stubborn.argv(stays=True), cwd="/", env=env, stderr=Path(os.devnull), grace=0.1)
    async with child:
        started = await anyio.to_thread.run_sync(stubborn.wait_for_all)
        os.kill(child.pid, signal.SIGSTOP)
        ended = await child.end()
    assert ended.survivors == 0
    wait_until_gone(started)


async def test_death_of_the_owner_by_sigkill_ends_children(stubborn: Stubborn, env: dict[str, str]) -> None:
    owner = (
        "import anyio, functools, sys\n"
        "from baton.process.child import run\n"
        "anyio.run(functools.partial(run, sys.argv[1:], cwd='/', env={}, timeout=None, grace=0.1))\n"
    )
    library = os.pathsep.join(path for path in sys.path if path)
    argv = [sys.executable, "-c", owner, *stubborn.argv(stays=True)]
    with subprocess.Popen(argv, env={**env, "PYTHONPATH": library}) as running:
        started = await anyio.to_thread.run_sync(stubborn.wait_for_all)
        running.kill()
    wait_until_gone(started)


async def test_conversation_with_lines_of_many_megabytes(env: dict[str, str], test_root: Path) -> None:
    async with await open_child(["cat"], cwd="/", env=env, stderr=test_root / "err") as child:
        sent = [b"x" * 5_000_000, b"", "\u2028\x85".encode(), b"y" * 70_000]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child.stdin.send, b"\n".join(sent) + b"\n")
            lines = read_lines(child.stdout)
            received = [await anext(lines) for _ in sent]
        assert received == sent
        await child.stdin.aclose()
        assert [line async for line in lines] == []
        assert (await child.wait()).exit_code == 0


async def test_child_with_unread_output_can_be_ended(env: dict[str, str], test_root: Path) -> None:
    async with await open_child(["yes"], cwd="/", env=env, stderr=test_root / "err", grace=0.1) as child:
        await child.stdout.receive()
        ended = await child.end()
        assert await child.end() == ended
        assert await child.wait() == ended
    assert ended.signal == signal.SIGTERM


async def test_errors_of_a_child_are_appended_to_a_private_file(env: dict[str, str], test_root: Path) -> None:
    errors = test_root / "err"
    for word in ("one", "two"):
        argv = ["sh", "-c", f"echo {word} >&2"]
        async with await open_child(argv, cwd="/", env=env, stderr=errors) as child:
            await child.wait()
    assert errors.read_text() == "one\ntwo\n"
    assert errors.stat().st_mode & 0o777 == 0o600


async def test_child_that_cannot_be_started_is_an_error(env: dict[str, str], test_root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await open_child(["no-such-program"], cwd="/", env=env, stderr=test_root / "err")


async def test_children_do_not_hold_each_others_pipes(env: dict[str, str], test_root: Path) -> None:
    async with (
        await open_child(["cat"], cwd="/", env=env, stderr=test_root / "a") as first,
        await open_child(["cat"], cwd="/", env=env, stderr=test_root / "b"),
    ):
        await first.stdin.aclose()
        assert (await first.wait()).exit_code == 0


async def test_no_descriptor_is_left_open(env: dict[str, str]) -> None:
    await run(["true"], cwd="/", env=env, timeout=60)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await run(["true"], cwd="/", env=env, timeout=60)
        with pytest.raises(FileNotFoundError):
            await run(["no-such-program"], cwd="/", env=env, timeout=60)
    # Threads of this process that have nothing to do with it may open and close some meanwhile.
    with anyio.fail_after(10):
        while len(list(Path("/proc/self/fd").iterdir())) > before:
            await anyio.sleep(0.05)


async def test_unfinished_last_line_is_read_and_chunks_are_joined() -> None:
    class Pieces(ByteReceiveStream):
        def __init__(self, *pieces: bytes) -> None:
            self.pieces = list(pieces)

        async def receive(self, max_bytes: int = 65536) -> bytes:
            if not self.pieces:
                raise anyio.EndOfStream
            return self.pieces.pop(0)

        async def aclose(self) -> None:
            return None

    async def all_of(lines: AsyncIterator[bytes]) -> list[bytes]:
        return [line async for line in lines]

    assert await all_of(read_lines(Pieces(b"a", b"b\nc", b"\n", b"\n", b"d"))) == [b"ab", b"c", b"", b"d"]
    assert await all_of(read_lines(Pieces())) == []
