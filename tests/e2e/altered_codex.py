"""The real Codex, its answers to `thread/start` altered: what it never does by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

SILENT = "silent"
"""A start gets no answer."""
DEAF = "deaf"
"""The app-server does not even answer to a hello."""
OTHER_MODEL = "other model"
"""The worker is started on another model."""
OTHER_PROFILE = "other profile"
"""The worker is started under another permission profile."""


def install(folder: Path, real: Path) -> Path:
    """Make the program in a folder; it alters what the file beside it says, which `alter` writes."""
    program = folder / "codex"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        f"if 'app-server' not in sys.argv: os.execv({str(real)!r}, [{str(real)!r}, *sys.argv[1:]])\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from e2e.altered_codex import pass_on\n"
        f"pass_on({str(real)!r}, {str(folder)!r})\n"
    )
    program.chmod(0o755)
    return program


def alter(program: Path, how: str) -> None:
    """From now on, for every app-server of this program."""
    (program.parent / "how").write_text(how)


def pass_on(real: str, folder: str) -> None:
    """Be the app-server; ends with it."""
    server = subprocess.Popen([real, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    starts: set[object] = set()
    how = Path(folder, "how")
    threading.Thread(target=_requests, args=(server.stdin, starts, how), daemon=True).start()
    for line in server.stdout:
        sys.stdout.buffer.write(_altered(line, starts, how))
        sys.stdout.buffer.flush()
    raise SystemExit(server.wait())


def _requests(server: IO[bytes], starts: set[object], how: Path) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if how.read_text() == DEAF:
            continue
        if message.get("method") == "thread/start":
            if how.read_text() == SILENT:
                continue
            starts.add(message["id"])
        server.write(line)
        server.flush()
    server.close()


def _altered(line: bytes, starts: set[object], how: Path) -> bytes:
    message = json.loads(line)
    if message.get("id") not in starts or "result" not in message:
        return line
    if how.read_text() == OTHER_MODEL:
        message["result"]["model"] = "gpt-0-other"
    if how.read_text() == OTHER_PROFILE:
        message["result"]["activePermissionProfile"] = {"id": ":workspace"}
    return json.dumps(message).encode() + b"\n"
