"""Starts one of Baton's programs from its environment, which is built first where it is not there yet.

Run as `python -I -S door.py ROOT PROGRAM ARGS…`, where ROOT is the bundle; becomes that program. Exit status
1 with one line when the environment cannot be had.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from baton.contract.errors import BatonError
from baton.runtime.build import PROGRAMS
from baton.runtime.handover import LOOK_SECONDS, Builds


def main(arguments: list[str]) -> int:
    """Become the program; returns only when that failed."""
    root, program, *rest = arguments
    if program == "baton" and _only_removes(rest) and not _is_installed(os.environ):
        # Nothing is built for that.
        print(f"baton: nothing of Baton's is recorded in {_codex_home(os.environ)}", file=sys.stderr)
        return 1
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


def _only_removes(arguments: list[str]) -> bool:
    """Whether this uninstalls and does no more: neither tells how it goes nor empties the state folder."""
    removes = arguments[:1] == ["uninstall"] or (arguments[:1] == ["install"] and "--uninstall" in arguments)
    return removes and not {"--help", "--purge"}.intersection(arguments)


def _is_installed(environment: Mapping[str, str]) -> bool:
    """Whether the record of an installation is there, or that of one that was cut short."""
    own = os.path.join(_codex_home(environment), "baton")
    return any(os.path.lexists(os.path.join(own, name)) for name in ("owned.json", "journal.json"))


def _codex_home(environment: Mapping[str, str]) -> str:
    home = environment.get("CODEX_HOME") or os.path.join(os.path.expanduser("~"), ".codex")
    return os.path.abspath(home)


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
