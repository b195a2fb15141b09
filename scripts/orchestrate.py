#!/usr/bin/env python3
"""Runs a job file: scripts/orchestrate.py JOBS.jsonl [FLAGS]. A door to `baton pool run`, with its flags.

Started by any Python from 3.8 on, in any folder; it goes on in Baton's own environment, which is built once
where it is not there yet.
"""

import importlib.util
import os
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent


def main():
    """Become `baton pool run`."""
    arguments = ["pool", "run", *sys.argv[1:]]
    if all(importlib.util.find_spec(name) for name in ("baton", "click", "pydantic", "mcp")):
        command = [sys.executable, "-m", "baton.cli.main", *arguments]
    else:
        command = ["sh", str(SCRIPTS / "program.sh"), "baton", *arguments]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"orchestrate: {command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
