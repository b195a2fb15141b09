"""What may be read, as the paths that a sandbox shows: no more than the patterns, or it says so."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.contract.errors import InvalidInput
from baton.contract.states import Enforcement
from baton.workspace.scope_visible import MAX_VISIBLE, Visible, covers, plan_visible, read_patterns


def _plan(folder: Path, *patterns: str) -> Visible:
    return plan_visible(read_patterns(patterns), folder)


def _make(folder: Path, *paths: str) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)


def _shown(folder: Path, visible: Visible) -> list[str]:
    return [os.fsdecode(os.path.relpath(path, folder)) for path in visible.paths]


def test_directories_are_shown_as_a_whole_and_files_one_by_one(tmp_path: Path) -> None:
    _make(tmp_path, "src/a.py", "src/deep/b.py", "docs/n.md", "docs/n.txt", "README.md", "lib/README.md")
    visible = _plan(tmp_path, "src", "docs/*.md", "README.md")
    assert _shown(tmp_path, visible) == ["README.md", "docs/n.md", "src"]
    assert visible.wider is None
    assert {reading.enforcement for reading in visible.readings} == {Enforcement.PREVENTED}
    assert {reading.role for reading in visible.readings} == {"readable"}


def test_everything_is_the_workspace_itself(tmp_path: Path) -> None:
    _make(tmp_path, "a")
    assert _plan(tmp_path, "**").paths == (tmp_path,)


def test_links_and_git_are_never_shown(tmp_path: Path) -> None:
    _make(tmp_path, "src/a.py", ".git/config", "sub/.git")
    (tmp_path / "src" / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "links").symlink_to("/etc")
    visible = _plan(tmp_path, "src/*.py", "links", "**/config", "**/.git")
    assert _shown(tmp_path, visible) == ["src/a.py"]


def test_too_many_files_are_shown_by_their_directory_and_said_to_be_only_detected(tmp_path: Path) -> None:
    _make(tmp_path, *(f"src/{number}.py" for number in range(MAX_VISIBLE + 1)), "src/x.txt", "other/y.py")
    visible = _plan(tmp_path, "src/*.py")
    assert _shown(tmp_path, visible) == ["src"]
    assert visible.wider == "the files are too many to show one by one: everything below src can be read"
    assert visible.readings[0].enforcement is Enforcement.DETECTED


@pytest.mark.parametrize("patterns", [("gone",), ("src/*.rs",), ("link",)])
def test_nothing_to_read_is_refused(tmp_path: Path, patterns: tuple[str, ...]) -> None:
    _make(tmp_path, "src/a.py")
    (tmp_path / "link").symlink_to("src")
    with pytest.raises(InvalidInput, match="files: nothing in the workspace matches"):
        _plan(tmp_path, *patterns)


_NAMES = st.sampled_from(["a", "b", "c.py", "d.py"])
_PATHS = st.lists(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8, unique=True)
_PATTERNS = st.lists(
    st.sampled_from(["a", "a/b", "*.py", "a/*.py", "**/b", "**/c.py", "a/**", "b/c.py", "./d.py"]),
    min_size=1,
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_PATHS, _PATTERNS)
def test_exactly_what_the_patterns_cover_lies_in_what_is_shown(
    tmp_path: Path, paths: list[str], patterns: list[str]
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    files = [path for path in paths if not any(other.startswith(path + "/") for other in paths)]
    _make(folder, *files)
    read = read_patterns(patterns)
    covered = {path for path in files if covers(read, path.encode())}
    if not covered:
        with pytest.raises(InvalidInput):
            plan_visible(read, folder)
        return
    shown = plan_visible(read, folder).paths
    assert {path for path in files if any((folder / path).is_relative_to(one) for one in shown)} == covered
