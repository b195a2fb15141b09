"""Which folder a person's command is about, found from any folder inside it."""

from __future__ import annotations

from pathlib import Path

from baton.policy.layer import PROJECT_FILE
from baton.process.there import is_file, is_there

EARLIER_FILE = Path("orchestration.toml")
"""Below a Codex home, and below a project's `.codex`."""

_CONFIGURED = (Path(".codex") / EARLIER_FILE, PROJECT_FILE)


def find_project(folder: Path, home: Path) -> Path:
    """The project that `folder` belongs to, as a real path.

    It is the nearest folder, from `folder` upwards, with a configuration of its own; else the top of the
    repository; else `folder` itself. The search ends at the top of the repository and before the person's
    home, whose `.codex` is their own.
    """
    start = folder.resolve()
    end = home.resolve()
    for candidate in (start, *start.parents):
        if candidate == end or candidate in end.parents:
            break
        if any(is_file(candidate / name) for name in _CONFIGURED) or is_there(candidate / ".git"):
            return candidate
    return start
