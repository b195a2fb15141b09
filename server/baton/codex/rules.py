"""Finds execpolicy rules that let commands run outside any sandbox."""

from __future__ import annotations

from pathlib import Path


def allow_rules(config_folder: Path) -> tuple[Path, ...]:
    """The rule files of a config folder that may allow something, in order of name.

    A rule's decision is `allow` unless it says otherwise, and rules are a program: any rule counts, and so
    does a file that cannot be read. Only a file without any statement counts as harmless.
    """
    folder = config_folder / "rules"
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == ".rules")
    except FileNotFoundError:
        return ()
    except OSError:
        return (folder,)
    return tuple(file for file in files if _says_something(file))


def _says_something(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())
