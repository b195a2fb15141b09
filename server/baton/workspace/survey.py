"""From changes to operations: compare every touched path on disk with what is expected, say what to do."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

from baton.contract.errors import Unsupported, WorkspaceMoved
from baton.contract.tree import ChangeKind, TreeChange, show_path
from baton.workspace.journal import Act, Operation
from baton.workspace.names import join, parent, parents
from baton.workspace.pathwalk import DIRECTORY, SUBMODULE, Entry, Tree

_FOLDER = Entry(DIRECTORY, "")

Sides = dict[bytes, tuple[Entry | None, Entry | None]]
"""For each path what lies there before and after."""


def survey(tree: Tree, changes: Sequence[TreeChange], *, can_exchange: bool = True) -> tuple[Operation, ...]:
    """The operations that turn the base of `changes` into their result, in the order in which to do them.

    Reads the disk, changes nothing. Raises `WorkspaceMoved` when a touched path, tracked or not, is not what
    the changes expect, or something that is no directory lies on the way; `Unsupported` for submodules.
    """
    sides = _sides(changes)
    steps = _order(tree, sides, can_exchange)
    return tuple(Operation(number, *step) for number, step in enumerate(steps))


def _sides(changes: Sequence[TreeChange]) -> Sides:
    sides: Sides = {}
    for change in changes:
        if SUBMODULE in (change.old_mode, change.new_mode):
            raise Unsupported(
                f"{show_path(change.path)} is a submodule; its pointer cannot be applied to a work tree"
            )
        old = Entry(change.old_mode, change.old_oid) if change.old_mode else None
        new = Entry(change.new_mode, change.new_oid) if change.new_mode else None
        if change.kind is ChangeKind.RENAMED and change.old_path is not None:
            _put(sides, change.old_path, old, None)
            _put(sides, change.path, None, new)
        else:
            _put(sides, change.path, old, new)
    return sides


def _put(sides: Sides, path: bytes, old: Entry | None, new: Entry | None) -> None:
    if path in sides:
        # Two renames may share a path: one leaves it, another arrives.
        old, new = sides[path][0] or old, sides[path][1] or new
    sides[path] = (old, new)


Step = tuple[Act, bytes, Entry | None, Entry | None]


def _order(tree: Tree, sides: Sides, can_exchange: bool) -> list[Step]:
    leaving = {_expect(tree, path, old) for path, (old, _) in sides.items() if old is not None}
    removed = {path for path, (_, new) in sides.items() if new is None}
    steps: list[Step] = [(Act.REMOVE, path, sides[path][0], None) for path in sorted(removed, reverse=True)]
    makes: dict[bytes, bool] = {}
    adds: list[Step] = []
    for path in sorted(path for path, (old, _) in sides.items() if old is None):
        for folder in parents(path):
            if folder not in makes:
                makes[folder] = not _is_folder(tree, folder, removed)
        if not makes.get(parent(path)):
            vacated = _vacate(tree, path, removed, leaving)
            steps += [(Act.REMOVE_FOLDER, folder, _FOLDER, None) for folder in vacated]
        adds.append((Act.ADD, path, None, sides[path][1]))
    steps += [(Act.ADD_FOLDER, folder, None, _FOLDER) for folder, missing in sorted(makes.items()) if missing]
    replaced: list[Step] = []
    for path, (old, new) in sorted(sides.items()):
        if old is not None and new is not None and not tree.same(old, new):
            if can_exchange:
                replaced.append((Act.REPLACE, path, old, new))
            else:
                replaced += [(Act.REMOVE, path, old, None), (Act.ADD, path, None, new)]
    return [*steps, *adds, *replaced]


def _expect(tree: Tree, path: bytes, expected: Entry) -> tuple[int, int]:
    found = tree.look(path)
    if found is None:
        raise WorkspaceMoved(f"{show_path(path)} is gone from the workspace")
    if not tree.same(found.entry, expected):
        raise WorkspaceMoved(f"{show_path(path)} was changed in the workspace")
    return found.identity


def _is_folder(tree: Tree, folder: bytes, removed: Collection[bytes]) -> bool:
    """Whether the directory is there; False when it must be made."""
    found = tree.look(folder)
    if found is None or folder in removed:
        return False
    if found.entry != _FOLDER:
        raise WorkspaceMoved(
            f"{show_path(folder)} is no directory in the workspace, but files belong below it"
        )
    return True


def _vacate(
    tree: Tree, path: bytes, removed: Collection[bytes], leaving: set[tuple[int, int]]
) -> list[bytes]:
    """Directories that must go, innermost first, before a file can take the place of the outermost."""
    found = tree.look(path)
    if found is None:
        return []
    if found.entry != _FOLDER:
        # Where case does not count, a file that goes answers to the name of one that comes.
        if found.identity in leaving:
            return []
        raise WorkspaceMoved(f"{show_path(path)} exists in the workspace, where a new file belongs")
    folders: list[bytes] = []
    for inner, is_folder in _everything(tree, path):
        if is_folder:
            folders.append(inner)
        elif inner not in removed:
            raise WorkspaceMoved(f"{show_path(inner)} is in a directory that {show_path(path)} would replace")
    return [*reversed(folders), path]


def _everything(tree: Tree, folder: bytes) -> Iterator[tuple[bytes, bool]]:
    with tree.folder(folder) as handle, os.scandir(handle) as listing:
        kinds = sorted((os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in listing)
    for name, is_folder in kinds:
        yield join(folder, name), is_folder
        if is_folder:
            yield from _everything(tree, join(folder, name))


def emptied_folders(operations: Sequence[Operation]) -> list[bytes]:
    """Directories that may be empty once the operations are done, innermost first; git keeps none such."""
    gone = [operation.path for operation in operations if operation.act is Act.REMOVE]
    stays = [operation.path for operation in operations if operation.new is not None]
    needed = {folder for path in stays for folder in [*parents(path), path]}
    return sorted({folder for path in gone for folder in parents(path)} - needed, reverse=True)
