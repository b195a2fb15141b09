"""What a worker leaves is found without a look at every file of its worktree."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.simulate.script import shell
from baton.simulate.workers import honest
from e2e.sim import Sim

pytestmark = pytest.mark.codex


@pytest.fixture
def asked(test_root: Path) -> Path:
    """Where it is noted that files were asked for their times."""
    return test_root / "asked"


@pytest.fixture
def machine(codex_binary: Path, test_root: Path, asked: Path) -> Iterator[Sim]:
    noting = test_root / "bin" / "find"
    noting.parent.mkdir()
    noting.write_text(f'#!/bin/sh\necho "$@" >> {asked}\nexec {shutil.which("find")} "$@"\n')
    noting.chmod(0o755)
    made = Sim(test_root / "machine", codex_binary)
    made.env["PATH"] = f"{noting.parent}:{os.environ['PATH']}"
    with made:
        yield made


def test_tasks_end_without_a_question_to_every_file(machine: Sim, asked: Path) -> None:
    theirs = {"m2/.codex/a": "x\n", ".agents/notes.md": "theirs\n"}
    place = machine.workspace("place", {"m0/a": "old\n", "m1/deep/a": "old\n", "m2/a": "old\n", **theirs})
    trying = shell(
        "git status; for at in m*; do mkdir $at/.aws; mv $at/.codex $at/other; rm -r $at/.git; done"
    )
    work = {
        "one": ({"m0/a": "new\n"}, ["m0/"]),
        "two": ({"m1/deep/a": "new\n", "m1/b": "new\n"}, ["m1/"]),
        "three": ({"m2/a": "new\n", "made/deep/a": "new\n"}, ["m2/", "made/deep/"]),
        "four": ({".codex/config.toml": "new\n"}, ["./.codex/"]),
    }
    tasks = [
        {
            "id": name,
            "objective": machine.script(name, trying, trying, *honest(files)),
            "allowedFiles": allowed,
            "verificationCommands": ["true"],
        }
        for name, (files, allowed) in work.items()
    ]
    before = place.contents()
    answer = machine.delegate({"workspace": str(place.path), "tasks": tasks, "waitSeconds": 110})
    assert [line.get("integration") for line in answer["tasks"]] == ["applied"] * len(work)
    for name, (files, _) in work.items():
        evidence = machine.result(answer["runId"], name).evidence
        assert {change.path for change in evidence.changes} == set(files)
        assert not (evidence.nested or evidence.ignored or evidence.unsupported)
    after = place.contents()
    written = {path for files, _ in work.values() for path in files}
    assert {path for path in after if after[path] != before.get(path)} == written
    assert before.keys() <= after.keys()
    assert not asked.exists()
