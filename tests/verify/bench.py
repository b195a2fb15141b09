"""A person's tree, a checkout of it, and the means to run checks there."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from baton.codex.binary import CodexBinary
from baton.codex.home import WorkerHome, prepare_worker_home
from baton.contract.evidence import CheckResult
from baton.ledger.artifacts import Artifacts
from baton.ledger.state import StateFolder
from baton.verify.check import run_check
from baton.verify.command import Command, read_command
from baton.verify.place import CheckEnvironment, CheckLimits, CheckPlace, CheckSandbox

PYTHON = os.path.realpath(sys.executable)


@dataclass
class Bench:
    """Files are written to both trees by `write`, to one of them by `theirs` and `ours`."""

    person: Path
    place: CheckPlace
    sandbox: CheckSandbox
    artifacts: Artifacts
    state: StateFolder
    base: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    runs: int = 0

    @classmethod
    def make(cls, root: Path, binary: CodexBinary, *, direct: bool = False) -> Bench:
        state = StateFolder.find({"BATON_STATE": str(root / "state"), "HOME": str(root / "home")})
        person, worktree = root / "project", state.worktrees / "run" / "check"
        for folder in (person, worktree, root / "home" / ".codex"):
            folder.mkdir(parents=True, exist_ok=True)
        home = worker_home(state, root / "home" / ".codex")
        place = CheckPlace(
            tree="0" * 40,
            worktree=worktree,
            cwd=worktree,
            scratch=state.scratch / "check",
            person_root=person,
        )
        sandbox = CheckSandbox(binary, home, denied=(state.root,), direct=direct)
        return cls(person, place, sandbox, Artifacts(state), state)

    def theirs(self, path: str, text: str, mode: int = 0o644) -> Path:
        return _write(self.person / path, text, mode)

    def ours(self, path: str, text: str, mode: int = 0o644) -> Path:
        return _write(self.place.worktree / path, text, mode)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        self.theirs(path, text, mode)
        self.ours(path, text, mode)

    def share(self, *folders: str) -> None:
        """Link folders of the person's into the checkout, as dependency folders are."""
        for folder in folders:
            target = self.person / folder
            (self.place.worktree / folder).symlink_to(target)
            self.place = replace(self.place, shared=(*self.place.shared, target))

    async def check(
        self,
        command: str | list[str] | Command,
        *,
        sandboxed: bool = True,
        unsandboxed: tuple[tuple[str, ...], ...] = (),
        extra_names: tuple[str, ...] = (),
        limits: CheckLimits | None = None,
    ) -> CheckResult:
        self.runs += 1
        return await run_check(
            command if isinstance(command, Command) else read_command(command),
            replace(self.place, scratch=self.state.scratch / f"check-{self.runs}"),
            CheckEnvironment(self.base, extra_names=extra_names, unsandboxed=unsandboxed),
            sandbox=self.sandbox if sandboxed else None,
            limits=limits or CheckLimits(seconds=120.0),
            artifacts=self.artifacts,
        )

    def output(self, result: CheckResult) -> str:
        assert result.output is not None, result
        return self.artifacts.read(result.output).decode("utf-8", "replace")


def worker_home(state: StateFolder, person_home: Path) -> WorkerHome:
    return prepare_worker_home(state.codex_home, person_home, {}, temporary=state.scratch / "codex")


def _write(path: Path, text: str, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path
