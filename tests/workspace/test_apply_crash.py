"""However an apply ends, recovery leaves the old or the new state, and every edit of others."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.contract.errors import BatonError, StateUnavailable, WorkspaceMoved
from baton.workspace import renameat
from baton.workspace import undo as undo_module
from baton.workspace.apply import Outcome, apply, discard_backups, recover, recover_all
from baton.workspace.journal_place import journals, new_journal
from workspace.trees import (
    FILE,
    LINK,
    PROGRAM,
    TREES,
    Files,
    blobs_of,
    changes_between,
    folders_of,
    make_tree,
    read_files,
    read_folders,
)

OLD: Files = {
    b"same": (FILE, b"same"),
    b"edit": (FILE, b"old"),
    b"mode": (FILE, b"mode"),
    b"link": (LINK, b"same"),
    b"gone/x": (FILE, b"x"),
    b"flat/in/y": (FILE, b"y"),
    b"deep": (FILE, b"deep"),
}
NEW: Files = {
    b"same": (FILE, b"same"),
    b"edit": (FILE, b"new"),
    b"mode": (PROGRAM, b"mode"),
    b"link": (FILE, b"a file now"),
    b"flat": (FILE, b"flat"),
    b"deep/er/z": (FILE, b"z"),
    b"new\xff": (LINK, b"nowhere"),
}


class Crash(BaseException):
    """The process is gone: nothing of ours runs afterwards."""


class Countdown:
    """A step hook that crashes at the given step, or does something else there."""

    def __init__(self, steps: int, act: Callable[[], object] | None = None) -> None:
        self.left = steps
        self.act = act
        self.names: list[str] = []

    def __call__(self, name: str) -> None:
        self.names.append(name)
        if self.left == 0:
            self.left -= 1
            if self.act is None:
                raise Crash
            self.act()
        self.left -= 1


def land(root: Path, old: Files, new: Files, step: Callable[[str], None]) -> None:
    apply(root, changes_between(old, new), blobs_of(new), new_journal(root, None, "run"), step=step)


def steps_of(root: Path, old: Files, new: Files) -> list[str]:
    counting = Countdown(-1)
    land(make_tree(root, old), old, new, counting)
    for folder in journals(root, None):
        discard_backups(folder)
    return counting.names


@pytest.fixture(params=["exchange", "aside"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "aside":
        monkeypatch.setattr(renameat, "_function", lambda: None)
    return str(request.param)


def test_a_crash_at_any_step_leaves_old_or_new_after_recovery(tmp_path: Path, way: str) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    committed = names.index("wrote committed")
    for crash_at in range(len(names)):
        make_tree(root, OLD)
        with pytest.raises(Crash):
            land(root, OLD, NEW, Countdown(crash_at))
        recoveries = recover_all(root, None)
        expected = NEW if crash_at >= committed else OLD
        assert read_files(root) == expected, names[crash_at]
        assert read_folders(root) == folders_of(expected), names[crash_at]
        assert not any(recovery.kept for recovery in recoveries)
        assert {each.outcome for each in recover_all(root, None)} <= {Outcome.NOTHING}
        for folder in journals(root, None):
            discard_backups(folder)
        assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_a_crash_at_any_step_of_recovery_is_recovered_as_well(tmp_path: Path, way: str) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    for crash_at in {
        names.index("wrote staged"),
        names.index("did 3"),
        names.index("write committed"),
        len(names) - 1,
    }:
        for again_at in range(40):
            make_tree(root, OLD)
            with pytest.raises(Crash):
                land(root, OLD, NEW, Countdown(crash_at))
            second = Countdown(again_at)
            try:
                recover_all(root, None, step=second)
            except Crash:
                recover_all(root, None)
            assert read_files(root) in (OLD, NEW)
            for folder in journals(root, None):
                discard_backups(folder)
            if second.left > 0:
                break


@settings(max_examples=40, deadline=None)
@given(old=TREES, new=TREES, data=st.data())
def test_any_two_trees_survive_a_crash_at_any_step(
    tmp_path_factory: pytest.TempPathFactory, old: Files, new: Files, data: st.DataObject
) -> None:
    root = tmp_path_factory.mktemp("crash") / "w"
    names = steps_of(root, old, new)
    if not names:
        return
    crash_at = data.draw(st.integers(0, len(names) - 1))
    make_tree(root, old)
    with pytest.raises(Crash):
        land(root, old, new, Countdown(crash_at))
    recover_all(root, None)
    assert read_files(root) == (new if crash_at >= names.index("wrote committed") else old)


def some_edit(root: Path, chance: random.Random, mark: bytes) -> Callable[[], object]:
    """A person's edit of a path that the apply touches, in one of the ways in which editors save."""
    path = root / os.fsdecode(
        chance.choice([b"edit", b"mode", b"gone/x", b"flat", b"deep/er/z", b"same", b"deep"])
    )

    def in_place() -> None:
        if path.is_file() and not path.is_symlink():
            path.write_bytes(mark)

    def by_rename() -> None:
        if path.parent.is_dir() and not path.is_dir():
            (path.parent / ".save~").write_bytes(mark)
            (path.parent / ".save~").rename(path)

    return chance.choice([in_place, by_rename])


