"""Turns the links of a package workspace in `node_modules` from the person's packages to the checkout's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from baton.verify.place import CheckPlace

_MODULES = "node_modules"
_MAX_DEPTH = 4


@dataclass(frozen=True)
class NodeOrigin:
    """What was turned, or why a check cannot run on the tree."""

    notes: tuple[str, ...] = ()
    refused: str | None = None


def turn_workspace_links(place: CheckPlace) -> NodeOrigin:
    """Replace each linked `node_modules` that leads to packages of the person's tree by a folder of links.

    Links of the workspace then lead to the packages of the checkout, all others to where they led before. A
    link whose package the checkout does not have is refused: the check would use what the tree has no more.
    """
    turned: list[str] = []
    known = None if place.modules is None else (path for path in place.modules if path.is_symlink())
    for folder in _linked_modules(place.worktree, _MAX_DEPTH) if known is None else known:
        theirs = Path(os.path.realpath(folder))
        links = {entry: target for entry, target in _entries(theirs) if _is_package(target, place)}
        if not links:
            continue
        ours = {
            entry: place.worktree / target.relative_to(place.person_root) for entry, target in links.items()
        }
        gone = sorted(str(entry) for entry, target in ours.items() if not target.exists())
        if gone:
            return NodeOrigin(
                refused=f"{_MODULES}/{gone[0]} leads to {links[Path(gone[0])]}, which the tree does not have"
            )
        folder.unlink()
        _fill(folder, theirs, ours)
        turned += sorted(str(entry) for entry in ours if entry.parts[0] != ".bin")
    if not turned:
        return NodeOrigin()
    return NodeOrigin(notes=(f"{', '.join(turned)} in {_MODULES} led to the workspace: turned to the tree",))


def _linked_modules(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / _MODULES).is_symlink():
        yield folder / _MODULES
    if depth == 0:
        return
    with os.scandir(folder) as entries:
        below = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for name in sorted(below):
        if name != _MODULES and name[0] != ".":
            yield from _linked_modules(folder / name, depth - 1)


def _entries(modules: Path) -> Iterator[tuple[Path, Path]]:
    """Entries that are links, below scopes and `.bin` too: their place in the folder and where they lead."""
    for child in sorted(modules.iterdir()):
        if child.is_symlink():
            yield Path(child.name), Path(os.path.realpath(child))
        elif child.is_dir() and (child.name.startswith("@") or child.name == ".bin"):
            for inner in sorted(child.iterdir()):
                if inner.is_symlink():
                    yield Path(child.name, inner.name), Path(os.path.realpath(inner))


def _is_package(target: Path, place: CheckPlace) -> bool:
    """Whether a link leads to the person's own sources, not to something that was installed."""
    if not target.is_relative_to(place.person_root):
        return False
    return _MODULES not in target.relative_to(place.person_root).parts


def _fill(folder: Path, theirs: Path, ours: dict[Path, Path]) -> None:
    folder.mkdir(mode=0o755)
    split = {entry.parts[0] for entry in ours if len(entry.parts) > 1}
    for child in theirs.iterdir():
        if child.name not in split:
            (folder / child.name).symlink_to(ours.get(Path(child.name), child))
            continue
        (folder / child.name).mkdir(mode=0o755)
        for inner in child.iterdir():
            entry = Path(child.name, inner.name)
            (folder / entry).symlink_to(ours.get(entry, inner))
