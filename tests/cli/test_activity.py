"""`baton activity`: in a real terminal, in a pipe and for programs; what it shows is what the ledger says."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baton.contract.states import RunState, Verdict
from baton.ledger.locks import FileLock
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from cli.ledgers import HOSTILE, add_run, end, finish, start
from cli.terminal import Terminal

RUN, OTHER = "rabcdefgh", "rbcdefghi"
DEADLINE = 60.0
BATON = [sys.executable, "-m", "baton.cli.main", "activity"]


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open(StateFolder.find()) as opened:
        yield opened


@pytest.fixture
def env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture
def alive() -> Iterator[FileLock]:
    """The lock by which a run has a process."""
    lock = FileLock(StateFolder.find().run_lock(RUN))
    assert lock.try_acquire()
    yield lock
    lock.release()


def _snapshot(env: dict[str, str], *arguments: str) -> dict[str, Any]:
    done = subprocess.run([*BATON, "--json", *arguments], env=env, check=True, capture_output=True)
    shown = json.loads(done.stdout)
    assert isinstance(shown, dict)
    return shown


def _piped(env: dict[str, str], *arguments: str) -> str:
    done = subprocess.run([*BATON, *arguments], env=env, check=True, capture_output=True, text=True)
    return done.stdout


def test_a_snapshot_tells_each_task_of_each_run_at_work(ledger: Ledger, env: dict[str, str]) -> None:
    add_run(ledger, RUN, ["parse", "print"])
    start(ledger, RUN, "parse")
    finish(ledger, RUN, "parse", Verdict.FAILED)
    start(ledger, RUN, "print")
    add_run(ledger, OTHER, ["later"], depends_on=["first"])
    shown = {run["runId"]: run for run in _snapshot(env)["runs"]}
    assert set(shown) == {RUN, OTHER}
    parse, other = shown[RUN]["tasks"]
    assert (parse["verdict"], parse["violations"], parse["checks"]) == ("failed", 1, {"failed": 1})
    assert (parse["tokens"], parse["tokensComplete"]) == (12_345, True)
    assert parse["route"] == {"model": "gpt-5.6-luna", "effort": "medium", "deviates": False}
    assert (other["state"], other["step"], other["tokens"]) == ("working", "working", None)
    assert other["lastEvent"]["text"] == "$ pytest -q (exit 1)"
    assert shown[OTHER]["tasks"][0]["step"] == "waits for first"
    assert shown[RUN]["supervisor"] == {"threadId": "thread-of-the-session", "model": "gpt-6.2-sol"}


def test_a_run_without_a_process_is_said_to_have_none_and_is_left_as_it_is(
    ledger: Ledger, env: dict[str, str]
) -> None:
    add_run(ledger, RUN)
    start(ledger, RUN, "one")
    assert _snapshot(env)["runs"][0]["alive"] is False
    assert "its process is gone" in _piped(env)
    assert ledger.run(RUN).state is RunState.RUNNING
    # It cannot be taken up, for its workspace is gone; both views say so.
    listed = subprocess.run(
        [*BATON[:-1], "runs", "list"], env=env, check=True, capture_output=True, text=True
    )
    assert "(not recovered yet: workspace /home/person/project does not exist)" in listed.stdout
    shown = _piped(env)
    assert "its process is gone" in shown
    assert "not recovered yet: workspace /home/person/project does not exist" in shown


def test_a_run_with_a_process_is_alive(ledger: Ledger, env: dict[str, str], alive: FileLock) -> None:
    add_run(ledger, RUN)
    start(ledger, RUN, "one")
    assert _snapshot(env, RUN)["runs"][0]["alive"] is True


def test_a_run_that_does_not_exist_is_one_line_and_a_failure(ledger: Ledger, env: dict[str, str]) -> None:
    done = subprocess.run([*BATON, "rnothere"], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "baton: no run 'rnothere'; `baton runs list` lists the runs\n"


def test_in_a_pipe_a_task_is_one_plain_line(ledger: Ledger, env: dict[str, str], alive: FileLock) -> None:
    add_run(ledger, RUN, ["a", "b"])
    start(ledger, RUN, "a", "x" * 250)
    shown = _piped(env)
    assert "\x1b" not in shown
    lines = shown.splitlines()
    assert len(lines) == 3
    assert "x" * 250 in lines[1]
    assert "waits for a worker" in lines[2]


def test_hostile_text_reaches_neither_pipe_nor_terminal_as_it_is(
    ledger: Ledger, env: dict[str, str], alive: FileLock, test_root: Path
) -> None:
    add_run(ledger, RUN, workspace=f"/home/{HOSTILE}", objective=HOSTILE, label=HOSTILE)
    start(ledger, RUN, "one", HOSTILE)
    ledger.update_run(RUN, note=HOSTILE)
    piped = _piped(env)
    assert all(char.isprintable() or char == "\n" for char in piped)
    assert "\\x1b[2J" in piped
    assert all(32 <= ord(char) < 127 or char == "\n" for char in json.dumps(_snapshot(env)))
    with Terminal(test_root, [*BATON, "--watch"], env, columns=80, rows=24) as terminal:
        rows = terminal.until(lambda screen: "\\x1b[2J" in screen)
        assert rows[0].startswith("baton activity")
        assert rows[1].startswith(RUN)


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_a_full_house_fits_the_terminal(
    ledger: Ledger, env: dict[str, str], alive: FileLock, test_root: Path, columns: int, rows: int
) -> None:
    names = [f"task-{number:02d}" for number in range(60)]
    add_run(ledger, RUN, names, workspace="/home/person/" + "long/" * 60)
    for name in names[:40]:
        start(ledger, RUN, name)
    for name in names[:36]:
        finish(ledger, RUN, name)
    finish(ledger, RUN, names[36], Verdict.FAILED)
    with Terminal(test_root, [*BATON, "--watch"], env, columns=columns, rows=rows) as terminal:
        shown = terminal.until(lambda screen: "more task" in screen)
        assert len(shown) == rows
        assert "1 at work" in shown[0]
        text = "\n".join(shown)
        # Those at work are all there, with their route and last event where there is room for it.
        for name in names[37:40]:
            assert name in text
        assert "working" in text
        told = sum(f" {name} " in f" {' '.join(text.split())} " for name in names)
        assert f"and {60 - told} more tasks" in text
        terminal.resize(170, 40)
        again = terminal.until(lambda screen: screen.startswith("baton activity") and "and 2" in screen)
        assert len(again) == 40
        terminal.keys("C-c")
        terminal.until(lambda _: terminal.status() is not None)
        assert terminal.status() == 0
        assert not terminal.is_alternate()
        assert terminal.cursor_is_shown()


def test_the_room_that_one_run_does_not_need_is_the_others(
    ledger: Ledger, env: dict[str, str], alive: FileLock, test_root: Path
) -> None:
    add_run(ledger, OTHER)
    start(ledger, OTHER, "one")
    add_run(ledger, RUN, [f"task-{number:02d}" for number in range(60)])
    with Terminal(test_root, [*BATON, "--watch"], env, columns=200, rows=50) as terminal:
        shown = terminal.until(lambda screen: "more task" in screen and "\n  one " in screen)
        # The title, the big run, and three lines of the small one: all rows are used.
        assert [row for row in shown if row == ""] == []
        assert shown[-1].lstrip().startswith("one ")
        assert sum("waits for a worker" in row for row in shown) == 44
        assert "  and 16 more tasks" in shown


def test_watching_begins_before_anything_is_there_and_sees_it_come(
    ledger: Ledger, env: dict[str, str], alive: FileLock, test_root: Path
) -> None:
    with Terminal(test_root, [*BATON, "--watch"], env, columns=80, rows=24) as terminal:
        terminal.until(lambda screen: "nothing has been delegated yet" in screen)
        add_run(ledger, RUN)
        terminal.until(lambda screen: RUN in screen and "queued" in screen)
        start(ledger, RUN, "one")
        rows = terminal.until(lambda screen: "$ pytest -q (exit 1)" in screen)
        assert any("gpt-5.6-luna medium" in row for row in rows)
        finish(ledger, RUN, "one")
        end(ledger, RUN)
        rows = terminal.until(lambda screen: "nothing is at work" in screen)
        assert any("verified" in row and "checks 1/1" in row and "12.3k tok" in row for row in rows)


def test_watching_one_run_ends_with_it_and_leaves_the_last_picture(
    ledger: Ledger, env: dict[str, str], alive: FileLock, test_root: Path
) -> None:
    add_run(ledger, RUN)
    start(ledger, RUN, "one")
    with Terminal(test_root, [*BATON, RUN, "--watch"], env, columns=80, rows=24) as terminal:
        terminal.until(lambda screen: "working" in screen)
        finish(ledger, RUN, "one")
        end(ledger, RUN)
        terminal.until(lambda _: terminal.status() is not None)
        assert terminal.status() == 0
        assert any("verified" in row for row in terminal.screen())


def test_a_terminated_watcher_gives_the_terminal_back(
    ledger: Ledger, env: dict[str, str], test_root: Path
) -> None:
    with Terminal(test_root, [*BATON, "--watch"], env, columns=80, rows=24) as terminal:
        terminal.until(lambda screen: "nothing has been delegated yet" in screen)
        pid = int(terminal.tmux("display-message", "-p", "-t", "t", "#{pane_pid}"))
        os.kill(pid, signal.SIGTERM)
        terminal.until(lambda _: terminal.status() is not None)
        assert not terminal.is_alternate()
        assert terminal.cursor_is_shown()


class Watcher:
    """`baton activity --watch` at the end of a pipe."""

    def __init__(self, env: dict[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen([*BATON, "--watch", *arguments], env=env, stdout=subprocess.PIPE)
        self._read = b""

    def until(self, text: str) -> str:
        """All that was read once `text` is in it."""
        assert self.process.stdout is not None
        until = time.monotonic() + DEADLINE
        while text not in self._read.decode():
            left = until - time.monotonic()
            assert left > 0 and select.select([self.process.stdout], [], [], left)[0], self._read
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            assert piece, self._read
            self._read += piece
        return self._read.decode()

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=DEADLINE)
        return self.process.returncode


def test_watching_in_a_pipe_tells_every_event_once(ledger: Ledger, env: dict[str, str]) -> None:
    add_run(ledger, OTHER)
    start(ledger, OTHER, "one", "an old command")
    end(ledger, OTHER)
    watcher = Watcher(env)
    watcher.until(OTHER)
    add_run(ledger, RUN)
    start(ledger, RUN, "one", "a first command")
    finish(ledger, RUN, "one")
    end(ledger, RUN)
    ledger.update_run(OTHER, state=RunState.RUNNING)
    ledger.append_event(OTHER, "worker.command", "one", 1, {"command": "a late command", "exitCode": 0})
    told = watcher.until("a late command")
    if "run done" not in told:
        told = watcher.until("run done")
    assert watcher.end() == 0
    lines = [line.partition(" ")[2] for line in told.splitlines()]
    assert [line for line in lines if line.startswith(RUN)] == [
        f"{RUN} run admitted",
        f"{RUN} run running",
        f"{RUN} one $ a first command (exit 1)",
        f"{RUN} one task done: verified",
        f"{RUN} run done",
    ]
    # What was there before is in the first picture alone.
    assert told.count("an old command") == 1
    assert told.count("a late command") == 1


def test_watching_for_a_program_gives_a_snapshot_a_line(ledger: Ledger, env: dict[str, str]) -> None:
    watcher = Watcher(env, "--json")
    watcher.until("\n")
    add_run(ledger, RUN)
    told = watcher.until(RUN)
    snapshots = [json.loads(line) for line in told.splitlines()]
    assert snapshots[0]["runs"] == []
    assert [run["runId"] for run in snapshots[-1]["runs"]] == [RUN]
    assert watcher.end() == 0


def test_a_reader_that_goes_away_ends_the_watcher_quietly(ledger: Ledger, env: dict[str, str]) -> None:
    watcher = subprocess.Popen(
        [*BATON, "--watch"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert watcher.stdout is not None and watcher.stderr is not None
    assert watcher.stdout.readline() == "nothing has been delegated yet; waiting\n"
    watcher.stdout.close()
    add_run(ledger, RUN)
    start(ledger, RUN, "one")
    watcher.wait(timeout=DEADLINE)
    assert watcher.stderr.read() == ""
    watcher.stderr.close()
