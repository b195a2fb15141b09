"""Removes environments of other versions that no process uses any more; only ever on an explicit request."""

from __future__ import annotations

import os
import shutil

from baton.runtime.places import Environment, own_environment
from baton.runtime.use import try_own


def remove_unused(runtime: str) -> list[str]:
    """Remove every environment below `runtime` that nobody holds, but the one this process runs from.

    Half-built ones go too. Returns the keys removed. An environment is unmarked before anything of it is
    deleted, so that a removal cut short leaves nothing that looks ready.
    """
    own = own_environment()
    keep = own.key if own is not None and os.path.samefile(own.runtime, runtime) else None
    removed = []
    for entry in sorted(os.scandir(runtime), key=lambda entry: entry.name):
        if not entry.is_dir(follow_symlinks=False) or entry.name == keep:
            continue
        environment = Environment(runtime, entry.name)
        lock = try_own(environment)
        if lock is None:
            continue
        try:
            if os.path.exists(environment.marker):
                os.unlink(environment.marker)
            shutil.rmtree(environment.root)
            for path in (environment.log, environment.failure):
                if os.path.exists(path):
                    os.unlink(path)
            removed.append(entry.name)
        finally:
            # The lock file stays: unlinking it while another process opens it would make two locks of one.
            os.close(lock)
    return removed
