"""A machine with one repository, and a door to the engine that must refuse what is wrong."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from baton.contract.base import parse
from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.contract.task import BatchCall, TaskCall
from baton.engine.house import House
from baton.engine.service import Service

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

_CONFIG = """model_provider = "none"
[model_providers.none]
name = "none"
base_url = "http://127.0.0.1:9/v1"
"""


@dataclass(frozen=True)
class Desk:
    """A person's repository and a session that delegates in it."""

    house: House
    repository: Path
    codex_home: Path

    def with_env(self, **changes: str) -> Desk:
        """The same in other surroundings."""
        return replace(self, house=replace(self.house, env={**self.house.env, **changes}))

    def answer(self, arguments: Mapping[str, Any], session: Session | None = None) -> dict[str, Any]:
        """What a call answers; raises what it raises."""

        async def call() -> dict[str, Any]:
            service = Service(self.house)
            if "tasks" in arguments:
                batch = parse(BatchCall, arguments, "delegate_tasks")
                return await service.delegate_tasks(batch, session or Session())
            return await service.delegate_task(
                parse(TaskCall, arguments, "delegate_task"), session or Session()
            )

        return anyio.run(call)

    def refuses(self, arguments: Mapping[str, Any], session: Session | None = None) -> BatonError:
        """The refusal of a call: one line, and nothing was created anywhere."""
        before = _files(self.repository)
        with pytest.raises(BatonError) as caught:
            self.answer(arguments, session)
        said = caught.value.message
        assert said and len(said.splitlines()) == 1, said
        said.encode()
        assert self.house.ledger.runs() == []
        assert _files(self.repository) == before
        for folder in (self.house.state.worktrees, self.house.state.repos, self.house.state.artifacts):
            assert list(folder.iterdir()) == []
        return caught.value


@pytest.fixture(scope="module")
def desk(codex_binary: Path) -> Iterator[Desk]:
    """One desk for all tests of a module that change nothing on it."""
    parent = _CACHE / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=parent, prefix="d-") as root,
        _desk(Path(root), codex_binary) as made,
    ):
        yield made


@pytest.fixture
def own_desk(test_root: Path, codex_binary: Path) -> Iterator[Desk]:
    """A desk for one test that changes something on it."""
    with _desk(test_root / "desk", codex_binary) as made:
        yield made


@contextmanager
def _desk(root: Path, codex: Path) -> Iterator[Desk]:
    repository, codex_home = root / "work", root / "home" / ".codex"
    codex_home.mkdir(parents=True)
    (repository / "src").mkdir(parents=True)
    (repository / "src" / "a.py").write_text("a = 1\n")
    (codex_home / "config.toml").write_text(_CONFIG)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root / "home"),
        "CODEX_HOME": str(codex_home),
        "BATON_STATE": str(root / "state"),
        "BATON_CODEX_BIN": str(codex),
    }
    identity = ["-c", "user.name=Test Person", "-c", "user.email=person@example.invalid"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "start"]):
        subprocess.run(["git", *command], cwd=repository, env=env, check=True)
    subprocess.run(["git", "init", "-q", "--bare", str(root / "bare.git")], env=env, check=True)
    (root / "broken" / ".git").mkdir(parents=True)
    (root / "broken" / ".git" / "HEAD").write_text("gone\n")
    with House.open(env) as house:
        yield Desk(house, repository, codex_home)


def _files(folder: Path) -> dict[str, bytes]:
    return {os.fsdecode(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
