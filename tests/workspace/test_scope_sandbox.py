"""What a plan calls prevented is prevented by the real sandbox, and by nothing less than the whole plan."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from baton.contract.scope import ScopePlan
from baton.contract.states import Enforcement
from baton.contract.task import Task
from baton.workspace.scope import read_scope
from baton.workspace.scope_plan import make_dirs, plan_scope

pytestmark = pytest.mark.codex

TREE = [
    "src/a.py",
    "src/b.py",
    "src/api/deep/secret",
    "src/api/x.py",
    "docs/x.md",
    ".codex/config.toml",
    "key.pem",
]


@pytest.fixture(scope="module")
def codex(codex_binary: Path) -> Path:
    return codex_binary


@pytest.fixture
def tree(test_root: Path) -> Path:
    top = test_root / "tree"
    for name in TREE:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    return top


def plan(tree: Path, *allowed: str, **lists: list[str]) -> ScopePlan:
    task = Task.model_validate({"objective": "x", "allowed_files": list(allowed), **lists}, by_name=True)
    made = plan_scope(read_scope(task), tree)
    make_dirs(made)
    return made


def succeeds(codex: Path, tree: Path, made: ScopePlan, script: str, cwd: Path | None = None) -> bool:
    entries: list[dict[str, object]] = [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
        *({"path": {"type": "path", "path": str(path)}, "access": "write"} for path in made.writable_roots),
        *({"path": {"type": "path", "path": str(path)}, "access": "read"} for path in made.readonly),
        *({"path": {"type": "path", "path": str(path)}, "access": "deny"} for path in made.hidden_paths),
        *(
            {"path": {"type": "glob_pattern", "pattern": glob}, "access": "deny"}
            for glob in made.hidden_globs
        ),
    ]
    state = {
        "permissionProfile": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": entries},
            "network": "restricted",
        },
        "sandboxCwd": (cwd or tree).as_uri(),
    }
    argv = [codex, "sandbox", "--sandbox-state-json", json.dumps(state), "--", "sh", "-c", script]
    done = subprocess.run(
        argv, cwd=cwd or tree, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60
    )
    return done.returncode == 0


def test_a_file_scope_lets_its_file_be_changed_and_no_existing_sibling(codex: Path, tree: Path) -> None:
    made = plan(tree, "src/a.py")
    assert succeeds(codex, tree, made, "echo x > src/a.py")
    assert succeeds(codex, tree, made, "rm src/a.py && echo y > src/a.py")
    for attempt in (
        "echo x > src/b.py",
        "rm src/b.py",
        "mv src/b.py src/c",
        "mv src/api src/c",
        "echo > src/api/x.py",
    ):
        assert not succeeds(codex, tree, made, attempt), attempt
    assert not succeeds(codex, tree, made, "echo x > docs/x.md")


def test_a_forbidden_file_cannot_be_moved_away_with_its_directory(codex: Path, tree: Path) -> None:
    made = plan(tree, "./src/", forbidden_files=["src/api/deep/secret"])
    assert made.enforcement is Enforcement.PREVENTED
    for attempt in (
        "echo x > src/api/deep/secret",
        "rm src/api/deep/secret",
        "mv src/api/deep src/api/d",
        "mv src/api src/c",
        "ln -f src/a.py src/api/deep/secret",
    ):
        assert not succeeds(codex, tree, made, attempt), attempt
    assert (tree / "src/api/deep/secret").read_text() == "src/api/deep/secret"
    assert succeeds(
        codex, tree, made, "echo x > src/api/deep/new && echo x > src/api/new && mv src/a.py src/api/y"
    )


def test_the_whole_workspace_leaves_out_what_codex_obeys_unless_it_is_named(codex: Path, tree: Path) -> None:
    assert not succeeds(codex, tree, plan(tree, "**"), "echo x > .codex/config.toml")
    assert succeeds(codex, tree, plan(tree, "**", "./.codex/"), "echo x > .codex/config.toml && echo x > new")


def test_a_missing_directory_is_there_when_the_worker_starts(codex: Path, tree: Path) -> None:
    made = plan(tree, "new/deep/", "other/x.py")
    assert succeeds(codex, tree, made, "echo x > new/deep/a && mkdir new/deep/er && echo x > other/x.py")
    assert not succeeds(codex, tree, made, "echo x > new/a")


def test_hidden_files_cannot_be_read(codex: Path, tree: Path) -> None:
    (tree / "src/inner.pem").write_text("secret")
    made = plan(tree, "./src/", hidden_files=["*.pem", "docs/x.md", "src/[a]pi/deep/"])
    for attempt in ("cat key.pem", "cat src/inner.pem", "cat docs/x.md", "cat src/api/deep/secret"):
        assert not succeeds(codex, tree, made, attempt), attempt
    assert succeeds(codex, tree, made, "cat src/api/x.py src/a.py")


@pytest.mark.parametrize("hidden", [["api/"], ["*/api/"], ["s*/a*/deep/*"], ["**/deep/", "*.pem"]])
def test_a_command_that_starts_in_a_hidden_folder_reads_nothing_of_it(
    codex: Path, tree: Path, hidden: list[str]
) -> None:
    made = plan(tree, "docs/", hidden_files=hidden)
    inside = tree / "src/api/deep"
    for attempt in ("cat secret", f"cat {inside}/secret", "cd .. && cat deep/secret"):
        assert not succeeds(codex, tree, made, attempt, cwd=inside), attempt
    assert succeeds(codex, tree, made, "cat src/a.py")


def test_a_hidden_folder_and_a_pattern_that_matches_in_it_can_both_be_had(codex: Path, tree: Path) -> None:
    (tree / "src/api/key.pem").write_text("secret")
    made = plan(tree, "docs/", hidden_files=["./src/api/", "*.pem"])
    for attempt in ("cat src/api/x.py", "cat src/api/key.pem", "cat key.pem"):
        assert not succeeds(codex, tree, made, attempt), attempt
    assert succeeds(codex, tree, made, "cat src/a.py")
