"""Kills the guard of a program whose commands have an environment and a session of their own.

Prints whether the command still lives once the child is said to have ended. With the word `forked` the guard
is one that a server forked.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path

import anyio

from baton.process import guard
from baton.process.child import open_child, read_lines
from baton.process.environment import WORKER_MARKER
from baton.process.forked import guards_forked
from baton.process.tree import become_subreaper

PROGRAM = f"""
import subprocess, sys, time
command = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(600)"],
    env={{"{WORKER_MARKER}": "1"}}, start_new_session=True, stdout=subprocess.DEVNULL,
)
print(command.pid, flush=True)
time.sleep(600)
"""


async def main() -> None:
    become_subreaper()
    log = Path(tempfile.mkdtemp()) / "stderr"
    start = [sys.executable, "-c", PROGRAM]
    async with (
        guards_forked() if "forked" in sys.argv else contextlib.nullcontext(),
        await open_child(start, cwd="/", env=dict(os.environ), stderr=log) as child,
    ):
        command = 0
        async for line in read_lines(child.stdout):
            command = int(line)
            break
        os.kill(child.guarded.pid, signal.SIGKILL)
        await child.wait()
        found = guard.entry(command)
        print("alive" if found is not None and found.alive else "ended")


anyio.run(main)
