"""Events and commands between processes: nothing missed, nothing twice, nobody waits in vain."""

from __future__ import annotations

import subprocess
import sys
import threading

import anyio
import pytest

from baton.contract.errors import WrongState
from baton.contract.states import RunState
from baton.ledger.records import CommandState, NewEvent
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_run, a_task

APPEND = """
import sys
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
with Ledger.open(StateFolder.find()) as ledger:
    for number in range(int(sys.argv[2])):
        ledger.append_event("rabcdefgh", "tick", data={"by": sys.argv[1], "number": number})
"""

TAKE_RUN = """
import sys
from baton.contract.errors import WrongState
from baton.contract.states import RunState
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
with Ledger.open(StateFolder.find()) as ledger:
    sys.stdin.read()
    try:
        ledger.update_run("rabcdefgh", expect=[RunState.QUEUED], state=RunState.RUNNING)
        print("mine")
    except WrongState:
        print("taken")
"""


def test_events_of_many_processes_are_all_there_in_one_order(
    ledger: Ledger, program_env: dict[str, str]
) -> None:
    ledger.create_run(a_run(), [])
    processes, each = 4, 25
    running = [
        subprocess.Popen([sys.executable, "-c", APPEND, str(by), str(each)], env=program_env)
        for by in range(processes)
    ]
    assert [process.wait(120) for process in running] == [0] * processes
    events = ledger.events(RUN)
    assert [event.seq for event in events] == list(range(1, processes * each + 1))
    for by in range(processes):
        mine = [event.data["number"] for event in events if event.data["by"] == str(by)]
        assert mine == list(range(each))


def test_of_many_processes_one_takes_the_run(ledger: Ledger, program_env: dict[str, str]) -> None:
    ledger.create_run(a_run(), [])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([sys.executable, "-c", TAKE_RUN], env=program_env, **pipes) for _ in range(4)]
    for process in running:
        process.stdin.close()
        process.stdin = None
    assert sorted(process.communicate(timeout=120)[0] for process in running) == ["mine\n", *["taken\n"] * 3]


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    failures: list[BaseException] = []

    def work(by: int) -> None:
        try:
            for _ in range(20):
                seq = ledger.append_event(RUN, "tick", data={"by": by})
                assert ledger.events(RUN, after=seq - 1, limit=1)[0].data == {"by": by}
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(by,)) for by in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ledger.last_seq(RUN) == 80


def test_events_are_read_on_from_where_one_was(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()])
    kinds = [NewEvent(kind=str(number), task_id="one" if number % 2 else None) for number in range(1, 8)]
    assert ledger.append_events(RUN, kinds) == 7
    assert ledger.append_events(RUN, []) == 0
    assert [event.seq for event in ledger.events(RUN, after=3, limit=2)] == [4, 5]
    assert [event.seq for event in ledger.events(RUN, after=1, task_id="one")] == [3, 5, 7]
    assert ledger.events(RUN, after=7) == []


def test_events_of_one_task_are_found_by_their_index(ledger: Ledger) -> None:
    asked: list[str] = []
    ledger.db._reader.set_trace_callback(asked.append)
    ledger.events(RUN, task_id="one")
    ledger.db._reader.set_trace_callback(None)
    (plan,) = [row["detail"] for sql in asked for row in ledger.db.read(f"EXPLAIN QUERY PLAN {sql}")]
    assert "INDEX events_task (run_id=? AND task_id=? AND seq>?)" in plan


def test_change_is_seen_between_looking_and_waiting(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    version = ledger.data_version()
    assert ledger.events(RUN) == []
    ledger.append_event(RUN, "early")
    assert ledger.wait_for_change(version, 3600) != version


def test_wait_ends_when_another_process_commits(ledger: Ledger, program_env: dict[str, str]) -> None:
    ledger.create_run(a_run(), [])
    version = ledger.data_version()
    with subprocess.Popen([sys.executable, "-c", APPEND, "x", "1"], env=program_env):
        assert ledger.wait_for_change(version, 3600) != version
    assert ledger.last_seq(RUN) == 1


def test_wait_without_a_change_ends_at_its_deadline(ledger: Ledger) -> None:
    version = ledger.data_version()
    assert ledger.wait_for_change(version, 0.05) == version


@pytest.mark.anyio
async def test_async_wait_ends_on_change_and_by_cancellation(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    version = ledger.data_version()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, ledger.append_event, RUN, "tick")
        assert await ledger.changed(version, 3600) != version
    with anyio.move_on_after(0.05) as scope:
        await ledger.changed(ledger.data_version(), 3600)
    assert scope.cancelled_caught


def test_command_is_taken_once_and_again_only_by_a_new_runner(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    first = ledger.post_command(RUN, "integrate", {"tasks": ["one"]})
    second = ledger.post_command(RUN, "cancel")
    taken = ledger.take_commands(RUN)
    assert [(one.command_id, one.action, one.args, one.state) for one in taken] == [
        (first, "integrate", {"tasks": ["one"]}, CommandState.TAKEN),
        (second, "cancel", {}, CommandState.TAKEN),
    ]
    assert ledger.take_commands(RUN) == []
    assert ledger.answer_command(first, {"ok": True})
    assert [one.command_id for one in ledger.take_commands(RUN, again=True)] == [second]


def test_first_answer_stays(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    command = ledger.post_command(RUN, "cancel")
    assert ledger.answer_command(command, {"ok": True})
    assert not ledger.answer_command(command, {"ok": False})
    assert ledger.command(command).result == {"ok": True}


def test_run_that_comes_to_rest_leaves_no_command_unanswered(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    taken, posted = ledger.post_command(RUN, "keep"), None
    ledger.take_commands(RUN)
    posted = ledger.post_command(RUN, "cancel")
    assert ledger.answer_open_commands(RUN, {"state": "done"}) == 2
    assert {ledger.command(one).state for one in (taken, posted)} == {CommandState.ANSWERED}
    assert ledger.answer_open_commands(RUN, {"state": "done"}) == 0


def test_deleted_run_takes_everything_of_its_own_with_it(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [a_task()], event=NewEvent(kind="admitted"))
    ledger.create_run(a_run("rother222"), [a_task("rother222")], event=NewEvent(kind="admitted"))
    command = ledger.post_command(RUN, "cancel")
    with pytest.raises(WrongState):
        ledger.delete_run(RUN)
    ledger.update_run(RUN, state=RunState.DONE)
    ledger.delete_run(RUN)
    assert (ledger.tasks(RUN), ledger.events(RUN)) == ([], [])
    assert len(ledger.events("rother222")) == 1
    assert ledger.post_command("rother222", "cancel") > command
