"""Where material comes from: pinned commits, allowed folders, repositories that are out of the ordinary."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from baton.contract.errors import InvalidInput, NotAllowed, Unsupported, WorkspaceMoved
from consult.secret_maker import WORD, Maker
from review.conftest import Desk, git, repository


def prompt_of(desk: Desk, **arguments: Any) -> str:
    desk.reviewed(**arguments)
    return desk.script.prompts("codex")[-1]


def moved(desk: Desk, plan: dict[str, Any]) -> str:
    """The refusal to run a plan whose material is another one by now."""
    error = desk.refuses("run", plan["reviewId"], confirm=plan["confirm"])
    assert isinstance(error, WorkspaceMoved)
    assert "plan again" in error.message
    return error.message


def add_submodule(folder: Path, source: Path) -> None:
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "lib")


# -- forms of a diff -------------------------------------------------------------------------------


def test_two_dots_compare_the_commits_three_the_merge_base(desk: Desk) -> None:
    git(desk.folder, "switch", "-q", "main")
    (desk.folder / "other.py").write_text("x = 1\n")
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "elsewhere")
    assert desk.plan(diffRef="main..work")["files"] == ["calc.py", "other.py"]
    assert desk.plan(diffRef="main...work")["files"] == ["calc.py"]


def test_single_commit_is_compared_with_its_first_parent(desk: Desk) -> None:
    assert desk.plan(diffRef="work")["files"] == ["calc.py"]
    assert desk.plan(diffRef="main")["files"] == ["readme.md"]


def test_first_commit_is_compared_with_nothing(desk: Desk) -> None:
    plan = desk.plan(diffRef="main~1")
    assert plan["files"] == ["calc.py"]
    assert plan["scope"]["from"] == "(nothing before it)"


def test_side_that_is_left_out_is_the_head(desk: Desk) -> None:
    assert desk.plan(diffRef="main..")["scope"]["to"] == git(desk.folder, "rev-parse", "work")[:12]


@pytest.mark.parametrize(
    "ref",
    ["", "..", "a..b..c", "--output=x..work", "-p", "main:calc.py", "no-such..work", "main\n..work", "*"],
)
def test_what_is_no_diff_is_refused(desk: Desk, ref: str) -> None:
    assert isinstance(desk.refuses_plan(diffRef=ref), InvalidInput)


def test_only_committed_changes_are_sent(desk: Desk) -> None:
    (desk.folder / "calc.py").write_text("UNCOMMITTED\n")
    assert "UNCOMMITTED" not in prompt_of(desk)


def test_paths_limit_a_diff(desk: Desk) -> None:
    assert desk.plan(diffRef="main~1..work", paths=["readme.md"])["files"] == ["readme.md"]
    assert isinstance(desk.refuses_plan(paths=["../elsewhere"]), InvalidInput)


def test_nothing_to_review_is_refused(desk: Desk) -> None:
    assert "nothing differs" in desk.refuses_plan(diffRef="work..work").message
    assert "material" in desk.refuses("plan", goal="Is it right?").message


# -- between the plan and the run ------------------------------------------------------------------


def test_branch_that_moved_voids_the_plan(desk: Desk) -> None:
    plan = desk.plan()
    (desk.folder / "calc.py").write_text("def add(a, b):\n    return b\n")
    git(desk.folder, "commit", "-qam", "more")
    assert "names other commits" in moved(desk, plan)


def test_force_push_voids_the_plan_even_when_the_old_commits_are_gone(desk: Desk) -> None:
    plan = desk.plan()
    git(desk.folder, "commit", "-q", "--amend", "-m", "rewritten")
    git(desk.folder, "reflog", "expire", "--expire=now", "--all")
    git(desk.folder, "gc", "-q", "--prune=now")
    assert "names other commits" in moved(desk, plan)


def test_branch_that_was_deleted_voids_the_plan(desk: Desk) -> None:
    plan = desk.plan()
    git(desk.folder, "switch", "-q", "main")
    git(desk.folder, "branch", "-qD", "work")
    moved(desk, plan)


def test_merge_base_that_moved_voids_the_plan(desk: Desk) -> None:
    plan = desk.plan(diffRef="main...work")
    git(desk.folder, "branch", "-f", "main", "main~1")
    moved(desk, plan)


def test_file_that_was_edited_since_voids_the_plan(desk: Desk) -> None:
    plan = desk.review("plan", goal="Is it right?", paths=["calc.py"])
    (desk.folder / "calc.py").write_text("other = 1\n")
    assert "calc.py" in moved(desk, plan)


def test_branch_that_moved_and_came_back_is_as_planned(desk: Desk) -> None:
    plan = desk.plan()
    git(desk.folder, "commit", "-q", "--allow-empty", "-m", "gone again")
    git(desk.folder, "reset", "-q", "--soft", "HEAD~1")
    assert desk.run(plan)["state"] == "awaiting_synthesis"


# -- folders ---------------------------------------------------------------------------------------


def test_repository_outside_the_roots_is_refused(desk: Desk, test_root: Path) -> None:
    repository(test_root / "other")
    error = desk.refuses_plan(repository=str(test_root / "other"))
    assert isinstance(error, NotAllowed)
    assert "review.roots" in error.message


def test_subfolder_of_a_repository_outside_the_roots_is_refused(desk: Desk) -> None:
    inner = desk.folder / "inner"
    inner.mkdir()
    desk.add_policy(f'roots = ["{inner}"]\n')
    assert "top folder" in desk.refuses_plan(repository=str(inner)).message


def test_git_directory_outside_the_roots_is_refused(desk: Desk, test_root: Path) -> None:
    shutil.move(desk.folder / ".git", test_root / "elsewhere.git")
    (desk.folder / ".git").write_text(f"gitdir: {test_root / 'elsewhere.git'}\n")
    assert "git data" in desk.refuses_plan().message


def test_linked_worktree_of_a_repository_outside_the_roots_is_refused(desk: Desk, test_root: Path) -> None:
    repository(test_root / "other")
    git(test_root / "other", "worktree", "add", "-q", str(desk.folder / "linked"), "main")
    desk.add_policy(f'roots = ["{desk.folder / "linked"}"]\n')
    assert "git data" in desk.refuses_plan(repository=str(desk.folder / "linked")).message


def test_borrowed_objects_outside_the_roots_are_refused(desk: Desk, test_root: Path) -> None:
    repository(test_root / "other")
    shared = desk.folder / "shared"
    git(test_root, "clone", "-q", "--shared", str(test_root / "other"), str(shared))
    error = desk.refuses_plan(repository=str(shared), diffRef="HEAD")
    assert "git data" in error.message


def test_link_that_leads_out_of_the_roots_is_refused(desk: Desk, test_root: Path) -> None:
    repository(test_root / "other")
    (desk.folder / "link").symlink_to(test_root / "other")
    assert isinstance(desk.refuses_plan(repository=str(desk.folder / "link")), NotAllowed)
    (test_root / "secret.txt").write_text("x\n")
    (desk.folder / "file").symlink_to(test_root / "secret.txt")
    assert isinstance(desk.refuses("plan", goal="g", paths=["file"]), NotAllowed)


# -- what a repository could make git do -----------------------------------------------------------


def test_no_program_of_the_repository_runs(desk: Desk, test_root: Path) -> None:
    ran = test_root / "ran"
    program = test_root / "program.sh"
    program.write_text(f'#!/bin/sh\ntouch {ran}\ncat "$1" 2>/dev/null\n')
    program.chmod(0o755)
    for name in ("diff.external", "diff.evil.textconv", "diff.evil.command", "core.fsmonitor", "core.pager"):
        git(desk.folder, "config", name, str(program))
    git(desk.folder, "config", "diff.noprefix", "true")
    (desk.folder / ".git" / "info" / "attributes").write_text("* diff=evil\n")
    assert "+    return a - b" in prompt_of(desk)
    assert not ran.exists()


def test_replaced_objects_are_not_looked_at(desk: Desk) -> None:
    blob = git(desk.folder, "rev-parse", "work:calc.py")
    other = desk.folder / "other.txt"
    other.write_text("REPLACED\n")
    git(desk.folder, "replace", blob, git(desk.folder, "hash-object", "-w", "other.txt"))
    assert "REPLACED" not in prompt_of(desk)


def test_shallow_clone_says_what_is_missing(desk: Desk, test_root: Path) -> None:
    shallow = desk.folder / "shallow"
    git(desk.folder, "clone", "-q", "--depth=1", "--branch=work", f"file://{desk.folder}", str(shallow))
    error = desk.refuses_plan(repository=str(shallow), diffRef="HEAD")
    assert isinstance(error, Unsupported)
    assert "shallow" in error.message
    assert "shallow" in desk.refuses_plan(repository=str(shallow), diffRef="HEAD~1..HEAD").message


def test_partial_clone_fetches_nothing(desk: Desk) -> None:
    git(desk.folder, "config", "uploadpack.allowFilter", "true")
    partial = desk.folder / "partial"
    lean = ("--filter=blob:none", "--no-checkout", "--branch=work")
    git(desk.folder, "clone", "-q", *lean, f"file://{desk.folder}", str(partial))
    error = desk.refuses_plan(repository=str(partial), diffRef="HEAD")
    assert isinstance(error, Unsupported)
    assert "partial clone" in error.message


def test_submodule_is_named_and_its_content_is_not_sent(desk: Desk, test_root: Path) -> None:
    repository(test_root / "library")
    add_submodule(desk.folder, test_root / "library")
    git(desk.folder, "commit", "-qm", "a submodule")
    plan = desk.plan(diffRef="HEAD")
    assert any("submodule" in note for note in plan["notes"])
    desk.run(plan)
    sent = desk.script.prompts("codex")[-1]
    assert "+Subproject commit" in sent
    assert "def add" not in sent


def test_repository_inside_a_submodule_is_one_of_its_own(desk: Desk, test_root: Path) -> None:
    repository(test_root / "library")
    add_submodule(desk.folder, test_root / "library")
    assert desk.plan(repository=str(desk.folder / "lib"), diffRef="HEAD")["files"] == ["calc.py"]


def test_binary_files_are_named_alone(desk: Desk) -> None:
    (desk.folder / "data.bin").write_bytes(bytes(range(256)) * 8)
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "data")
    plan = desk.plan(diffRef="HEAD")
    assert any("binary" in note for note in plan["notes"])


def test_too_much_material_is_refused(desk: Desk) -> None:
    desk.add_policy("max_material_bytes = 100\n")
    assert "max_material_bytes" in desk.refuses_plan().message


def test_plain_folder_has_no_diff(desk: Desk, test_root: Path) -> None:
    shutil.rmtree(desk.folder / ".git")
    assert "no git repository" in desk.refuses_plan().message


def test_files_and_text_are_material_too(desk: Desk) -> None:
    done = desk.review("plan", goal="Is it right?", paths=["calc.py"], context="It must add.")
    assert [one["label"] for one in done["material"]] == ["context", "calc.py"]
    desk.run(done)
    sent = desk.script.prompts("codex")[-1]
    assert "It must add." in sent
    assert "return a - b" in sent


# -- credentials -----------------------------------------------------------------------------------


def with_key(desk: Desk, seed: int = 1) -> str:
    key = Maker(seed).of(WORD, 32)
    (desk.folder / "settings.py").write_text(f'api_key = "{key}"\n')
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "settings")
    return key


def test_code_with_a_credential_is_sent_only_when_that_is_said_and_never_rewritten(desk: Desk) -> None:
    key = with_key(desk)
    plan = desk.plan(diffRef="HEAD")
    (place,) = plan["secrets"]
    assert place.startswith("diff:")
    assert key not in str(plan)
    assert "secrets=send" in plan["next"]
    error = desk.refuses("run", plan["reviewId"], confirm=plan["confirm"])
    assert "credentials" in error.message
    assert key not in error.message
    desk.run(plan, secrets="send")
    assert f'+api_key = "{key}"' in desk.script.prompts("codex")[-1]


def test_policy_can_refuse_credentials_altogether(desk: Desk) -> None:
    with_key(desk)
    desk.add_policy('secrets = "refuse"\n')
    assert "review.secrets" in desk.refuses_plan(diffRef="HEAD").message


def test_credentials_in_prose_are_masked_and_the_plan_says_so(desk: Desk) -> None:
    key = "ghp_" + Maker(2).of(WORD, 36)
    plan = desk.plan(
        goal=f"Does it still work with {key}?", context=f"The robot logs in with {key} each night."
    )
    assert plan["masked"] == ["GitHub token", "GitHub token"]
    assert plan["secrets"] == []
    desk.run(plan)
    sent = desk.script.prompts("codex")[-1]
    assert key not in sent
    assert sent.count("[masked: GitHub token]") == 2
    assert key not in str(desk.house.ledger.review(plan["reviewId"]))


def test_patch_given_as_text_is_not_prose(desk: Desk) -> None:
    key = "ghp_" + Maker(3).of(WORD, 36)
    patch = f"--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-token = None\n+token = '{key}'\n"
    plan = desk.review("plan", goal="Is it right?", context=patch)
    assert plan["secrets"] == ["context:5 GitHub token"]
    assert isinstance(desk.refuses("run", plan["reviewId"], confirm=plan["confirm"]), NotAllowed)


def test_random_looking_line_is_a_suspect_and_blocks_nothing(desk: Desk) -> None:
    (desk.folder / "data.txt").write_text(f"{Maker(4).of(WORD, 40)}\n")
    git(desk.folder, "add", ".")
    git(desk.folder, "commit", "-qm", "data")
    plan = desk.plan(diffRef="HEAD")
    assert len(plan["suspects"]) == 1
    assert desk.run(plan)["state"] == "awaiting_synthesis"


def test_credential_in_the_persons_own_policy_does_not_leave_either(desk: Desk) -> None:
    key = "ghp_" + Maker(5).of(WORD, 36)
    desk.policy.write_text(desk.policy.read_text() + f'checklist = ["never log {key}"]\n')
    desk.add_policy(f'[consult.personas]\nkeeper = "Look for {key} in it."\n')
    plan = desk.plan(persona="keeper")
    assert plan["masked"] == ["GitHub token"] * 2
    desk.run(plan)
    assert key not in desk.script.prompts("codex")[-1]
