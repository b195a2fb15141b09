"""Power loss, kills, full disks, damage: what was committed is there, and what is wrong is said."""

from __future__ import annotations

import ast
import itertools
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.contract.errors import Busy, StateUnavailable
from baton.contract.states import RunState, TaskState
from baton.ledger import database, opening
from baton.ledger.faults import mark_of_damage
from baton.ledger.locks import FileLock
from baton.ledger.migrations import MIGRATIONS
from baton.ledger.records import AttemptRecord, NewEvent
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_result, a_run, a_task

Dump = tuple[tuple[object, ...], ...]


def dump(path: Path) -> Dump:
    """Everything in a database, or nothing where there is no schema yet."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        names = [name for (name,) in tables if name != "sqlite_sequence"]
        return tuple((name, *row) for name in names for row in connection.execute(f"SELECT * FROM {name}"))
    finally:
        connection.close()


def a_scripted_run(ledger: Ledger) -> Iterator[object]:
    yield ledger.create_run(a_run(), [a_task(), a_task(task_id="two", position=1)])
    yield ledger.update_run(RUN, state=RunState.RUNNING, event=NewEvent(kind="running"))
    for task_id in ("one", "two"):
        yield ledger.start_attempt(AttemptRecord(run_id=RUN, task_id=task_id, attempt=1))
        yield ledger.update_task(RUN, task_id, state=TaskState.WORKING, event=NewEvent(kind="working"))
        for number in range(5):
            yield ledger.append_event(RUN, "item", task_id, 1, {"number": number, "text": "x" * 3000})
        yield ledger.update_attempt(RUN, task_id, 1, step="judged", result=a_result())
        yield ledger.update_task(RUN, task_id, state=TaskState.DONE, result=a_result())
        yield ledger.maintain()
    yield ledger.answer_command(ledger.post_command(RUN, "cancel"), {})
    yield ledger.update_run(RUN, state=RunState.DONE, event=NewEvent(kind="done"))


def copy_as_after_power_loss(state: StateFolder, target: Path, wal_bytes: int | None = None) -> Path:
    """Database and log as a disk would hold them; the index of the log is memory and never survives."""
    target.mkdir()
    copied = target / state.database.name
    shutil.copyfile(state.database, copied)
    wal = database.wal_of(state.database)
    if wal.exists():
        database.wal_of(copied).write_bytes(wal.read_bytes()[:wal_bytes])
    return copied


def test_every_state_after_power_loss_is_one_that_was_committed(
    ledger: Ledger, state: StateFolder, test_root: Path
) -> None:
    for number, _ in enumerate(a_scripted_run(ledger)):
        committed = dump(state.database)
        copied = copy_as_after_power_loss(state, test_root / f"copy-{number}")
        assert dump(copied) == committed
    assert number > 20


def test_log_that_is_cut_anywhere_gives_an_earlier_commit_whole(
    ledger: Ledger, state: StateFolder, test_root: Path
) -> None:
    committed = [dump(state.database)]
    for _ in itertools.islice(a_scripted_run(ledger), 10):
        committed.append(dump(state.database))
    size = database.wal_of(state.database).stat().st_size
    reached = []
    for cut in {*range(0, size, 1031), size}:
        copied = copy_as_after_power_loss(state, test_root / f"cut-{cut}", cut)
        found = dump(copied)
        assert found == () or found in committed
        reached.append(found)
    assert committed[-1] in reached
    assert len(set(reached)) > 5


def test_nothing_acknowledged_is_lost_when_a_writer_is_killed(
    ledger: Ledger, state: StateFolder, program_env: dict[str, str]
) -> None:
    ledger.create_run(a_run(), [])
    writer = (
        "from baton.ledger.state import StateFolder\n"
        "from baton.ledger.store import Ledger\n"
        "ledger = Ledger.open(StateFolder.find())\n"
        "while True:\n"
        "    seq = ledger.append_event('rabcdefgh', 'tick', data={'text': 'x' * 2000})\n"
        "    print(seq, flush=True)\n"
        "    if seq % 3 == 0: ledger.maintain()\n"
    )
    acknowledged = 0
    for wanted in (1, 7, 12):
        argv = [sys.executable, "-c", writer]
        with subprocess.Popen(argv, env=program_env, stdout=subprocess.PIPE) as running:
            assert running.stdout is not None
            for _ in range(wanted):
                acknowledged = int(running.stdout.readline())
            running.kill()
            rest = running.stdout.read().split(b"\n")
            acknowledged = max([acknowledged, *(int(line) for line in rest[:-1])])
        with Ledger.open(state) as again:
            seqs = [event.seq for event in again.events(RUN)]
            assert seqs == list(range(1, len(seqs) + 1))
            assert len(seqs) >= acknowledged
            assert again.maintain()
    assert dump(state.database)


def test_log_does_not_grow_without_bound(
    ledger: Ledger, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAL_BYTES", 200_000)
    monkeypatch.setattr(database, "COMMITS_BETWEEN_LOOKS", 4)
    ledger.create_run(a_run(), [])
    sizes = []
    for _ in range(120):
        ledger.append_event(RUN, "item", data={"text": "x" * 10_000})
        sizes.append(database.wal_of(state.database).stat().st_size)
    assert max(sizes) < 600_000
    assert ledger.last_seq(RUN) == 120


def test_commit_stands_when_the_log_cannot_be_copied_after_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAL_BYTES", 0)
    monkeypatch.setattr(database, "COMMITS_BETWEEN_LOOKS", 1)
    ledger.create_run(a_run(), [])

    def refuse(timeout: float) -> bool:
        raise StateUnavailable("the disk is full")

    monkeypatch.setattr(ledger.db, "maintain", refuse)
    assert ledger.append_event(RUN, "item") == 1
    assert ledger.last_seq(RUN) == 1


def test_ordinary_connections_never_checkpoint(ledger: Ledger) -> None:
    for connection in (ledger.db._writer, ledger.db._reader, ledger.db._watcher):
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "foreign_keys")
        }
        assert settings == {
            "journal_mode": "wal",
            "synchronous": 2,
            "wal_autocheckpoint": 0,
            "foreign_keys": 1,
        }


def test_maintenance_is_left_to_who_holds_its_lock(ledger: Ledger, state: StateFolder) -> None:
    ledger.create_run(a_run(), [])
    with FileLock(state.maintenance_lock):
        assert not ledger.maintain(timeout=0.0)
    assert ledger.maintain()


def test_maintenance_inside_a_transaction_is_refused_without_harm(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    with ledger.transaction():
        ledger.append_event(RUN, "inside")
        assert not ledger.maintain()
    assert ledger.last_seq(RUN) == 1


def test_full_disk_is_said_in_one_line_and_changes_nothing(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    pages = ledger.db._writer.execute("PRAGMA page_count").fetchone()[0]
    ledger.db._writer.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StateUnavailable, match="full; free some space"):
        ledger.update_run(RUN, note="x" * 100_000)
    assert ledger.run(RUN).note is None
    ledger.db._writer.execute("PRAGMA max_page_count = 1000000")
    ledger.update_run(RUN, note="room again")


def test_read_only_database_is_said_in_one_line(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    ledger.db._writer.execute("PRAGMA query_only = ON")
    with pytest.raises(StateUnavailable, match="cannot be written"):
        ledger.update_run(RUN, note="x")


def test_writer_that_never_lets_go_is_said_as_busy(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY_SECONDS", 0.05)
    with Ledger.open(state) as one, Ledger.open(state) as other, one.transaction():
        with pytest.raises(Busy):
            other.create_run(a_run(), [])
        assert not other.maintain(timeout=0.0)
        assert other.runs() == []


def test_newer_schema_stops_an_older_program_with_one_line(state: StateFolder) -> None:
    Ledger.open(state).close()
    connection = sqlite3.connect(state.database)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(StateUnavailable, match="newer Baton") as refused:
        Ledger.open(state)
    assert "\n" not in str(refused.value)
    assert state.database.exists()


@pytest.mark.parametrize("version", range(len(MIGRATIONS)))
def test_older_schema_is_brought_up_and_keeps_its_runs(
    version: int, state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = sqlite3.connect(state.database)
    for number, step in enumerate(MIGRATIONS[:version], start=1):
        step(connection)
        connection.execute(f"PRAGMA user_version = {number}")
    if version:
        connection.execute(
            "INSERT INTO runs (run_id, workspace, repo_key, state, mode, integrate, background, session,"
            " policy, options, program, created_at, updated_at, ended_at)"
            " VALUES ('rold22222', x'2f', 'k', 'done', 'parallel', 'auto', 0, '{}', '{}', '{}', '', 1, 1, 1)"
        )
    connection.commit()
    connection.close()
    with Ledger.open(state) as ledger:
        assert [run.run_id for run in ledger.runs()] == (["rold22222"] if version else [])
        ledger.create_run(a_run(), [a_task()], event=NewEvent(kind="admitted"))


def _garbage(path: Path) -> None:
    path.write_bytes(b"this was never a database " * 1000)


def _broken_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xff" * 64)


def _broken_schema(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xa5" * 2000)


@pytest.mark.parametrize("damage", [_garbage, _broken_header, _broken_schema])
def test_damaged_database_is_set_aside_and_said_once(
    damage: Callable[[Path], None], state: StateFolder
) -> None:
    with Ledger.open(state) as ledger:
        ledger.create_run(a_run(), [])
    damage(state.database)
    left = state.database.read_bytes()
    with pytest.raises(
        StateUnavailable, match=r"damaged .* is kept as .*; the next call starts a new one"
    ) as said:
        Ledger.open(state)
    assert "\n" not in str(said.value)
    (kept,) = [
        path for path in state.root.glob("baton.sqlite3.damaged-*") if path.suffix not in ("-wal", "-shm")
    ]
    assert str(kept) in str(said.value)
    assert kept.read_bytes() == left
    with Ledger.open(state) as ledger:
        assert ledger.runs() == []
        ledger.create_run(a_run(), [])


@pytest.mark.parametrize("garbage", [b"\xa5", b"x", b"\0"])
def test_damage_that_shows_only_later_is_set_aside_by_the_next_opening(
    garbage: bytes, state: StateFolder
) -> None:
    with Ledger.open(state) as ledger:
        ledger.create_run(a_run(), [])
        for _ in range(50):
            ledger.append_event(RUN, "item", data={"text": "x" * 3000})
    size = state.database.stat().st_size
    # The events were written last: what is in front of them, the schema too, stays sound.
    sound = size - 10 * 4096
    with state.database.open("r+b") as file:
        file.seek(sound)
        file.write(garbage * (size - sound))
    with Ledger.open(state) as ledger, pytest.raises(StateUnavailable, match="is damaged") as told:
        ledger.events(RUN)
    assert len(str(told.value)) < 400
    with pytest.raises(StateUnavailable, match="is kept as"):
        Ledger.open(state)
    Ledger.open(state).close()


def test_false_alarm_of_damage_costs_one_examination(state: StateFolder) -> None:
    with Ledger.open(state) as ledger:
        ledger.create_run(a_run(), [])
    mark = state.database.with_name("baton.sqlite3.damaged")
    mark.touch()
    with Ledger.open(state) as ledger:
        assert [run.run_id for run in ledger.runs()] == [RUN]
    assert not mark.exists()


@pytest.mark.parametrize("remains", [None, b""])
def test_database_that_vanished_is_said_once(remains: bytes | None, state: StateFolder) -> None:
    Ledger.open(state).close()
    state.database.unlink()
    if remains is not None:
        state.database.write_bytes(remains)
    with pytest.raises(StateUnavailable, match="vanished or was emptied"):
        Ledger.open(state)
    Ledger.open(state).close()


def test_processes_that_open_a_new_state_at_once_all_succeed(
    state: StateFolder, program_env: dict[str, str]
) -> None:
    opens = (
        "from baton.ledger.state import StateFolder\nfrom baton.ledger.store import Ledger\n"
        "import sys; sys.stdin.read(); Ledger.open(StateFolder.find()).close()\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", opens], env=program_env, stdin=subprocess.PIPE)
        for _ in range(4)
    ]
    for process in running:
        process.communicate(timeout=120)
    assert [process.returncode for process in running] == [0, 0, 0, 0]


def test_files_of_the_database_are_private_under_any_umask(
    state: StateFolder, program_env: dict[str, str]
) -> None:
    program = (
        "import os; os.umask(0)\n"
        "from baton.ledger.state import StateFolder\nfrom baton.ledger.store import Ledger\n"
        "with Ledger.open(StateFolder.find()) as ledger:\n"
        "    print({path.name: oct(path.stat().st_mode & 0o777)"
        " for path in ledger.db.state.root.glob('baton.sqlite3*')})\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program],
        env=program_env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    names = ("baton.sqlite3", "baton.sqlite3-shm", "baton.sqlite3-wal", "baton.sqlite3.created")
    modes = ast.literal_eval(told.stdout)
    assert modes == dict.fromkeys(names, "0o600")


def test_an_examination_beside_an_open_ledger_does_not_cut_it_off_from_the_others(
    ledger: Ledger, state: StateFolder, program_env: dict[str, str]
) -> None:
    ledger.create_run(a_run(), [])
    mark_of_damage(state.database).touch()
    with Ledger.open(state):  # looks at the whole database, in this very process
        pass
    other = (
        "from baton.ledger.state import StateFolder\n"
        "from baton.ledger.store import Ledger\n"
        "with Ledger.open(StateFolder.find()) as ledger:\n"
        "    ledger.append_event('rabcdefgh', 'elsewhere')\n"
    )
    subprocess.run([sys.executable, "-c", other], env=program_env, check=True)
    ledger.append_event(RUN, "here")
    subprocess.run([sys.executable, "-c", other], env=program_env, check=True)
    assert [event.kind for event in ledger.events(RUN)] == ["elsewhere", "here", "elsewhere"]
    assert database.wal_of(state.database).exists()
