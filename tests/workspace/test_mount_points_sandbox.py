"""With its mount points there the real sandbox makes and removes none, and holds them as it holds its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.contract.task import Task
from baton.contract.tree import Capture
from baton.workspace import capture as capturing
from baton.workspace import warm
from baton.workspace import watcher as watching
from baton.workspace.create import MOUNT_POINTS
from baton.workspace.pool import Lease, WorktreePool
from baton.workspace.repository import PrivateRepository
from baton.workspace.scope import read_scope
from baton.workspace.scope_plan import make_dirs, plan_scope
from baton.workspace.watcher import Watcher

pytestmark = pytest.mark.codex

ATTEMPTS = (
    *("touch $at/x", "mkdir $at/x", "ln $file $at/x", "rmdir $at", "rm -rf $at", "mv $at $at-away"),
    *("mkdir $at", "chmod 700 $at", "ln -s / $at/x", "umount $at", "unshare -rm umount $at"),
)


class Desk:
    """A worker's worktree, and its commands in the sandbox that its scope makes."""

    def __init__(self, repo: PrivateRepository, pool: WorktreePool, codex: Path, temporary: Path) -> None:
        self.repo, self.pool, self.codex = repo, pool, codex
        self.temporary = temporary / "tmp"
        self.temporary.mkdir()
        self.base = repo.snapshot("refs/runs/r1/base").commit
        pool.lease(self.base).give_back()
        self.roots: tuple[Path, ...] = ()
        self.lease: Lease | None = None

    def begin(self, *allowed: str, made: bool = True) -> Path:
        self.lease = self.pool.lease(self.base)
        tree = self.lease.worktree
        task = Task.model_validate({"objective": "x", "allowed_files": list(allowed)}, by_name=True)
        plan = plan_scope(read_scope(task), tree.cwd)
        make_dirs(plan)
        self.roots = (tree.slot, *plan.writable_roots)
        self.lease.prepared(sandboxed=self.roots if made else ())
        return tree.root

    def start(self, script: str) -> subprocess.Popen[str]:
        assert self.lease is not None
        root = self.lease.worktree.root
        access = {"/": "read", **{str(path): "write" for path in self.roots[:1]}, str(root): "read"}
        access |= {str(path): "write" for path in self.roots[1:]}
        entries = [{"path": {"type": "path", "path": path}, "access": held} for path, held in access.items()]
        profile = {"type": "managed", "file_system": {"type": "restricted", "entries": entries}}
        state = {
            "permissionProfile": {**profile, "network": "restricted"},
            "sandboxCwd": root.as_uri(),
        }
        return subprocess.Popen(
            [self.codex, "sandbox", "--sandbox-state-json", json.dumps(state), "--", "sh", "-c", script],
            cwd=root,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def run(self, script: str) -> str:
        said, _ = self.start(script).communicate(timeout=60)
        return said

    def end(self) -> Capture:
        assert self.lease is not None
        aside = self.temporary / "aside"
        found = self.repo.capture(self.lease.worktree, self.base, "refs/runs/r1/t/1", aside, self.roots)
        self.lease.give_back()
        assert not (found.ignored or found.nested or found.unsupported)
        return found


@pytest.fixture
def desk(person, open_repository, state, codex_binary, test_root) -> Iterator[Desk]:
    probe = Watcher.of(person.root, [])
    if probe is None:
        pytest.skip("this system does not report what is written")
    probe.close()
    repo = open_repository(person)
    yield Desk(repo, WorktreePool(repo, state), codex_binary, test_root)
    for admin in list(warm._WARM):
        warm._WARM.pop(admin).watcher.close()


@pytest.fixture
def looks(monkeypatch) -> list[str]:
    """How often all files of the worktree were looked at, and how."""
    made: list[str] = []
    scan = capturing.scan_worktree
    monkeypatch.setattr(watching, "_changed_files", lambda top, since: made.append("times") or [])
    monkeypatch.setattr(capturing, "scan_worktree", lambda *args: made.append("scan") or scan(*args))
    return made


@pytest.mark.parametrize("allowed", [["./src/"], ["**"], ["./src/", "./new/deep/"], ["**", "./.codex/"]])
def test_no_command_makes_or_removes_one_whatever_becomes_of_it(
    desk: Desk, looks: list[str], allowed
) -> None:
    root = desk.begin(*allowed)
    both = [desk.start(f"echo started; read line && echo {number} > src/new{number}") for number in range(2)]
    for one in both:
        assert one.stdout is not None and one.stdout.readline() == "started\n"
    os.killpg(both[0].pid, signal.SIGKILL)
    both[0].communicate(timeout=60)
    said, _ = both[1].communicate("\n", timeout=60)
    assert (said, both[1].returncode) == ("", 0)
    assert desk.run("echo 2 > src/b.py") == ""
    assert [change.path for change in desk.end().changes] == [b"src/b.py", b"src/new1"]
    assert looks == []
    assert sorted(path.name for path in root.iterdir()) == [".git", ".gitignore", "bin", "link", "src"]


def test_a_sandbox_that_finds_none_makes_its_own(desk: Desk, looks: list[str]) -> None:
    desk.begin("**", made=False)
    assert desk.run("echo 2 > src/b.py") == ""
    assert [change.path for change in desk.end().changes] == [b"src/b.py"]
    assert looks == ["times"]


def test_a_worker_can_do_nothing_to_one(desk: Desk, looks: list[str]) -> None:
    root = desk.begin("**", "./.codex/")
    places = [root / name for name in (".agents", ".aws", *(f".codex/{each}" for each in MOUNT_POINTS))]
    attempts = [
        f"at={place}; file={root}/src/a.py; {attempt} 2> /dev/null && echo did it: {attempt}"
        for place in places
        for attempt in ATTEMPTS
    ]
    assert desk.run("\n".join([*attempts, "echo x > .codex/config.toml && echo end"])) == "end\n"
    assert [change.path for change in desk.end().changes] == [b".codex/config.toml"]
    assert looks == []


SAYS = """for at in . src bin; do (cd $at
  git rev-parse --show-toplevel --show-prefix; git status --porcelain --ignored; git ls-files
  ls -A; stat -c '%n %F %a %h %s' .git .agents .codex .aws
) 2>&1; done"""


@pytest.mark.parametrize("allowed", [["**"], ["./src/"]])
def test_commands_see_no_difference(desk: Desk, allowed) -> None:
    seen = []
    for made in (False, True):
        desk.begin(*allowed, made=made)
        seen.append(desk.run(SAYS))
        desk.end()
    assert ".aws directory 555" in seen[0]
    assert seen[0] == seen[1]
