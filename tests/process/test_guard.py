"""The guard by itself: what it passes on, and what it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.process import guard, tree
from process.stubborn import Stubborn, wait_until, wait_until_gone

GUARD = [sys.executable, "-I", "-S", "-E", guard.__file__]


def run_guard(*words: str, env: dict[str, str], **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*GUARD, *words], env=env, capture_output=True, timeout=60, check=False)


@pytest.fixture
def report() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def lines_of(reader: int) -> list[str]:
    text = b""
    while chunk := os.read(reader, 4096):
        text += chunk
    return text.decode().splitlines()


@pytest.mark.parametrize("code", [0, 1, 42, 101, 255])
def test_exit_status_of_the_program_passes_through(code: int, env: dict[str, str]) -> None:
    assert run_guard("--", "sh", "-c", f"exit {code}", env=env).returncode == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_program_ended_by_a_signal_gives_128_and_the_signal(number: int, env: dict[str, str]) -> None:
    assert run_guard("--", "sh", "-c", f"kill -{number} $$", env=env).returncode == 128 + number


def test_missing_program_gives_127_and_one_that_cannot_be_executed_126(env: dict[str, str]) -> None:
    assert run_guard("--", "no-such-program", env=env).returncode == 127
    assert run_guard("--", "/etc/passwd", env=env).returncode == 126


def test_wrong_use_is_said_and_is_not_taken_for_the_programs_status(env: dict[str, str]) -> None:
    for words in (["--"], ["--what", "1", "--", "true"], ["--death-fd", "x", "--", "true"]):
        finished = run_guard(*words, env=env)
        assert finished.returncode == 125
        assert finished.stderr.startswith(b"baton-guard: ")


def test_settings_of_the_kernel_cannot_be_written_not_even_by_root(env: dict[str, str]) -> None:
    setting = Path("/proc/sys/fs/lease-break-time")
    before = setting.read_text()
    script = f'read value < {setting}; echo "$value" > {setting} && echo written'
    assert b"written" not in run_guard("--", "sh", "-c", script, env=env).stdout
    assert setting.read_text() == before


def test_arguments_that_are_not_utf8_arrive_as_they_are(env: dict[str, str]) -> None:
    words = [os.fsencode(word) for word in GUARD]
    finished = subprocess.run(
        [*words, b"--", b"printf", b"%s", b"caf\xe9 \xff"],
        env=env,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert finished.stdout == b"caf\xe9 \xff"


def test_program_gets_default_signals_and_no_descriptor_of_the_guards(env: dict[str, str]) -> None:
    look = (
        "import os, signal; print(signal.getsignal(signal.SIGTERM).name, sorted(os.listdir('/proc/self/fd')))"
    )
    program = [sys.executable, "-I", "-S", "-c", look]
    reader, writer = os.pipe()
    finished = subprocess.run(
        [*GUARD, "--death-fd", str(reader), "--", *program],
        env=env, capture_output=True, timeout=60, check=True, pass_fds=(reader,), stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(reader)
    os.close(writer)
    # 3 is the folder being listed.
    assert finished.stdout.decode().strip() == "SIG_DFL ['0', '1', '2', '3']"


def test_broken_pipe_ends_the_program_as_it_would_without_the_guard(env: dict[str, str]) -> None:
    script = 'status() { "$@"; echo $? >&2; }; status "$0" "$@" | head -n 1'
    finished = subprocess.run(
        ["sh", "-c", script, *GUARD, "--", "yes"], env=env, capture_output=True, timeout=60, check=True
    )
    assert finished.stdout == b"y\n"
    assert int(finished.stderr) == 128 + signal.SIGPIPE


def test_what_the_program_leaves_behind_is_ended_and_counted(
    stubborn: Stubborn, env: dict[str, str], report: tuple[int, int]
) -> None:
    reader, writer = report
    argv = [*GUARD, "--report-fd", str(writer), "--grace", "0.1", "--", *stubborn.argv(stays=False)]
    subprocess.run(argv, env=env, timeout=60, check=True, pass_fds=(writer,))
    os.close(writer)
    said = lines_of(reader)
    assert said[0].startswith("started ")
    assert said[-1] == "ended exit=0 signal=0 leftovers=2 survivors=0 cause=none"
    assert [pid for pid in stubborn.pids() if tree.start_time(pid) is not None] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_to_the_guard_ends_the_whole_tree(
    number: int, stubborn: Stubborn, env: dict[str, str]
) -> None:
    argv = [*GUARD, "--grace", "0.1", "--", *stubborn.argv(stays=True)]
    with subprocess.Popen(argv, env=env, start_new_session=True) as running:
        started = stubborn.wait_for_all()
        running.send_signal(number)
        assert running.wait(60) == 128 + signal.SIGKILL
    assert not any(tree.is_alive(process) for process in started.values())


def test_second_signal_skips_the_grace(stubborn: Stubborn, env: dict[str, str]) -> None:
    argv = [*GUARD, "--grace", "3600", "--", *stubborn.argv(stays=True)]
    with subprocess.Popen(argv, env=env, start_new_session=True) as running:
        started = stubborn.wait_for_all()
        running.send_signal(signal.SIGTERM)
        polite = [sys.executable, "-c", "pass"]
        subprocess.run(
            polite, check=True
        )  # the first signal may be merged with the second, hence again below
        wait_until(lambda: _forced(running), "the end of the guard")
        assert running.returncode == 128 + signal.SIGKILL
    assert not any(tree.is_alive(process) for process in started.values())


def _forced(running: subprocess.Popen[bytes]) -> bool:
    running.send_signal(signal.SIGTERM)
    return running.poll() is not None


def test_polite_program_ends_by_itself_within_the_grace(env: dict[str, str]) -> None:
    polite = "trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done"
    argv = [*GUARD, "--grace", "3600", "--", "sh", "-c", polite]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline() == b"bye\n"
        assert running.wait(60) == 7


def test_stopped_descendant_is_ended_too(env: dict[str, str]) -> None:
    script = "sh -c 'kill -STOP $$' & echo $!; wait"
    argv = [*GUARD, "--grace", "3600", "--", "sh", "-c", script]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True) as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        wait_until(lambda: _state(pid) == b"T", "the child stopped")
        running.send_signal(signal.SIGTERM)
        running.wait(60)
    assert tree.start_time(pid) is None


def _state(pid: int) -> bytes:
    found = guard.entry(pid)
    return b"" if found is None else found.state


def test_end_of_the_owner_by_sigkill_ends_the_whole_tree(
    stubborn: Stubborn, env: dict[str, str], test_root: Path
) -> None:
    owner = (
        "import os, subprocess, sys\n"
        "reader, writer = os.pipe()\n"
        "subprocess.Popen([*sys.argv[1:-1], '--death-fd', str(reader), '--grace', '0.1', '--',"
        " *eval(sys.argv[-1])], pass_fds=(reader,), start_new_session=True).wait()\n"
    )
    argv = [sys.executable, "-c", owner, *GUARD, repr(stubborn.argv(stays=True))]
    with subprocess.Popen(argv, env=env) as running:
        started = stubborn.wait_for_all()
        running.kill()
    wait_until_gone(started)


def test_program_dies_with_a_guard_that_is_killed(stubborn: Stubborn, env: dict[str, str]) -> None:
    with subprocess.Popen(
        [*GUARD, "--", *stubborn.argv(stays=True)], env=env, start_new_session=True
    ) as running:
        started = stubborn.wait_for_all()
        running.kill()
    try:
        wait_until_gone({"main": started.pop("main")})
    finally:
        assert tree.end_processes(list(started.values()), grace=0.0) == ()


def test_descendant_that_forks_for_ever_is_ended(env: dict[str, str], report: tuple[int, int]) -> None:
    chain = (
        "import os, signal\n"
        "if os.fork(): os._exit(0)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.setsid()\n"
        "while True:\n"
        "    if os.fork(): os._exit(0)\n"
    )
    reader, writer = report
    program = [sys.executable, "-I", "-S", "-c", chain]
    argv = [*GUARD, "--report-fd", str(writer), "--grace", "0.1", "--", *program]
    subprocess.run(argv, env=env, timeout=60, check=True, pass_fds=(writer,))
    os.close(writer)
    said = dict(pair.split("=") for pair in lines_of(reader)[-1].split()[1:])
    assert int(said["leftovers"]) >= 1
    assert said["survivors"] == "0"


def test_command_names_with_parentheses_and_spaces_are_read_rightly() -> None:
    stat = b"7 (a) (b c) S 3 7 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
    found = guard.Entry(7, stat)
    assert (found.state, found.parent, found.session, found.start) == (b"S", 3, 9, 4711)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")
def test_commands_with_an_environment_of_their_own_do_not_outlive_a_killed_guard() -> None:
    driver = Path(__file__).with_name("lost_guard.py")
    server = str(Path(__file__).parents[2] / "server")
    done = subprocess.run(
        [sys.executable, str(driver)],
        env={**os.environ, "PYTHONPATH": server},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["ended"], done.stderr
