"""Fixtures of the workspace room: a person's repository, and private repositories in a state of the test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton.ledger.state import StateFolder
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import locate
from baton.workspace.repository import PrivateRepository
from workspace.person import Content, Person

OpenRepository = Callable[..., PrivateRepository]


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder.find({"BATON_STATE": str(tmp_path / "state")})


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A repository with one commit: two sources, a program, a link and ignore rules."""
    person = Person.init(tmp_path / "project")
    person.write("src/a.py", "a = 1\n")
    person.write("src/b.py", "b = 1\n")
    person.write("bin/run", "#!/bin/sh\n", 0o755)
    person.link("link", "src/a.py")
    person.write(".gitignore", "build/\n*.log\n")
    person.commit("base")
    return person


@pytest.fixture
def open_repository(state: StateFolder) -> OpenRepository:
    """Open the private repository of a workspace."""

    def open_it(workspace: Path | Person, limits: Limits | None = None) -> PrivateRepository:
        git = Git.find()
        folder = workspace.root if isinstance(workspace, Person) else workspace
        return PrivateRepository.open(state, locate(folder, git), limits, git)

    return open_it


@pytest.fixture
def content() -> Callable[[PrivateRepository, str], Content]:
    """What a commit of a private repository holds."""

    def read(repo: PrivateRepository, commit: str) -> Content:
        found: Content = {}
        for line in repo.run(["ls-tree", "-r", "-z", commit]).stdout.split(b"\0"):
            if not line:
                continue
            facts, path = line.split(b"\t", 1)
            mode, kind, oid = facts.decode().split(" ")
            data = repo.run(["cat-file", "blob", oid]).stdout if kind == "blob" else oid.encode()
            found[path] = (mode, data)
        return found

    return read
