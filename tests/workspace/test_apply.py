"""A result lands as a whole or not at all, and nothing that others wrote is lost."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings

from baton.contract.errors import StateUnavailable, Unsupported, WorkspaceMoved
from baton.contract.tree import Applied, ChangeKind, TreeChange
from baton.workspace import apply as apply_module
from baton.workspace import renameat
from baton.workspace.apply import ApplyFailed, apply, discard_backups
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
    b"keep.txt": (FILE, b"keep"),
    b"src/a.py": (FILE, b"one"),
    b"src/b.py": (FILE, b"two"),
    b"src/deep/c.py": (FILE, b"three"),
}


@pytest.fixture(params=["exchange", "aside"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test with exchange as the system has it, and as if it had none."""
    if request.param == "aside":
        monkeypatch.setattr(renameat, "_function", lambda: None)
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "w", OLD)


def land(root: Path, old: Files, new: Files, **rest: object) -> Applied:
    step = rest.pop("step", lambda name: None)
    assert callable(step) and not rest
    folder = new_journal(root, None, "run")
    return apply(root, changes_between(old, new), blobs_of(new), folder, step=step)


def at(wanted: str, act: Callable[[], object]) -> Callable[[str], None]:
    def step(name: str) -> None:
        if name == wanted:
            act()

    return step


@settings(max_examples=120, deadline=None)
@given(old=TREES, new=TREES)
def test_any_tree_becomes_any_other(tmp_path_factory: pytest.TempPathFactory, old: Files, new: Files) -> None:
    root = make_tree(tmp_path_factory.mktemp("apply") / "w", old)
    land(root, old, new)
    assert read_files(root) == new
    assert read_folders(root) == folders_of(new)


def test_any_tree_becomes_any_other_without_exchange(way: str, tmp_path: Path) -> None:
    @settings(max_examples=60, deadline=None)
    @given(old=TREES, new=TREES)
    def check(old: Files, new: Files) -> None:
        root = make_tree(tmp_path / "w", old)
        done = land(root, old, new)
        assert read_files(root) == new
        if done.backups:
            discard_backups(done.backups)

    check()


@pytest.mark.parametrize(
    ("name", "new"),
    [
        ("edit", {b"src/a.py": (FILE, b"edited")}),
        ("mode only", {b"src/a.py": (PROGRAM, b"one")}),
        ("link for a file", {b"src/a.py": (LINK, b"b.py")}),
        ("directory for a file", {b"src/a.py": None, b"src/a.py/x/y": (FILE, b"y")}),
        ("file for a directory", {b"src/deep/c.py": None, b"src/deep": (FILE, b"flat")}),
        ("link for a directory", {b"src/deep/c.py": None, b"src/deep": (LINK, b"..")}),
        ("new nested", {b"n/e/w/f": (FILE, b"f")}),
        ("all gone", dict.fromkeys(OLD)),
        ("odd name", {b"src/\xff\n": (FILE, b"odd")}),
    ],
)
def test_each_kind_of_change_lands(
    root: Path, way: str, name: str, new: dict[bytes, tuple[int, bytes] | None]
) -> None:
    target = {path: entry for path, entry in {**OLD, **new}.items() if entry is not None}
    done = land(root, OLD, target)
    assert read_files(root) == target
    assert set(new) <= set(done.changed)
    assert read_folders(root) == folders_of(target)


def test_a_rename_is_a_removal_and_an_addition(root: Path) -> None:
    new: Files = {**OLD, b"lib/a.py": (FILE, b"one!")}
    del new[b"src/a.py"]
    gone, came = sorted(changes_between(OLD, new), key=lambda change: change.path, reverse=True)
    rename = TreeChange(
        came.path,
        ChangeKind.RENAMED,
        gone.old_mode,
        came.new_mode,
        gone.old_oid,
        came.new_oid,
        old_path=gone.path,
    )
    apply(root, [rename], blobs_of(new), new_journal(root, None, "run"))
    assert read_files(root) == new


