#!/usr/bin/env python3
"""Makes the pictures of the README from the real programs: scripts/python.sh scripts/pictures.py

The demonstration runs in a terminal of its own; what it and `baton activity` draw there becomes
`docs/pictures/*.svg`, which load nothing from anywhere. When a program fails, nothing is written and the exit
status is 1.
"""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

CHECKOUT = Path(__file__).resolve().parents[1]
PICTURES = CHECKOUT / "docs" / "pictures"
COLUMNS = 112

FOREIGN = re.compile(r"@font-face \{\{.*?\}\}\s*|<!--.*?-->\s*", re.DOTALL)


def drawn(command: list[str], env: dict[str, str]) -> str:
    """What a command draws on a terminal of our width. Exits with its status when that is not 0."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env, cwd="/") as program:
        os.close(slave)
        pieces = []
        try:
            while piece := os.read(master, 1 << 16):
                pieces.append(piece)
        except OSError:  # Linux says so when the last writer has gone
            pass
    os.close(master)
    text = b"".join(pieces).decode().replace("\r\n", "\n")
    if program.returncode != 0:
        sys.exit(f"pictures: {' '.join(command[-2:])} failed: {text}")
    return text


def first_run(baton: list[str], env: dict[str, str]) -> str:
    """The first run of the demonstration: the one whose worker claims what is not so."""
    command = [*baton, "runs", "list", "--json"]
    done = subprocess.run(command, env=env, check=True, capture_output=True, cwd="/")
    return str(json.loads(done.stdout)[-1]["runId"])


def photographed(page: Path, folder: Path) -> bytes | None:
    """A page as a browser shows its top; None without a browser."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        return None
    picture = folder / "report.png"
    profile = f"--user-data-dir={folder / 'browser'}"
    look = ["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1200,1000", profile]
    alone = (
        [] if os.geteuid() else ["--no-sandbox"]
    )  # it refuses to be sandboxed as root; the page is our own
    subprocess.run(
        [chromium, *look, *alone, f"--screenshot={picture}", page.as_uri()],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return picture.read_bytes()


def svg(title: str, text: str) -> str:
    """A terminal as a picture, with the fonts of whoever looks at it."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(width=COLUMNS, record=True, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(text))
    made = console.export_svg(
        title=title, code_format=FOREIGN.sub("", CONSOLE_SVG_FORMAT), unique_id="terminal"
    )
    return made.replace("Fira Code, ", "")


def main() -> int:
    if len(sys.argv) > 1:
        print("usage: scripts/python.sh scripts/pictures.py", file=sys.stderr)
        return 2
    baton = [sys.executable, "-m", "baton.cli.main"]
    env = {**os.environ, "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    demo = drawn([*baton, "demo", "--keep"], env)
    shown, _, kept = demo.partition("\nkept: ")
    folder = Path(kept.strip())
    try:
        state = {**env, "BATON_STATE": str(folder / "state")}
        activity = drawn([*baton, "activity"], state).replace(str(folder), "~")
        page = folder / "report.html"
        drawn([*baton, "report", first_run(baton, state), "--html", str(page)], state)
        page.write_text(page.read_text(encoding="utf-8").replace(str(folder), "~"), encoding="utf-8")
        report = photographed(page, folder)
    finally:
        shutil.rmtree(folder)
    PICTURES.mkdir(parents=True, exist_ok=True)
    pictures = {"demo.svg": ("baton demo", shown), "activity.svg": ("baton activity", activity)}
    for name, (title, text) in pictures.items():
        (PICTURES / name).write_text(svg(title, f"$ {title}\n{text.strip()}"), encoding="utf-8")
        print(f"made {(PICTURES / name).relative_to(CHECKOUT)}")
    if report is None:
        print("SKIPPED docs/pictures/report.png: there is no Chromium", file=sys.stderr)
    else:
        (PICTURES / "report.png").write_bytes(report)
        print("made docs/pictures/report.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
