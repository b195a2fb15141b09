"""Asks a program that may be anything for what it says of itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path


def ask(program: Path, option: str, env: Mapping[str, str], seconds: float) -> str | None:
    """What it prints when it is called with this one option.

    None when it cannot be started, ends with an error, or has not ended after `seconds`: then it is ended.
    """
    try:
        child = subprocess.Popen(
            [program, option],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None
    with child:
        try:
            output, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # The whole group: a shim's own child would keep the pipe open.
            os.killpg(child.pid, signal.SIGKILL)
            return None
    return output.decode("utf-8", "replace") if child.returncode == 0 else None
