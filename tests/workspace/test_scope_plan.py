"""What a plan makes writable, keeps read-only, and admits to leave to detection."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.contract.errors import InvalidInput
from baton.contract.scope import ScopePlan
from baton.contract.states import Enforcement
from baton.contract.task import Task
from baton.workspace.scope import read_scope
from baton.workspace.scope_plan import PlanLimits, make_dirs, plan_scope

TREE = [
    "src/a.py",
    "src/b.py",
    "src/api/x.py",
    "src/api/deep/secret",
    "docs/x.md",
    "README.md",
    "lib/src/z.py",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def plan(tree: Path, *allowed: str, forbidden: tuple[str, ...] = (), **rest: object) -> ScopePlan:
    task = Task(objective="x", allowed_files=list(allowed), forbidden_files=list(forbidden))
    limits = rest.pop("limits", None)
    assert not rest and (limits is None or isinstance(limits, PlanLimits))
    return plan_scope(read_scope(task), tree, limits)


def shown(tree: Path, paths: tuple[Path, ...]) -> list[str]:
    return [str(path.relative_to(tree)) for path in paths]


@pytest.mark.parametrize("pattern", ["src/api", "src/api/", "src/api/**", "./src/api"])
def test_a_directory_is_prevented_exactly(tree: Path, pattern: str) -> None:
    made = plan(tree, pattern)
    assert shown(tree, made.write_dirs) == ["src/api"]
    assert made.readonly == () and made.enforcement is Enforcement.PREVENTED and made.why_detected is None


def test_a_file_is_its_directory_with_the_siblings_read_only(tree: Path) -> None:
    made = plan(tree, "src/a.py")
    assert shown(tree, made.write_dirs) == ["src"]
    assert shown(tree, made.readonly) == ["src/api", "src/b.py"]
    assert made.enforcement is Enforcement.DETECTED
    assert made.why_detected == "only detected: new files beside src/a.py"


def test_more_siblings_than_the_limit_are_left_to_detection_and_counted(tree: Path) -> None:
    made = plan(tree, "src/a.py", limits=PlanLimits(siblings=1))
    assert made.readonly == ()
    assert "the other 2 entries of src, too many to make read-only" in (made.why_detected or "")


def test_a_file_inside_an_allowed_directory_adds_nothing(tree: Path) -> None:
    made = plan(tree, "src/", "src/a.py")
    assert made.enforcement is Enforcement.PREVENTED


def test_a_plain_name_is_that_path_at_the_top(tree: Path) -> None:
    for text in ("src", "src/", "./src/"):
        made = plan(tree, text)
        assert shown(tree, made.write_dirs) == ["src"]
        assert made.enforcement is Enforcement.PREVENTED


def test_a_name_at_any_depth_is_writable_wherever_it_exists(tree: Path) -> None:
    made = plan(tree, "**/src")
    assert shown(tree, made.write_dirs) == ["lib/src", "src"]
    assert made.enforcement is Enforcement.PREVENTED
    assert made.readings[0].reading.startswith("the name src at any depth")


def test_a_bare_name_does_not_mean_what_lies_in_dependencies(tree: Path) -> None:
    (tree / "node_modules/x/src").mkdir(parents=True)
    scope = read_scope(Task(objective="x", allowed_files=["**/src"]))
    made = plan_scope(scope, tree, skip=[tree / "node_modules"])
    assert shown(tree, made.write_dirs) == ["lib/src", "src"]


def test_a_pattern_becomes_its_narrowest_literal_directory(tree: Path) -> None:
    made = plan(tree, "src/api/*.py")
    assert shown(tree, made.write_dirs) == ["src/api"]
    assert shown(tree, made.readonly) == ["src/api/deep"]
    assert made.why_detected == "only detected: other files below src/api than src/api/*.py"


def test_missing_directories_are_made_first(tree: Path) -> None:
    made = plan(tree, "new/deep/x.py", "other/")
    assert shown(tree, made.made_dirs) == ["new", "new/deep", "other"]
    assert shown(tree, made.write_dirs) == ["new/deep", "other"]
    make_dirs(made)
    make_dirs(made)
    assert all(path.is_dir() for path in made.write_dirs)


def test_roots_inside_others_are_collapsed_but_for_what_codex_protects(tree: Path) -> None:
    (tree / ".codex").mkdir()
    made = plan(tree, "**", "src/api/", "./.codex/")
    assert shown(tree, made.write_dirs) == [".", ".codex"]


def test_forbidden_entries_stay_read_only_and_the_way_to_them_is_pinned(tree: Path) -> None:
    made = plan(tree, "src/", forbidden=("src/api/deep/secret",))
    assert shown(tree, made.write_dirs) == ["src"]
    assert shown(tree, made.readonly) == ["src/api/deep/secret"]
    assert shown(tree, made.pinned_dirs) == ["src/api", "src/api/deep"]
    assert made.enforcement is Enforcement.PREVENTED
    assert made.writable_roots == tuple(sorted(made.write_dirs + made.pinned_dirs))


def test_a_forbidden_path_that_does_not_exist_yet_is_said_to_be_detected(tree: Path) -> None:
    made = plan(tree, "./src/", forbidden=("src/later.py",))
    assert made.enforcement is Enforcement.DETECTED
    assert "src/later.py" in (made.why_detected or "")
    assert "not there yet" in made.readings[-1].reading


def test_a_forbidden_glob_protects_what_exists(tree: Path) -> None:
    made = plan(tree, "./src/", forbidden=("b.*",))
    assert shown(tree, made.readonly) == ["src/b.py"]
    assert made.enforcement is Enforcement.DETECTED


def test_a_forbidden_path_outside_every_root_is_prevented(tree: Path) -> None:
    assert plan(tree, "./src/", forbidden=("docs/x.md",)).enforcement is Enforcement.PREVENTED


def test_a_root_that_is_forbidden_as_a_whole_is_not_writable(tree: Path) -> None:
    assert plan(tree, "src/api/", forbidden=("./src",)).write_dirs == ()


def test_a_scope_through_a_link_that_leaves_is_refused(
    tree: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (tree / "out").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    (tree / "in").symlink_to("src")
    for pattern, why in (
        ("out/x.py", "leaves"),
        ("./out/", "leaves"),
        ("out/**", "leaves"),
        ("in/a.py", "name the dir"),
    ):
        with pytest.raises(InvalidInput, match=why):
            plan(tree, pattern)


def test_a_scope_through_a_file_is_refused(tree: Path) -> None:
    with pytest.raises(InvalidInput, match=r"needs a directory where src/a\.py is a file"):
        plan(tree, "src/a.py/x")


def test_a_link_or_odd_name_that_cannot_be_protected_is_named(tree: Path) -> None:
    (tree / "src" / "link").symlink_to("a.py")
    Path(os.fsdecode(os.fsencode(tree) + b"/src/\xff")).write_text("")
    why = plan(tree, "src/a.py").why_detected or ""
    assert "the symbolic link src/link" in why and "src/\\xff" in why


def test_too_many_roots_are_widened_and_said(tree: Path) -> None:
    made = plan(tree, "src/api/", "docs/", "./lib/", limits=PlanLimits(roots=2))
    assert len(made.write_dirs) <= 2
    assert "whole parent directories" in (made.why_detected or "")


def test_hidden_files_are_denied_in_the_worktree_and_in_the_workspace(tree: Path, tmp_path: Path) -> None:
    workspace = tmp_path / "per[son]"
    workspace.mkdir()
    (workspace / "config").mkdir()
    (workspace / "config" / "key").write_text("")
    task = Task(objective="x", allowed_files=["src/"], hidden_files=["config/key", "*.pem", "./.env"])
    made = plan_scope(read_scope(task), tree / "src", workspace=workspace)
    assert made.hidden_paths == (workspace / "config" / "key",)
    for glob in ("/**/*.pem", "/**/*.pem/**", "/.env", "/.env/**"):
        assert f"{tree}/src{glob}" in made.hidden_globs
        assert f"{tmp_path}/per[[]son[]]{glob}" in made.hidden_globs


def test_a_read_only_task_has_nothing_writable(tree: Path) -> None:
    task = Task.model_validate({"objective": "x", "changeIntent": "forbidden"})
    made = plan_scope(read_scope(task), tree)
    assert made.write_dirs == () and made.enforcement is Enforcement.PREVENTED


NAMES = ["a", "b", "c.py", "d.md"]
PARTS = st.sampled_from([*NAMES, "*", "**", "*.py", "[ab]"])
PATTERN = st.builds(
    lambda parts, tail: "/".join(parts) + tail,
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "/"]),
)


@settings(max_examples=120, deadline=None)
@given(
    files=st.lists(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join), max_size=10),
    allowed=st.lists(PATTERN, min_size=1, max_size=3),
    forbidden=st.lists(PATTERN, max_size=2),
)
def test_what_is_in_scope_is_writable_and_what_is_out_of_scope_is_not_unless_said(
    tmp_path_factory: pytest.TempPathFactory, files: list[str], allowed: list[str], forbidden: list[str]
) -> None:
    tree = tmp_path_factory.mktemp("tree")
    for name in files:
        path = tree / name
        if not any(above.is_file() for above in path.parents) and not path.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    scope = read_scope(Task(objective="x", allowed_files=allowed, forbidden_files=forbidden))
    try:
        made = plan_scope(scope, tree)
    except InvalidInput:
        return
    for path in tree.rglob("*"):
        if path.is_dir():
            continue
        writable = any(path.is_relative_to(root) for root in made.write_dirs)
        writable = writable and not any(path.is_relative_to(kept) for kept in made.readonly)
        if scope.permits(os.fsencode(path.relative_to(tree))) is None:
            assert writable
        elif writable:
            assert made.enforcement is Enforcement.DETECTED
