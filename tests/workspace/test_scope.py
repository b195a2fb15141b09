"""What a scope permits, and what it refuses at admission."""

from __future__ import annotations

import pytest

from baton.contract.errors import InvalidInput
from baton.contract.states import ChangeIntent
from baton.contract.task import Task
from baton.workspace.scope import Scope, read_scope


def scope_of(
    *allowed: str, forbidden: tuple[str, ...] = (), hidden: tuple[str, ...] = (), intent: str = "required"
) -> Scope:
    return read_scope(
        Task(
            objective="x",
            allowed_files=list(allowed),
            forbidden_files=list(forbidden),
            hidden_files=list(hidden),
            change_intent=ChangeIntent(intent),
        )
    )


def test_forbidden_wins_over_allowed() -> None:
    scope = scope_of("src/", forbidden=("src/vendor", "*.lock"))
    assert scope.permits(b"src/a.py") is None
    assert scope.permits(b"src/vendor/a.py") == "forbidden by src/vendor"
    assert scope.permits(b"src/deep/x.lock") == "forbidden by *.lock"
    assert scope.permits(b"lib/a.py") == "not in allowedFiles"


@pytest.mark.parametrize("path", [b".git/config", b"src/.git/hooks/x", b"src/.GIT", b".git"])
def test_git_is_never_writable_even_when_everything_is_allowed(path: bytes) -> None:
    assert scope_of("**").permits(path) == ".git is never writable"


@pytest.mark.parametrize("name", [".git", ".git/hooks", "src/.git/", "./.GIT/x"])
def test_naming_git_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="never writable"):
        scope_of(name)


def test_what_codex_obeys_needs_a_pattern_that_names_it() -> None:
    assert scope_of("**").permits(b".codex/config.toml") == ".codex needs a pattern that names it"
    assert scope_of("src/").permits(b"src/x/.agents/a") == ".agents needs a pattern that names it"
    assert scope_of(".codex/").permits(b".codex/config.toml") is None
    assert scope_of("**", ".agents/skills").permits(b".agents/skills/a.md") is None
    assert scope_of("**", ".agents/skills").permits(b".codex/rules") is not None


@pytest.mark.parametrize("path", [b"", b"/etc/passwd", b"src/../x", b"./src/a", b"src//a", b"src/"])
def test_a_path_that_is_not_one_inside_the_workspace_is_never_permitted(path: bytes) -> None:
    assert scope_of("**").permits(path) == "not a path inside the workspace"


def test_case_counts_and_names_need_not_be_utf8() -> None:
    assert scope_of("src/").permits(b"Src/a") == "not in allowedFiles"
    assert scope_of("src/").permits(b"src/\xff\xfe") is None


def test_nothing_is_permitted_when_change_is_forbidden() -> None:
    assert scope_of(intent="forbidden").permits(b"a") == "no change is allowed"
    assert scope_of("src/", intent="forbidden").permits(b"src/a") == "no change is allowed"


def test_a_task_that_changes_files_must_say_which() -> None:
    with pytest.raises(InvalidInput, match="allowedFiles: required"):
        scope_of()


def test_a_bad_pattern_is_refused_in_each_list() -> None:
    for name in ("allowed", "forbidden", "hidden"):
        lists = {"allowed_files": ["src"], f"{name}_files": ["/etc"]}
        with pytest.raises(InvalidInput, match=f"{name}Files: pattern '/etc' is absolute"):
            read_scope(Task.model_validate({"objective": "x", **lists}, by_name=True))


def test_hidden_files_are_found_at_any_depth() -> None:
    scope = scope_of("src/", hidden=(".env", "secrets/"))
    assert scope.hides(b".env") and scope.hides(b"a/.env") and scope.hides(b"secrets/k")
    assert not scope.hides(b"secrets")
