"""What an installation did, or would do, for whoever shows it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.install.plan import Act, Decision

CHANGING = (Act.INSTALL, Act.REPLACE, Act.ADOPT, Act.RETIRE)


@dataclass(frozen=True)
class FileLine:
    """One file and what becomes of it."""

    path: Path
    decision: Decision


@dataclass(frozen=True)
class Report:
    """What was done."""

    files: tuple[FileLine, ...]
    notes: tuple[str, ...]
    """What a person should read, one line each."""
    changed: bool
    """Whether anything on disk is different now, or would be."""
    dry_run: bool = False

    def counts(self) -> dict[str, int]:
        """How many files each act concerns."""
        counted: dict[str, int] = {}
        for line in self.files:
            counted[line.decision.act.value] = counted.get(line.decision.act.value, 0) + 1
        return counted

    def wire(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "dryRun": self.dry_run,
            "changed": self.changed,
            "files": [
                {
                    "path": str(line.path),
                    "act": line.decision.act.value,
                    **({"why": line.decision.why} if line.decision.why else {}),
                }
                for line in self.files
            ],
            "notes": list(self.notes),
        }
