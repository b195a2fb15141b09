"""Recognises what is structurally Baton's although nobody recorded it, and the earlier layout's files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path, PurePosixPath

from baton.install.disk import content
from baton.install.owned import Kind
from baton.install.places import Places
from baton.install.shipped import SHIM_MARK, Shipped

EARLIER_FOLDER = "orchestration"
"""Where the earlier `codex-orchestration` layout keeps its scripts and the list of what it owns."""

EARLIER_LIST = "owned-paths.txt"

_AGENT_KEYS = {
    "name",
    "description",
    "developer_instructions",
    "model",
    "model_reasoning_effort",
    "sandbox_mode",
    "nickname_candidates",
}


def is_familiar(shipped: Shipped, found: bytes) -> bool:
    """Whether a file at one of our paths is built like ours: an agent or skill of that name, a command."""
    text = found.decode("utf-8", "replace")
    match shipped.kind:
        case Kind.BUNDLE | Kind.BESIDE:
            return True
        case Kind.COMMAND:
            return SHIM_MARK in text
        case Kind.AGENT:
            return _is_agent(text, shipped.path.stem)
        case Kind.SKILL:
            return _is_skill(text, shipped.path)


def is_entry_point(path: Path) -> bool:
    """Whether a file, or what a link leads to, is the command of a Baton that a Python installer put there.

    `pip install --user`, pipx and uv put commands into the same folder as we do.
    """
    if not path.is_file():
        return False
    text = content(path).decode("utf-8", "replace")
    return re.search(r"^(?:from|import) baton\.cli\.main\b", text, re.MULTILINE) is not None


def earlier_files(places: Places, ours: set[Path]) -> list[Path]:
    """Files of the earlier layout that lie where ours do not, when it is there with its list; sorted.

    Of the list only what lies in that layout's own folders, or in those of skills that we ship, is believed.
    """
    listed = _listed(places)
    folders = [places.home / EARLIER_FOLDER, *{path.parent for path in ours if path.name == "SKILL.md"}]
    found: set[Path] = set()
    for path in listed:
        candidates = path.rglob("*") if path.is_dir() and not path.is_symlink() else [path]
        for file in candidates:
            inside = any(file.is_relative_to(folder) for folder in folders) or file.name == EARLIER_LIST
            if inside and file.is_file() and not file.is_symlink() and file not in ours:
                found.add(file)
    return sorted(found)


def is_listed(places: Places, path: Path) -> bool:
    """Whether the earlier layout's list names this path or a folder above it."""
    return any(path.is_relative_to(entry) for entry in _listed(places))


def _listed(places: Places) -> list[Path]:
    """The list itself included: it goes with what it lists."""
    for file in (places.home / EARLIER_FOLDER / EARLIER_LIST, places.home / EARLIER_LIST):
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            continue
        entries = [PurePosixPath(line.strip()) for line in lines if line.strip() and line[0] != "#"]
        inside = [places.home / entry for entry in entries if ".." not in entry.parts]
        return [path for path in inside if path.is_relative_to(places.home) and path != places.home] + [file]
    return []


def _is_agent(text: str, name: str) -> bool:
    try:
        data = tomllib.loads(text)
    except ValueError:
        return False
    return data.get("name") == name and set(data) <= _AGENT_KEYS


def _is_skill(text: str, path: Path) -> bool:
    if path.name != "SKILL.md":
        # What lies beside a skill is judged with it, by the skill's own file.
        skill = next((above / "SKILL.md" for above in path.parents if (above / "SKILL.md").is_file()), None)
        if skill is None or not path.is_relative_to(skill.parent):
            return False
        return _is_skill(skill.read_text(encoding="utf-8", errors="replace"), skill)
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in (line.strip() for line in lines[1:]):
        return False
    head = lines[1 : 1 + [line.strip() for line in lines[1:]].index("---")]
    return any(
        line.partition(":")[0].strip() == "name" and line.partition(":")[2].strip(" \"'") == path.parent.name
        for line in head
    )