def test_nothing_to_do_leaves_no_trace(root: Path) -> None:
    assert land(root, OLD, OLD) == Applied()
    assert sorted(path.name for path in root.parent.iterdir()) == ["w"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda root: (root / "src/a.py").write_text("mine"), "src/a.py was changed"),
        (lambda root: (root / "src/a.py").unlink(), "src/a.py is gone"),
        (lambda root: (root / "src/a.py").chmod(0o755), "src/a.py was changed"),
        (
            lambda root: ((root / "src/a.py").unlink(), (root / "src/a.py").symlink_to("b.py")),
            "src/a.py was changed",
        ),
        (lambda root: ((root / "src/a.py").unlink(), (root / "src/a.py").mkdir()), "src/a.py was changed"),
        (lambda root: (root / "src/new.py").write_text("mine"), "src/new.py exists"),
        (
            lambda root: (root / "src/new.py").mkdir() or (root / "src/new.py/x").write_text(""),
            "src/new.py/x is in",
        ),
        (lambda root: (root / "made").write_text("mine"), "made is no directory"),
        (lambda root: (root / "made").symlink_to("src"), "made is no directory"),
        (
            lambda root: ((root / "src").rename(root / "real"), (root / "src").symlink_to("real")),
            "src/a.py is gone",
        ),
        (lambda root: os.mkfifo(root / "src/new.py"), "src/new.py exists"),
    ],
)
def test_a_path_that_is_not_as_expected_stops_everything(
    root: Path, edit: Callable[[Path], object], message: str
) -> None:
    new = {
        **OLD,
        b"src/a.py": (FILE, b"1"),
        b"src/new.py": (FILE, b"2"),
        b"made/x": (FILE, b"3"),
        b"0": (FILE, b"4"),
    }
    edit(root)
    before = read_files(root)
    with pytest.raises(WorkspaceMoved, match=message):
        land(root, OLD, new)
    assert read_files(root) == before
    assert not list(journals(root, None))


def test_an_edit_outside_the_touched_paths_is_left_alone(root: Path) -> None:
    (root / "keep.txt").write_text("mine")
    land(root, OLD, {**OLD, b"src/a.py": (FILE, b"new")})
    assert (root / "keep.txt").read_text() == "mine"


@pytest.mark.parametrize("how", ["in place", "by rename", "removed"])
@pytest.mark.parametrize("moment", ["wrote staged", "do 0", "do 1", "do 2", "do 3", "do 4"])
def test_an_edit_before_its_path_is_reached_takes_everything_back(
    root: Path, way: str, how: str, moment: str
) -> None:
    new = {
        **OLD,
        b"src/b.py": (FILE, b"new"),
        b"src/z.py": (FILE, b"z"),
        b"q": (FILE, b"q"),
        b"src/a.py": (FILE, b"q"),
    }
    del new[b"src/deep/c.py"]
    mine = {**OLD, b"src/b.py": (FILE, b"my edit")}

    def edit() -> None:
        if how == "in place":
            (root / "src/b.py").write_text("my edit")
        elif how == "by rename":
            (root / ".save").write_text("my edit")
            (root / ".save").rename(root / "src/b.py")
        else:
            mine.pop(b"src/b.py")
            (root / "src/b.py").unlink()

    with pytest.raises(WorkspaceMoved, match="the workspace is as it was"):
        land(root, OLD, new, step=at(moment, edit))
    assert read_files(root) == mine
    assert read_folders(root) == folders_of(OLD)
    assert not list(journals(root, None))


def test_an_edit_on_top_of_the_new_content_survives_a_later_failure(root: Path, way: str) -> None:
    new = {**OLD, b"src/a.py": (FILE, b"new a"), b"src/b.py": (FILE, b"new b")}

    def edit() -> None:
        (root / "src/a.py").write_text("mine on top")
        (root / "src/b.py").write_text("mine too")

    moment = "did 0" if way == "exchange" else "did 1"
    with pytest.raises(
        WorkspaceMoved, match=r"src/a\.py was edited meanwhile and kept; its earlier content is"
    ) as said:
        land(root, OLD, new, step=at(moment, edit))
    assert (root / "src/a.py").read_text() == "mine on top"
    assert (root / "src/b.py").read_text() == "mine too"
    (kept,) = journals(root, None)
    slot = next(path for path in (kept / "slots").iterdir() if path.read_bytes() == b"one")
    assert str(slot) in said.value.message


def test_a_program_that_goes_on_writing_into_the_old_file_is_noticed(root: Path) -> None:
    with (root / "src/a.py").open("r+") as editor:

        def write() -> None:
            editor.write("written late")
            editor.flush()

        with pytest.raises(WorkspaceMoved, match=r"src/a\.py is being written to"):
            land(root, OLD, {**OLD, b"src/a.py": (FILE, b"new")}, step=at("did 0", write))
    assert (root / "src/a.py").read_text() == "written late"


def test_a_file_that_appears_where_a_new_one_belongs_is_kept(root: Path, way: str) -> None:
    new = {**OLD, b"src/new.py": (FILE, b"new"), b"x/y": (FILE, b"")}
    with pytest.raises(WorkspaceMoved, match=r"src/new\.py appeared"):
        land(root, OLD, new, step=at("wrote staged", lambda: (root / "src/new.py").write_text("mine")))
    assert read_files(root) == {**OLD, b"src/new.py": (FILE, b"mine")}


def test_a_directory_that_is_filled_while_it_goes_is_kept(root: Path, way: str) -> None:
    new = {**OLD, b"src/deep": (FILE, b"flat")}
    del new[b"src/deep/c.py"]
    with pytest.raises(WorkspaceMoved, match="src/deep was filled again"):
        land(root, OLD, new, step=at("do 1", lambda: (root / "src/deep/mine").write_text("mine")))
    assert read_files(root) == {**OLD, b"src/deep/mine": (FILE, b"mine")}


