"""What git says of patches and commits, over real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.engine.house import House
from baton.workflow.ground import DoesNotApply, Ground, out_of_scope, patch_in
from workflow.driven import PATCH, RIGHT, WRONG, git


@pytest.fixture
def folder(test_root: Path, own_home: Path) -> Path:
    made = test_root / "work"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / "calc.py").write_text(WRONG)
    git(made, "add", ".")
    git(made, "commit", "-qm", "first")
    return made


def ground_of(folder: Path) -> Ground:
    with House.open() as house:
        return Ground.open(house, folder, "w1")


def test_a_patch_is_put_on_what_it_was_made_for_and_touches_nothing(folder: Path) -> None:
    ground = ground_of(folder)
    base = ground.snapshot("base").commit
    result = ground.patched(base, PATCH, ["calc.py"], 1)
    assert (folder / "calc.py").read_text() == WRONG and git(folder, "status", "--porcelain") == ""
    assert ground.repo.resolve(ground.ref(1)) == result
    assert "+    return a + b" in ground.diff(base, result)
    assert ground.fits(base, result, base) is None and ground.holds(base, base, result) is not None
    (folder / "calc.py").write_text(RIGHT + "\n\nMORE = 1\n")
    now = ground.snapshot().commit
    # Other changes beside it do not matter.
    assert ground.holds(now, base, result) is None


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        (PATCH.replace("return a - b", "return a / b"), "patch failed: calc.py:1"),
        (PATCH.replace("calc.py", "gone.py"), "gone.py"),
        (PATCH.replace("a/calc.py", "a/../calc.py").replace("b/calc.py", "b/../calc.py"), "../calc.py"),
        (PATCH.replace("calc.py", ".git/config"), ".git/config"),
        ("no patch at all\n", ""),
        (PATCH.replace("    return a + b", "    return a - b"), "changes nothing"),
    ],
)
def test_what_does_not_apply_says_why(folder: Path, patch: str, why: str) -> None:
    ground = ground_of(folder)
    with pytest.raises(DoesNotApply) as refused:
        ground.patched(ground.snapshot("base").commit, patch, [], 1)
    assert why in refused.value.reason and len(refused.value.reason.splitlines()) == 1


def test_wrong_line_counts_alone_do_not_matter(folder: Path) -> None:
    ground = ground_of(folder)
    counted = PATCH.replace("@@ -1,2 +1,2 @@", "@@ -1,9 +1,7 @@")
    assert ground.patched(ground.snapshot("base").commit, counted, [], 1)


def test_a_patch_of_a_folder_below_the_top_stays_in_it(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "calc.py").write_text(WRONG)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "sub")
    ground = ground_of(folder / "sub")
    base = ground.snapshot("base").commit
    result = ground.patched(base, PATCH, ["calc.py"], 1)
    assert ground.changed(base, result) == [b"calc.py"]
    assert "sub/calc.py" in git(folder, f"--git-dir={ground.repo.path}", "diff", "--name-only", base, result)


def test_a_commit_of_converted_files_is_told_by_what_git_sees(folder: Path) -> None:
    (folder / ".gitattributes").write_text("*.py text eol=crlf\n")
    (folder / "calc.py").write_bytes(WRONG.replace("\n", "\r\n").encode())
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "crlf")
    ground = ground_of(folder)
    base = ground.snapshot("base")
    (folder / "calc.py").write_bytes(RIGHT.replace("\n", "\r\n").encode())
    result = ground.snapshot("result").commit
    git(folder, "commit", "-qam", "right")
    head = git(folder, "rev-parse", "HEAD")
    assert ground.holds(head, base.commit, result) is not None
    assert ground.committed(head, base.commit, result, result) is None
    assert ground.committed(str(base.head), base.commit, result, result) is not None


def test_no_filter_of_the_repository_runs(folder: Path, test_root: Path) -> None:
    (folder / ".gitattributes").write_text("*.py filter=mine\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "attributes")
    ran = test_root / "ran"
    for name in ("clean", "smudge", "process"):
        git(folder, "config", f"filter.mine.{name}", f"touch {ran}; cat")
    git(folder, "config", "filter.mine.required", "true")
    (folder / "calc.py").write_text(RIGHT)
    ground = ground_of(folder)
    assert ground.dirty() == ["calc.py"]
    base = ground.snapshot("base").commit
    ground.committed(git(folder, "rev-parse", "HEAD"), base, base, base)
    assert not ran.exists()


@pytest.mark.parametrize("named", ["deadbeef", "main", "--all", "HEAD", "x", "0" * 40])
def test_what_is_no_commit_is_none(folder: Path, named: str) -> None:
    with pytest.raises(InvalidInput, match="commit"):
        ground_of(folder).commit_given(named, None)


def test_scope_and_patches_in_answers() -> None:
    assert out_of_scope([b"src/a.py"], ["src/"]) == []
    assert out_of_scope([b"other.py"], ["src/"]) == ["other.py (not in allowedFiles)"]
    assert out_of_scope([b".git/hooks/x"], []) and out_of_scope([b".codex/baton.toml"], [])
    assert patch_in("Nothing here.") is None
    assert patch_in(f"So:\n```diff\n{PATCH}```\nand\n```sh\nls\n```\n") == PATCH
    assert patch_in(PATCH) == PATCH
