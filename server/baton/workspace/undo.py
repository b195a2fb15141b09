"""Take an unfinished apply back, operation by operation, without harm to what was edited in the meantime.

Which operations were done is read from the slots, so this works the same in the process that failed, after
a crash at any point, and after a crash in the middle of taking back. What is neither the old nor the new
content is somebody's edit: it stays where it is, and the content from before stays in its slot.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.tree import show_path
from baton.workspace.journal import Act, Journal, Operation, Step
from baton.workspace.lease import Lease, leased
from baton.workspace.names import base, parent
from baton.workspace.pathwalk import FILE, PROGRAM, Seen, Tree
from baton.workspace.renameat import exchange, move_to_free


@dataclass(frozen=True)
class Kept:
    """A path that was edited while an apply was under way: the edit was left in place."""

    path: bytes
    other: Path | None
    """Where the content from before the apply is kept; None when there was none."""

    @property
    def message(self) -> str:
        shown = show_path(self.path)
        if self.other is None:
            return f"{shown} was edited meanwhile and kept"
        return f"{shown} was edited meanwhile and kept; its earlier content is {self.other}"


@dataclass(frozen=True)
class Undone:
    """What an undo could not take back, and what must stay in the journal."""

    kept: tuple[Kept, ...] = ()
    open_elsewhere: bool = False
    """A file that was taken back may have been open in a program, which may yet write into it."""


def undo(tree: Tree, journal: Journal, operations: Sequence[Operation], step: Step) -> Undone:
    """Take back what was done, last operation first; safe to repeat.

    Raises `OSError` when the disk refuses; then the journal still says what is to be done.
    """
    open_elsewhere = False
    kept: list[Kept] = []
    slots = os.open(journal.slots, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for operation in reversed(operations):
            step(f"undo {operation.number}")
            undoing = _Undoing(tree, slots, operation)
            if not undoing.run():
                other = journal.slots / os.fsdecode(operation.slot)
                kept.append(Kept(operation.path, other if os.path.lexists(other) else None))
            open_elsewhere |= undoing.open_elsewhere
    finally:
        os.close(slots)
    return Undone(tuple(kept), open_elsewhere)


@dataclass
class _Undoing:
    tree: Tree
    slots: int
    operation: Operation
    open_elsewhere: bool = False

    def run(self) -> bool:
        """Take the operation back if it was done; False when an edit is in the way and was kept."""
        held = self.tree.look_in(self.slots, self.operation.slot)
        if self.operation.act is Act.REPLACE:
            return held is None or self.tree.same(held.entry, self.operation.new) or self._exchange_back(held)
        if self.operation.act in (Act.REMOVE, Act.REMOVE_FOLDER):
            return held is None or self._put_back(held)
        if self.operation.act is Act.ADD:
            return self._second_link(held) if held is not None else self._take_out()
        return held is not None or self._take_out_folder()

    def _exchange_back(self, held: Seen) -> bool:
        path, slot = self.operation.path, self.operation.slot
        here = self.tree.look(path)
        if here is not None and self.tree.same(here.entry, held.entry):
            return True
        if here is None or not self.tree.same(here.entry, self.operation.new):
            return False
        with self.tree.folder(parent(path)) as folder, leased(folder, base(path)) as lease:
            exchange(self.slots, slot, folder, base(path))
            if self._came_out(here, lease):
                return True
            # It was edited between the look and the exchange: their edit goes back.
            exchange(self.slots, slot, folder, base(path))
            return False

    def _came_out(self, here: Seen, lease: Lease | None) -> bool:
        """Whether what came out into the slot is what was seen in the workspace, and nobody's edit of it."""
        if lease is not None and lease.is_at(self.slots, self.operation.slot):
            return lease.unbroken and lease.covers(here)
        self.open_elsewhere |= here.entry.mode in (FILE, PROGRAM)
        out = self.tree.look_in(self.slots, self.operation.slot)
        return out is not None and self.tree.same(out.entry, self.operation.new)

    def _put_back(self, held: Seen) -> bool:
        path = self.operation.path
        try:
            with self.tree.folder(parent(path)) as folder:
                move_to_free(self.slots, self.operation.slot, folder, base(path))
        except (FileExistsError, FileNotFoundError, NotADirectoryError):
            here = self.tree.look(path)
            if here is None or not self.tree.same(here.entry, held.entry):
                return False
            return self.operation.act is Act.REMOVE or self._slot_folder_is_empty()
        return True

    def _slot_folder_is_empty(self) -> bool:
        with contextlib.suppress(OSError):
            os.rmdir(self.operation.slot, dir_fd=self.slots)
            return True
        return False

    def _take_out(self) -> bool:
        path, slot = self.operation.path, self.operation.slot
        here = self.tree.look(path)
        if here is None:
            return True
        if not self.tree.same(here.entry, self.operation.new):
            return False
        with self.tree.folder(parent(path)) as folder, leased(folder, base(path)) as lease:
            move_to_free(folder, base(path), self.slots, slot)
            if self._came_out(here, lease):
                return True
            with contextlib.suppress(FileExistsError):
                move_to_free(self.slots, slot, folder, base(path))
            return False

    def _second_link(self, held: Seen) -> bool:
        """A move by link and unlink that stopped between the two left both names."""
        here = self.tree.look(self.operation.path)
        if here is not None and here.identity == held.identity:
            with self.tree.folder(parent(self.operation.path)) as folder:
                os.unlink(base(self.operation.path), dir_fd=folder)
        return True

    def _take_out_folder(self) -> bool:
        # Not empty: it holds somebody's files now, and stays.
        with contextlib.suppress(OSError), self.tree.folder(parent(self.operation.path)) as folder:
            found = os.stat(base(self.operation.path), dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                os.rmdir(base(self.operation.path), dir_fd=folder)
        return True