def test_a_directory_with_ignored_files_is_not_removed(root: Path) -> None:
    (root / "src/deep/cache").write_text("ignored")
    new = dict(OLD)
    del new[b"src/deep/c.py"]
    land(root, OLD, new)
    assert (root / "src/deep/cache").read_text() == "ignored"


def test_mode_attributes_and_umask_are_respected(root: Path) -> None:
    (root / "src/a.py").chmod(0o640)
    os.setxattr(root / "src/a.py", "user.note", b"kept")
    before = os.umask(0o027)
    try:
        land(root, OLD, {**OLD, b"src/a.py": (PROGRAM, b"x"), b"n": (FILE, b"n"), b"p": (PROGRAM, b"p")})
    finally:
        os.umask(before)
    assert (root / "src/a.py").stat().st_mode & 0o7777 == 0o750
    assert os.getxattr(root / "src/a.py", "user.note") == b"kept"
    assert (root / "n").stat().st_mode & 0o7777 == 0o640
    assert (root / "p").stat().st_mode & 0o7777 == 0o750


def test_executable_bits_are_ignored_where_git_ignores_them(root: Path) -> None:
    (root / "src/a.py").chmod(0o755)
    new = {**OLD, b"src/a.py": (FILE, b"new")}
    apply(root, changes_between(OLD, new), blobs_of(new), new_journal(root, None, "run"), file_mode=False)
    assert (root / "src/a.py").read_text() == "new"


def test_a_refusing_system_takes_everything_back_in_one_line(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = apply_module.move_to_free

    def refuse(*args: int | bytes) -> None:
        if args[3] == b"z.py":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "z.py")
        real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(apply_module, "move_to_free", refuse)
    new = {**OLD, b"src/b.py": (FILE, b"x"), b"a/z.py": (FILE, b""), b"a/b": (FILE, b"")}
    with pytest.raises(ApplyFailed) as said:
        land(root, OLD, new)
    assert said.value.message == "cannot apply: z.py: No space left on device; the workspace is as it was"
    assert read_files(root) == OLD and read_folders(root) == folders_of(OLD)
    assert not list(journals(root, None))


def test_missing_content_changes_nothing(root: Path) -> None:
    new = {**OLD, b"src/a.py": (FILE, b"x")}
    with pytest.raises(ApplyFailed, match="the workspace is as it was"):
        apply(root, changes_between(OLD, new), blobs_of({}), new_journal(root, None, "run"))
    assert read_files(root) == OLD


def test_a_submodule_is_refused(root: Path) -> None:
    change = TreeChange(b"sub", ChangeKind.MODIFIED, 0o160000, 0o160000, "1" * 40, "2" * 40)
    with pytest.raises(Unsupported, match="submodule"):
        apply(root, [change], blobs_of({}), new_journal(root, None, "run"))


def test_the_index_stays_as_it_was_and_backups_do_not_show_in_git(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "w", OLD)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*words: str) -> bytes:
        return subprocess.run(
            ["git", *words],
            cwd=root,
            check=True,
            capture_output=True,
            env=environment,
            stdin=subprocess.DEVNULL,
        ).stdout

    git("init", "-q")
    git("add", "src")
    index = (root / ".git/index").read_bytes()
    new = {**OLD, b"src/a.py": (FILE, b"new")}
    folder = new_journal(root, root / ".git", "run")
    done = apply(root, changes_between(OLD, new), blobs_of(new), folder)
    assert (root / ".git/index").read_bytes() == index
    assert done.backups is not None and (done.backups / "slots/0").read_bytes() == b"one"
    assert git(
        "status", "--porcelain", "-z"
    ) == b"A  src/b.py\0A  src/deep/c.py\0AM src/a.py\0?? keep.txt\0" or (
        set(git("status", "--porcelain", "-z").split(b"\0"))
        == {b"", b"A  src/b.py", b"A  src/deep/c.py", b"AM src/a.py", b"?? keep.txt"}
    )
    assert list(journals(root, root / ".git")) == [folder]
    assert new_journal(root, root / ".git", "run") == folder.with_name("run-2")
    discard_backups(folder)
    assert not list(journals(root, root / ".git"))


def test_a_journal_is_beside_a_plain_folder(root: Path) -> None:
    assert new_journal(root, None, "run") == root.parent / ".w.baton-journal" / "run"


def test_backups_of_an_unfinished_apply_cannot_be_discarded(root: Path) -> None:
    class Stop(BaseException):
        pass

    def stop() -> None:
        raise Stop

    folder = new_journal(root, None, "run")
    with pytest.raises(Stop):
        land(root, OLD, {**OLD, b"src/a.py": (FILE, b"new")}, step=at("did 0", stop))
    with pytest.raises(StateUnavailable, match="unfinished"):
        discard_backups(folder)
