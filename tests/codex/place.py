"""A worker's place in a state folder, and a person's workspace beside it, for tests of the sandbox."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from baton.codex.binary import CodexBinary
from baton.codex.bubblewrap import with_bubblewrap
from baton.codex.home import WorkerHome, prepare_worker_home
from baton.codex.profile import PermissionProfile, WorkerPlace
from baton.codex.sandbox import profile_argv
from baton.ledger.state import StateFolder


@dataclass(frozen=True)
class Ground:
    """Folders and the Codex that is tried on them."""

    state: StateFolder
    person_home: Path
    workspace: Path
    worktree: Path
    scratch: Path
    binary: CodexBinary
    home: WorkerHome

    @classmethod
    def make(cls, root: Path, binary: CodexBinary) -> Ground:
        state = StateFolder.find({"BATON_STATE": str(root / "state"), "HOME": str(root / "home")})
        person_home = root / "home" / ".codex"
        workspace, worktree = root / "project", state.worktrees / "task" / "tree"
        scratch = state.scratch / "task"
        for folder in (person_home, workspace / "src", worktree / "src", scratch):
            folder.mkdir(parents=True, exist_ok=True)
        home = prepare_worker_home(state.codex_home, person_home, {}, temporary=state.scratch / "codex")
        return cls(state, person_home, workspace, worktree, scratch, binary, home)

    @property
    def place(self) -> WorkerPlace:
        return WorkerPlace(
            worktree=self.worktree,
            cwd=self.worktree,
            workspace=self.workspace,
            scratch=(self.scratch,),
            binary=self.binary.path,
            shells=(self.worktree.parent,),
        )

    @property
    def denied(self) -> tuple[Path, ...]:
        return (self.state.root, *self.home.secrets)

    def shell(self, profile: PermissionProfile, script: str) -> str:
        """What a shell script prints under a profile, errors included."""
        led = with_bubblewrap({"PATH": os.environ["PATH"]}, self.binary.path)
        done = subprocess.run(
            profile_argv(self.binary, profile, ["/bin/sh", "-c", script], cwd=self.worktree),
            cwd=self.worktree,
            env={**led, **self.home.sandbox_environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
        return done.stdout.decode("utf-8", "replace")
