"""The `baton pool` command as a person gives it: a process of its own, in a project of theirs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
DEADLINE = 120


@dataclass
class Terminal:
    """A person's terminal in one folder."""

    folder: Path
    env: Mapping[str, str]
    last: subprocess.CompletedProcess[str] | None = field(default=None)

    def write_rows(self, *rows: dict[str, Any], name: str = "jobs.jsonl") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "baton.cli.main", "pool", *arguments]

    def environment(self) -> dict[str, str]:
        server = os.pathsep.join((str(CHECKOUT / "server"), str(CHECKOUT / "tests")))
        return {**self.env, "PYTHONPATH": server, "PYTHONDONTWRITEBYTECODE": "1"}

    def pool(self, *arguments: str, status: int = 0, cwd: Path | None = None) -> str:
        """What a command prints; its exit status must be `status`. Both streams, errors last."""
        return self.program(self.command(*arguments), status=status, cwd=cwd)

    def program(self, command: list[str], *, status: int = 0, cwd: Path | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        self.last = done
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def json(self, *arguments: str, status: int = 0) -> Any:
        """What a command answers as JSON on its standard output."""
        self.pool(*arguments, "--json", status=status)
        assert self.last is not None
        return json.loads(self.last.stdout)
