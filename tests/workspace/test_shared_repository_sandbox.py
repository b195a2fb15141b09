"""The folder around the private repository is open to every worker of it at once."""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workspace.conftest import OpenRepository
from workspace.person import Person

COMMANDS = 40
WORKERS = 8


@pytest.mark.codex
def test_commands_of_several_workers_do_not_take_mount_points_from_each_other(
    person: Person, open_repository: OpenRepository, codex_binary: Path, test_root: Path
) -> None:
    codex = str(codex_binary)
    shell = open_repository(person).path.parent
    entries = [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
        {"path": {"type": "path", "path": str(shell)}, "access": "write"},
    ]
    profile = {"type": "managed", "file_system": {"type": "restricted", "entries": entries}}
    state = {
        "permissionProfile": {**profile, "network": "restricted"},
        "sandboxCwd": person.root.as_uri(),
    }
    for number in range(WORKERS):
        (test_root / f"tmp{number}").mkdir()

    def command(number: int) -> str:
        done = subprocess.run(
            [codex, "sandbox", "--sandbox-state-json", json.dumps(state), "--", "/bin/true"],
            cwd=person.root,
            # Codex counts the users of a mount point in the temporary folder: each worker has its own.
            env={**os.environ, "TMPDIR": str(test_root / f"tmp{number % WORKERS}")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return done.stderr.decode(errors="replace") if done.returncode else ""

    with ThreadPoolExecutor(WORKERS) as pool:
        assert set(pool.map(command, range(COMMANDS))) == {""}
    assert sorted(path.name for path in shell.iterdir()) == [".agents", ".aws", ".codex", ".git", "git"]
