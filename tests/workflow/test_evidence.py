"""Which patches apply and which commits hold them: every kind of change, and near misses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.workflow.ground import DoesNotApply
from workflow.driven import git
from workflow.test_ground import ground_of

LINES = "".join(f"line {number}\n" for number in range(1, 13))


@pytest.fixture
def folder(test_root: Path, own_home: Path) -> Path:
    made = test_root / "work"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "text.txt").write_text(LINES)
    (made / "rows.txt").write_text("row\n" * 9)
    (made / "run.sh").write_text("echo\n")
    (made / "crlf.txt").write_bytes(LINES.replace("\n", "\r\n").encode())
    (made / "image.bin").write_bytes(bytes(range(256)) * 8)
    git(made, "add", ".")
    git(made, "commit", "-qm", "first")
    return made


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_bytes()
    assert text.count(old.encode()) == 1
    path.write_bytes(text.replace(old.encode(), new.encode()))


def rename(folder: Path) -> None:
    (folder / "text.txt").rename(folder / "moved name.txt")


def mode(folder: Path) -> None:
    (folder / "run.sh").chmod(0o755)


def binary(folder: Path) -> None:
    (folder / "image.bin").write_bytes(bytes(range(255, -1, -1)) * 8)


def crlf(folder: Path) -> None:
    edit(folder / "crlf.txt", "line 6\r\n", "line six\r\n")


def link(folder: Path) -> None:
    (folder / "link").symlink_to("text.txt")


def option(folder: Path) -> None:
    (folder / "--help").write_text("no option\n")
    (folder / "-rf").write_text("nor this\n")


def empty(folder: Path) -> None:
    (folder / "empty").write_text("")


def gone(folder: Path) -> None:
    (folder / "rows.txt").unlink()


KINDS = [rename, mode, binary, crlf, link, option, empty, gone]


@pytest.mark.parametrize("change", KINDS)
def test_a_change_of_every_kind_is_a_patch_and_a_commit_that_holds_it(
    folder: Path, change: Callable[[Path], None]
) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    before = git(folder, "rev-parse", "HEAD")
    change(folder)
    result = ground.snapshot("result").commit
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "change")
    patch = ground.repo.diff(base, result, binary=True).decode()
    made = ground.patched(base, patch, [], 1)
    assert ground.changed(made, result) == []
    head = ground.commit_given(git(folder, "rev-parse", "HEAD"), before)
    assert ground.holds(head, base, made) is None
    assert ground.holds(before, base, made) is not None
    assert ground.fits(base, made, base) is None


def test_a_repeated_line_that_was_not_added_is_not_taken_for_added(folder: Path) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    (folder / "rows.txt").write_text("row\n" * 10)
    result = ground.snapshot("result").commit
    git(folder, "checkout", "-q", "rows.txt")
    (folder / "other.txt").write_text("beside it\n")
    other = ground.snapshot("other").commit
    assert ground.holds(base, base, result) is not None
    assert ground.holds(other, base, result) is not None
    assert ground.holds(result, base, result) is None


@pytest.mark.parametrize("near", [("line 3\n", "line three\n"), ("line 9\n", "line 9\nline 9.5\n")])
def test_what_the_person_edits_near_a_change_leaves_it_held_and_fitting(
    folder: Path, near: tuple[str, str]
) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    edit(folder / "text.txt", "line 6\n", "line six\n")
    result = ground.snapshot("result").commit
    edit(folder / "text.txt", *near)
    both = ground.snapshot("both").commit
    edit(folder / "text.txt", "line six\n", "line 6\n")
    alone = ground.snapshot("alone").commit
    assert ground.holds(both, base, result) is None
    assert ground.holds(alone, base, result) is not None
    # As `git cherry-pick` takes it.
    assert ground.fits(base, result, alone) is None


def test_a_change_with_more_added_right_beside_it_is_still_held(folder: Path) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    (folder / "text.txt").write_text(LINES + "line 13\n")
    result = ground.snapshot("result").commit
    (folder / "text.txt").write_text("line 0\n" + LINES + "line 13\nline 14\n")
    assert ground.holds(ground.snapshot("more").commit, base, result) is None


def test_a_large_change_is_judged_whole(folder: Path) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    (folder / "large.txt").write_text("".join(f"{number:064x}\n" for number in range(80_000)))
    result = ground.snapshot("result").commit
    assert len(ground.diff(base, result)) < (folder / "large.txt").stat().st_size
    assert ground.fits(base, result, base) is None
    assert ground.holds(result, base, result) is None
    assert ground.holds(base, base, result) is not None


def new_file(path: str, text: str, mode: str = "100644") -> str:
    header = f"diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n"
    return f"{header}@@ -0,0 +1 @@\n+{text}\n"


LINK = "\\ No newline at end of file\n"


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (new_file("link", "/etc/passwd", "120000") + LINK, "the link link leads out"),
        (new_file("link", "../../up", "120000") + LINK, "the link link leads out"),
        (new_file("sub", f"Subproject commit {'1' * 40}", "160000"), "sub is a submodule"),
        (new_file(".GIT/hooks/post-commit", "touch x"), ".GIT/hooks/post-commit"),
        (new_file("a/../../x", "x"), "a/../../x"),
        (new_file("/tmp/baton-absolute", "x"), "tmp/baton-absolute"),
    ],
)
def test_a_patch_that_leads_out_is_refused(folder: Path, patch: str, why: str) -> None:
    ground = ground_of(folder)
    with pytest.raises(DoesNotApply) as refused:
        ground.patched(ground.snapshot("base").commit, patch, ["link", "sub", "*.txt"], 1)
    assert why in refused.value.reason


def test_a_patch_does_not_write_through_a_link(folder: Path, test_root: Path) -> None:
    (test_root / "outside").mkdir()
    (folder / "door").symlink_to(test_root / "outside")
    ground = ground_of(folder)
    with pytest.raises(DoesNotApply, match="door"):
        ground.patched(ground.snapshot("base").commit, new_file("door/x", "x"), [], 1)
    assert list((test_root / "outside").iterdir()) == []


def test_a_branch_whose_name_looks_like_an_id_is_no_commit(folder: Path) -> None:
    (folder / "more.txt").write_text("more\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "more")
    git(folder, "branch", "deadbeef")
    head = git(folder, "rev-parse", "HEAD")
    ground = ground_of(folder)
    with pytest.raises(InvalidInput, match="there is no commit deadbeef"):
        ground.commit_given("deadbeef", None)
    assert ground.commit_given(head[:9].upper(), None) == head


def test_a_patch_with_line_feeds_does_not_fit_a_file_without_them_and_says_so(folder: Path) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    edit(folder / "crlf.txt", "line 6\r\n", "line six\r\n")
    whole = ground.diff(base, ground.snapshot("result").commit)
    with pytest.raises(DoesNotApply, match=r"crlf\.txt ends its lines with CRLF"):
        ground.patched(base, whole.replace("\r\n", "\n"), [], 1)
    assert ground.patched(base, whole, [], 1)
