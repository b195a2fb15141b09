"""Bring a verified result into the workspace: all of it or nothing, and never over somebody's edit.

Everything is staged first. Then each path is exchanged or moved by name, and what came out is hashed: when it
is not what the snapshot said, everything is taken back. The person's index is not touched.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from baton.contract.errors import BatonError, StateUnavailable, WorkspaceMoved
from baton.contract.tree import Applied, TreeChange, show_path
from baton.workspace.journal import Act, Journal, Mark, Operation, Plan, Step
from baton.workspace.journal_place import journals, tidy
from baton.workspace.lease import leased
from baton.workspace.names import base, parent
from baton.workspace.pathwalk import Seen, Tree
from baton.workspace.renameat import NoExchange, exchange, move_to_free
from baton.workspace.staging import BlobSource, stage, sync_slots
from baton.workspace.survey import emptied_folders, survey
from baton.workspace.undo import Kept, Undone, undo

__all__ = [
    "ApplyFailed",
    "BlobSource",
    "Outcome",
    "Recovery",
    "apply",
    "discard_backups",
    "is_finished",
    "recover",
    "recover_all",
]


class ApplyFailed(BatonError):
    """Raised when the system refused a step of an apply (permission, space, type of file system).

    The message says whether the workspace is as it was. Unlike `WorkspaceMoved`, merging again does not help.
    """

    code = "apply_failed"


class Outcome(StrEnum):
    """What became of an apply that was found unfinished."""

    NOTHING = "nothing"
    """It was finished, or had never touched the workspace."""
    UNDONE = "undone"
    """The workspace is as it was before."""
    FINISHED = "finished"
    """The workspace has the whole result."""


@dataclass(frozen=True)
class Recovery:
    """The outcome, and the edits that were left in place."""

    outcome: Outcome
    kept: tuple[Kept, ...] = ()


def apply(
    root: Path,
    changes: Sequence[TreeChange],
    blobs: BlobSource,
    journal_folder: Path,
    *,
    object_format: str = "sha1",
    file_mode: bool = True,
    step: Step = lambda name: None,
) -> Applied:
    """Apply `changes`, whose paths are relative to `root` and whose old side is the snapshot to compare with.

    The caller holds the repository lock. `journal_folder` must not exist and must be on the file system of
    `root`; it keeps the backups until `discard_backups`. Raises `WorkspaceMoved` when a touched path differs
    from the old side, `ApplyFailed` when the system refuses; the workspace is then as it was, but for edits
    that others made meanwhile, which the message names.
    """
    with _failing_as("nothing was changed"):
        journal_folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        tree = Tree(root, object_format, file_mode=file_mode)
    with tree:
        with _failing_as("nothing was changed"):
            try:
                operations = survey(tree, changes, can_exchange=_can_exchange(journal_folder.parent))
            except WorkspaceMoved:
                _remove_if_empty(journal_folder.parent)
                raise
            if not operations:
                _remove_if_empty(journal_folder.parent)
                return Applied()
            journal = Journal.create(journal_folder, Plan(root, object_format, file_mode, operations), step)
        try:
            _do(tree, journal, operations, blobs, step)
        except Exception as error:
            raise _taken_back(tree, journal, operations, error, step) from error
        # The result is in place: what is left to tidy must not turn success into failure.
        with contextlib.suppress(OSError):
            _finish(tree, journal, operations, step)
    return Applied(changed=tuple(sorted({each.path for each in operations})), backups=journal_folder)


def recover(journal_folder: Path, *, step: Step = lambda name: None) -> Recovery:
    """Finish or take back the apply that a journal records, then close it; safe to repeat and to interrupt.

    The caller holds the repository lock. A journal without anything to keep is removed. Raises `ApplyFailed`
    when the system refuses or the workspace is gone (the journal stays), `StateUnavailable` for a damaged
    journal.
    """
    journal = Journal(journal_folder, step)
    plan, mark = journal.read()
    if plan is None or mark is Mark.PLANNED:
        journal.discard()
        return Recovery(Outcome.NOTHING)
    if mark in (Mark.CLOSED, Mark.UNDONE):
        return Recovery(Outcome.NOTHING)
    with (
        _failing_as(f"the unfinished apply stays in {journal_folder}"),
        Tree(plan.root, plan.object_format, file_mode=plan.file_mode) as tree,
    ):
        if mark is Mark.COMMITTED:
            _finish(tree, journal, plan.operations, step)
            return Recovery(Outcome.FINISHED)
        return Recovery(Outcome.UNDONE, _take_back(tree, journal, plan.operations, step))


def recover_all(
    root: Path, common_dir: Path | None, *, step: Step = lambda name: None
) -> tuple[Recovery, ...]:
    """Recover every journal of the workspace's repository; call it before anything else is done there.

    One that cannot be recovered does not keep the others from it; the first such error is raised at the end.
    """
    recoveries: list[Recovery] = []
    errors: list[BatonError] = []
    for folder in journals(root, common_dir):
        try:
            recoveries.append(recover(folder, step=step))
        except BatonError as error:
            errors.append(error)
    tidy(root, common_dir)
    if errors:
        raise errors[0]
    return tuple(recoveries)


def is_finished(journal_folder: Path) -> bool:
    """Whether the workspace got the whole result; False without a journal. Raises `StateUnavailable`."""
    return Journal(journal_folder, lambda name: None).read()[1] in (Mark.COMMITTED, Mark.CLOSED)


def discard_backups(journal_folder: Path) -> None:
    """Remove what a finished or undone apply kept. Raises `StateUnavailable` when it is unfinished."""
    journal = Journal(journal_folder, lambda name: None)
    _, mark = journal.read()
    if mark in (Mark.STAGED, Mark.COMMITTED):
        raise StateUnavailable(f"the apply in {journal_folder} is unfinished; recover it first")
    journal.discard()


def _do(tree: Tree, journal: Journal, operations: Sequence[Operation], blobs: BlobSource, step: Step) -> None:
    for operation in operations:
        step(f"stage {operation.number}")
        stage(journal, tree, operation, blobs)
    sync_slots(journal, operations)
    journal.mark(Mark.STAGED)
    slots = os.open(journal.slots, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        taken = {}
        for operation in operations:
            step(f"do {operation.number}")
            taken[operation] = _perform(tree, slots, operation)
            step(f"did {operation.number}")
        _sync(tree, operations)
        os.fsync(slots)
        for operation, seen in taken.items():
            _still(tree, slots, operation, seen)
    finally:
        os.close(slots)
    journal.mark(Mark.COMMITTED)


def _perform(tree: Tree, slots: int, operation: Operation) -> Seen | None:
    """Do one operation and look at what came out of the workspace; None when nothing did."""
    shown = show_path(operation.path)
    name = base(operation.path)
    try:
        with tree.folder(parent(operation.path)) as folder:
            if operation.old is None:
                move_to_free(slots, operation.slot, folder, name)
                return None
            seen = _refuse_changed(tree, folder, name, operation)
            with leased(folder, name) as lease:
                if lease is not None and not lease.covers(seen):
                    raise WorkspaceMoved(f"{shown} was changed in the workspace")
                if operation.act is Act.REPLACE:
                    exchange(slots, operation.slot, folder, name)
                else:
                    move_to_free(folder, name, slots, operation.slot)
                if lease is not None and lease.is_at(slots, operation.slot):
                    if lease.unbroken:
                        return seen
                    raise WorkspaceMoved(f"{shown} is being opened in the workspace")
    except FileExistsError:
        raise WorkspaceMoved(f"{shown} appeared in the workspace, where a new file belongs") from None
    except (FileNotFoundError, NotADirectoryError):
        raise WorkspaceMoved(f"{shown} or its directory is gone from the workspace") from None
    out = tree.look_in(slots, operation.slot)
    if out is None or not tree.same(out.entry, operation.old):
        raise WorkspaceMoved(f"{shown} was changed in the workspace")
    if operation.act is Act.REMOVE_FOLDER:
        _refuse_filled(slots, operation)
    return out


def _refuse_changed(tree: Tree, folder: int, name: bytes, operation: Operation) -> Seen:
    """The last look before a path is touched: what was edited until now never leaves its place."""
    found = tree.look_in(folder, name)
    if found is None or not tree.same(found.entry, operation.old):
        raise WorkspaceMoved(f"{show_path(operation.path)} was changed in the workspace")
    return found


def _refuse_filled(slots: int, operation: Operation) -> None:
    handle = os.open(
        operation.slot, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=slots
    )
    try:
        with os.scandir(handle) as listing:
            if next(listing, None) is not None:
                raise WorkspaceMoved(f"{show_path(operation.path)} was filled again in the workspace")
    finally:
        os.close(handle)


def _still(tree: Tree, slots: int, operation: Operation, seen: Seen | None) -> None:
    """A program that had the file open may have gone on writing into what came out."""
    if seen is None:
        return
    found = os.stat(operation.slot, dir_fd=slots, follow_symlinks=False)
    if (found.st_size, found.st_mtime_ns) == (seen.size, seen.written_ns):
        return
    again = tree.look_in(slots, operation.slot)
    if again is None or not tree.same(again.entry, operation.old):
        raise WorkspaceMoved(f"{show_path(operation.path)} is being written to in the workspace")


def _taken_back(
    tree: Tree, journal: Journal, operations: Sequence[Operation], error: Exception, step: Step
) -> BatonError:
    """Undo, and the error to raise: what went wrong, and how the workspace is now."""
    try:
        kept = _take_back(tree, journal, operations, step)
    except (OSError, NoExchange) as trouble:
        return ApplyFailed(
            f"{_reason(error)}; taking it back failed too ({_reason(trouble)}): "
            f"the next start of Baton tries again from {journal.folder}"
        )
    state = "; ".join(["the workspace is as it was", *(each.message for each in kept)])
    if isinstance(error, WorkspaceMoved):
        aside = [each.message for each in kept if each.other is not None]
        return WorkspaceMoved(f"{error.message}; {state}", aside)
    return ApplyFailed(f"cannot apply: {_reason(error)}; {state}")


def _take_back(tree: Tree, journal: Journal, operations: Sequence[Operation], step: Step) -> tuple[Kept, ...]:
    _, mark = journal.read()
    undone = undo(tree, journal, operations, step) if mark is Mark.STAGED else Undone()
    _sync(tree, operations)
    journal.mark(Mark.UNDONE)
    if not undone.kept and not undone.open_elsewhere:
        journal.discard()
    return undone.kept


def _finish(tree: Tree, journal: Journal, operations: Sequence[Operation], step: Step) -> None:
    for path in emptied_folders(operations):
        step("remove empty folder")
        # Refused when it is not empty, which is the point.
        with contextlib.suppress(OSError), tree.folder(parent(path)) as folder:
            os.rmdir(base(path), dir_fd=folder)
    _sync(tree, operations)
    journal.mark(Mark.CLOSED)


def _sync(tree: Tree, operations: Sequence[Operation]) -> None:
    for path in sorted({parent(operation.path) for operation in operations}):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), tree.folder(path) as folder:
            os.fsync(folder)


def _can_exchange(folder: Path) -> bool:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".try-") as scratch:
        for name in ("a", "b"):
            (Path(scratch) / name).touch()
        handle = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            exchange(handle, b"a", handle, b"b")
        except NoExchange:
            return False
        finally:
            os.close(handle)
    return True


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def _failing_as(state: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ApplyFailed(f"cannot apply: {_reason(error)}; {state}") from error


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        names = [
            show_path(os.fsencode(name)) for name in (error.filename, error.filename2) if name is not None
        ]
        return ": ".join([*names[:1], error.strerror])
    return str(error) or type(error).__name__
