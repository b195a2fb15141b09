#!/usr/bin/env python3
"""Checks the policy and the whole bundle: scripts/validate.py [FOLDER]

Each fault is one line: file, key, what is expected. Exit status 0: none; 1: faults; 2: it could not look.
Started by any Python, it goes on in the development environment.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
REENTERED = "BATON_VALIDATING"


def main() -> int:
    arguments = sys.argv[1:]
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: scripts/validate.py [FOLDER]", file=sys.stderr)
        return 2
    if not all(importlib.util.find_spec(name) for name in ("baton", "ruamel", "pydantic")):
        return _again(arguments)
    return _validate(Path(arguments[0]).resolve() if arguments else CHECKOUT)


def _again(arguments: list[str]) -> int:
    """The same in the development environment, which is made when it is not there."""
    if os.environ.get(REENTERED):
        print("validate: the development environment is incomplete: run scripts/setup.sh", file=sys.stderr)
        return 2
    command = [str(CHECKOUT / "scripts" / "python.sh"), str(Path(__file__).resolve()), *arguments]
    return subprocess.run(command, env={**os.environ, REENTERED: "1"}, check=False).returncode


def _validate(root: Path) -> int:
    from baton.contract.errors import BatonError
    from baton.policy.bundle_check import bundle_faults

    if not root.is_dir():
        print(f"validate: {root}: no such folder", file=sys.stderr)
        return 2
    try:
        faults = bundle_faults(root)
        if root == CHECKOUT:
            from baton.cli.reference import stale_pages
            from baton.tools.surface import check_surface

            stale = check_surface()
            faults += [f"server/baton/tools/{stale}"] if stale else []
            faults += stale_pages(root)
    except (BatonError, OSError) as error:
        print(f"validate: {error}", file=sys.stderr)
        return 2
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
