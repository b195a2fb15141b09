"""Starts one of Baton's programs from its environment, which is built first where it is not there yet.

Run as `python -I -S door.py ROOT PROGRAM ARGS…`, where ROOT is the bundle; becomes that program. Exit status
1 with one line when the environment cannot be had.
"""

from __future__ import annotations

import os
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from baton.contract.errors import BatonError
from baton.runtime.build import PROGRAMS
from baton.runtime.handover import LOOK_SECONDS, Builds


def main(arguments: list[str]) -> int:
    """Become the program; returns only when that failed."""
    root, program, *rest = arguments
    try:
        python = os.environ.get("BATON_RUNTIME") or _await(Builds(root, dict(os.environ)))
        os.execv(python, [python, "-I", "-m", PROGRAMS[program], *rest])
    except BatonError as error:
        print(f"{program}: {error.message}", file=sys.stderr)
    except OSError as error:
        print(f"{program}: cannot be started: {error.strerror}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{program}: stopped; the build goes on in the background", file=sys.stderr)
    return 1


def _await(builds: Builds) -> str:
    told = False
    while True:
        python = builds.python()
        if python is not None:
            return python
        if not told:
            told = True
            print("Baton's environment is being built, once per version …", file=sys.stderr, flush=True)
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
