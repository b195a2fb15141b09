"""A bubblewrap that does in what matters as 0.8 does: it neither knows `--argv0` nor names it in its help."""

from __future__ import annotations

from pathlib import Path

from baton.codex.binary import find_codex
from baton.codex.bubblewrap import own_bubblewrap


def install(folder: Path, codex: Path) -> Path:
    """Make it in a folder, which is made; for all else it is the one that came with this Codex."""
    real = own_bubblewrap(find_codex({"BATON_CODEX_BIN": str(codex)}).path)
    assert real is not None, f"{codex} brings no bubblewrap"
    folder.mkdir(parents=True)
    program = folder / "bwrap"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "--version) echo bubblewrap 0.8.0; exit;;\n"
        f"--help) {real} --help | grep -v -e --argv0; exit;;\n"
        "esac\n"
        "for each; do\n"
        '  case "$each" in\n'
        "  --) break;;\n"
        '  --argv0) echo "bwrap: Unknown option --argv0" >&2; exit 1;;\n'
        "  esac\n"
        "done\n"
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    return program