@pytest.mark.parametrize("seed", range(10))
def test_an_edit_at_any_moment_is_never_lost(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    for edit_at in range(len(names)):
        make_tree(root, OLD)
        mark = b"edit at %d" % edit_at
        edit = some_edit(root, chance, mark)
        edited: list[Files] = []

        def act(edit: Callable[[], object] = edit, edited: list[Files] = edited) -> None:
            before = read_files(root)
            edit()
            edited.append(
                {path: entry for path, entry in read_files(root).items() if before.get(path) != entry}
            )

        hook = Countdown(edit_at, act)
        crash = (
            Countdown(chance.randrange(edit_at, len(names) + 4)) if chance.random() < 0.5 else Countdown(-1)
        )

        def step(name: str, hook: Countdown = hook, crash: Countdown = crash) -> None:
            hook(name)
            crash(name)

        with contextlib.suppress(BatonError, Crash):
            land(root, OLD, NEW, step)
        recover_all(root, None)
        after = read_files(root)
        ours = {path: after.get(path) for path in edited[0]} if edited else {}
        assert ours == (edited[0] if edited else {}), (seed, names[edit_at])
        # Apart from the edit it is one of the two states, never a mixture.
        rest = {path: entry for path, entry in after.items() if path not in ours}
        states = [{path: entry for path, entry in state.items() if path not in ours} for state in (OLD, NEW)]
        shadowed = [
            path for state in states for path in state if any(below_any(path, other) for other in ours)
        ]
        for state in states:
            for path in shadowed:
                state.pop(path, None)
        assert rest in states, (seed, names[edit_at])
        for folder in journals(root, None):
            discard_backups(folder)


def below_any(path: bytes, other: bytes) -> bool:
    return path.startswith(other + b"/") or other.startswith(path + b"/")


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[4:]
from workspace.test_apply_crash import NEW, OLD, land
left = int(sys.argv[2])
def step(name):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
land(Path(sys.argv[1]), OLD, NEW, step)
"""


@pytest.mark.parametrize("part", range(1, 8))
def test_a_killed_process_leaves_old_or_new_after_recovery(tmp_path: Path, part: int) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    make_tree(root, OLD)
    kill_at = len(names) * part // 8
    program = tmp_path / "killed.py"
    program.write_text(KILLED)
    ended = subprocess.run(
        [sys.executable, program, root, str(kill_at), "--", *sys.path],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    recover_all(root, None)
    expected = NEW if kill_at >= names.index("wrote committed") else OLD
    assert read_files(root) == expected


def test_an_edit_after_a_crash_and_before_recovery_is_kept_and_named(tmp_path: Path) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    make_tree(root, OLD)
    with pytest.raises(Crash):
        land(root, OLD, NEW, Countdown(names.index("write committed")))
    (root / "edit").write_text("mine")
    (recovery,) = recover_all(root, None)
    assert recovery.outcome is Outcome.UNDONE
    assert [kept.path for kept in recovery.kept] == [b"edit"]
    (kept,) = recovery.kept
    assert kept.other is not None and kept.other.read_bytes() == b"old"
    assert read_files(root) == {**OLD, b"edit": (FILE, b"mine")}


def test_an_edit_in_the_middle_of_taking_back_goes_back_to_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    make_tree(root, OLD)
    with pytest.raises(Crash):
        land(root, OLD, NEW, Countdown(names.index("write committed")))
    real = undo_module.exchange
    edited: list[bytes] = []

    def edit_first(slots: int, slot: bytes, folder: int, name: bytes) -> None:
        if name == b"edit" and not edited:
            edited.append(name)
            # Saved by rename: a program that opened the file itself would wait for the exchange.
            (root / "saved").write_text("mine")
            (root / "saved").replace(root / os.fsdecode(name))
        real(slots, slot, folder, name)

    monkeypatch.setattr(undo_module, "exchange", edit_first)
    (recovery,) = recover_all(root, None)
    assert [(kept.path, kept.other and kept.other.read_bytes()) for kept in recovery.kept] == [
        (b"edit", b"old")
    ]
    assert read_files(root) == {**OLD, b"edit": (FILE, b"mine")}


def test_a_torn_last_record_counts_as_not_written(tmp_path: Path) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    make_tree(root, OLD)
    with pytest.raises(Crash):
        land(root, OLD, NEW, Countdown(names.index("wrote committed")))
    (folder,) = journals(root, None)
    record = (folder / "journal").read_bytes()
    (folder / "journal").write_bytes(record[:-5])
    assert [each.outcome for each in recover_all(root, None)] == [Outcome.UNDONE]
    assert read_files(root) == OLD


def test_a_journal_damaged_in_the_middle_is_said_and_left_alone(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "w", OLD)
    land(root, OLD, NEW, lambda name: None)
    (folder,) = journals(root, None)
    record = (folder / "journal").read_bytes()
    (folder / "journal").write_bytes(bytes([record[0] ^ 1]) + record[1:])
    with pytest.raises(StateUnavailable, match="damaged"):
        recover(folder)
    assert (folder / "slots").is_dir()


def test_recovery_of_a_workspace_that_is_gone_keeps_the_journal(tmp_path: Path) -> None:
    root = tmp_path / "w"
    names = steps_of(root, OLD, NEW)
    make_tree(root, OLD)
    with pytest.raises(Crash):
        land(root, OLD, NEW, Countdown(names.index("did 2")))
    root.rename(tmp_path / "moved")
    (folder,) = journals(root, None)
    with pytest.raises(BatonError, match="the unfinished apply stays in"):
        recover(folder)
    (tmp_path / "moved").rename(root)
    recover(folder)
    assert read_files(root) == OLD


def test_an_edit_until_the_last_moment_stays_in_its_place_whatever_else_happens_to_the_file(
    tmp_path: Path,
) -> None:
    root = make_tree(tmp_path / "tree", OLD)

    def person(name: str) -> None:
        if name == "do 0":
            for path in ("edit", "mode", "gone/x"):
                (root / path).write_bytes(b"an edit")
        if name.startswith("undo"):
            # Were the edit anywhere else by now, this would part it from its file.
            assert (root / "edit").read_bytes() == b"an edit"
            assert (root / "gone/x").read_bytes() == b"an edit"

    with pytest.raises(WorkspaceMoved, match="was changed") as moved:
        land(root, OLD, NEW, person)
    assert moved.value.kept == ()
    assert list(journals(root, None)) == []


def test_content_that_is_set_aside_is_named_with_its_place(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", OLD)
    files = sorted(os.fsdecode(path) for path, (mode, _) in OLD.items() if mode == FILE)

    def person(name: str) -> None:
        if name == "write committed":
            (root / "edit").write_bytes(b"written over the result")
            raise OSError(28, "No space left on device")

    with pytest.raises(BatonError, match="edited meanwhile and kept"):
        land(root, OLD, NEW, person)
    assert (root / "edit").read_bytes() == b"written over the result"
    (journal,) = journals(root, None)
    assert any(slot.read_bytes() == b"old" for slot in (journal / "slots").iterdir() if slot.is_file())
    assert {path for path in files if (root / path).exists()} == set(files)
