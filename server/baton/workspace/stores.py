"""Where the objects of a person's repository lie: what a worker with hidden files must not read."""

from __future__ import annotations

import os
from pathlib import Path

from baton.workspace.locate import Site

MAX_STORES = 50
"""Borrowed object folders that are followed; git itself stops at a depth of five."""


def git_stores(site: Site) -> tuple[Path, ...]:
    """Git directories of the workspace's repository, and every object folder that it borrows from.

    Real paths; empty for a plain folder. Other clones of the same history are not known here.
    """
    if site.common_dir is None:
        return ()
    found = dict.fromkeys(Path(os.path.realpath(path)) for path in (site.git_dir, site.common_dir) if path)
    pending = [site.common_dir / "objects"]
    seen: set[Path] = set()
    while pending and len(seen) < MAX_STORES:
        store = Path(os.path.realpath(pending.pop()))
        if store in seen:
            continue
        seen.add(store)
        pending += _alternates(store)
    found |= dict.fromkeys(sorted(seen))
    return tuple(
        path for path in found if not any(path != other and path.is_relative_to(other) for other in found)
    )


def _alternates(store: Path) -> list[Path]:
    try:
        lines = (store / "info" / "alternates").read_bytes().split(b"\n")
    except OSError:
        return []
    return [store / os.fsdecode(line) for line in lines if line and not line.startswith(b"#")]
