"""Which optional tools the person switched on, read without any library: the front and the full server agree.

Only the listing follows this. Every call reads the whole policy, which may refuse what is listed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10 and older, on which the front may run
    tomllib = None  # type: ignore[assignment]


FURTHER_GROUPS = ("review", "workflow")
"""Those that stand on consultation, and are only there with it."""


def enabled_groups(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The groups for which the person's policy says `enabled = true`; none for a file that cannot be read.

    Where Python has no TOML reader only the two plain spellings are understood.
    """
    home = variables.get("CODEX_HOME") or os.path.join(
        variables.get("HOME") or os.path.expanduser("~"), ".codex"
    )
    try:
        with open(os.path.join(home, "baton", "policy.toml"), "rb") as file:
            content = file.read(1024 * 1024 + 1)
    except OSError:
        return ()
    if b"consult" not in content:
        return ()
    text = content.decode("utf-8-sig", "replace")
    if tomllib is None:
        enabled = {name for name in ("consult", *FURTHER_GROUPS) if _plainly_enabled(text, name)}
    else:
        try:
            policy = tomllib.loads(text)
        except (ValueError, RecursionError):
            return ()
        enabled = {
            name for name, table in policy.items() if isinstance(table, dict) and table.get("enabled") is True
        }
    if "consult" not in enabled:
        return ()
    return ("consult", *(name for name in FURTHER_GROUPS if name in enabled))


def _plainly_enabled(text: str, name: str) -> bool:
    table = ""
    for line in text.splitlines():
        header = re.match(r"\s*\[\s*([A-Za-z0-9_.-]+)\s*\]", line)
        if header:
            table = header.group(1)
            continue
        entry = re.match(r"\s*([A-Za-z0-9_.]+)\s*=\s*(true|false)\s*(#.*)?$", line)
        if entry and (table + "." if table else "") + entry.group(1) == name + ".enabled":
            return entry.group(2) == "true"
    return False
