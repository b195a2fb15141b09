"""Changes to a home as one: staged beside their targets, written down, then swapped in one by one.

Up to the mark `swapping` an interruption is undone by the next command; from there on it is completed, since
everything that is needed lies beside its target already. A target that somebody changed meanwhile is never
overwritten: ours is left beside it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.base import Wire
from baton.contract.errors import BatonError, Busy, InvalidInput, StateUnavailable
from baton.install.disk import There, digest, look
from baton.install.places import Places
from baton.install.writing import copy, keep_owner, missing_folders, mode_of, put, remove_empty, sync

BESIDE = ".baton-new"
"""Added to the name of a person's file, ours lies beside it."""

BACKUPS_KEPT = 3
"""Installations whose replaced files are kept."""

MANY = 32
"""Staged files beyond which the whole machine is synced at once."""

Checkpoint = Callable[[str], None]
"""Told after every step that the next start would have to deal with; for tests that stop there."""


_CHANGED = "{} was changed by another program meanwhile; nothing was changed, try again"


@dataclass(frozen=True)
class Change:
    """One file to write or, without content, to remove."""

    target: Path
    content: bytes | None
    expected: str | None
    """Hash of what the decision was made on; None where there was no file."""
    mode: int | None = None
    """Permissions; None keeps those there are, 0600 for a new file."""


class _Step(Wire):
    target: str
    stage: str | None
    """The staged file; None for a removal."""
    backup: str | None
    """Where what was there is kept; None when there was nothing."""
    before: str | None
    after: str | None


class _Journal(Wire):
    swapping: bool
    folders: tuple[str, ...]
    """Folders that are made, outermost first."""
    backups: str
    steps: tuple[_Step, ...]
    prune: tuple[str, ...]
    """Folders to remove at the end where they are empty, innermost first."""


def carry_out(
    places: Places,
    changes: Sequence[Change],
    prune: Sequence[Path],
    checkpoint: Checkpoint,
    made: Sequence[Path] = (),
) -> None:
    """Make all changes or none, then remove the folders of `prune` that are empty. The caller holds the lock.

    `made` are folders that were made for this already; who undoes it removes them too.

    Raises `StateUnavailable` when the disk refuses and `Busy` when a target changes meanwhile; then
    everything is as it was.
    """
    name = f"baton-{secrets.token_hex(4)}"
    backups = places.backups / name
    steps = tuple(_step(change, name, backups, number) for number, change in enumerate(changes))
    folders = missing_folders([change.target.parent for change in changes])
    journal = _Journal(
        swapping=False,
        folders=tuple(map(str, [*made, *folders])),
        backups=str(backups),
        steps=steps,
        prune=tuple(map(str, prune)),
    )
    try:
        _write(places, journal)
        checkpoint("written")
        _stage(journal, changes, checkpoint)
        _write(places, journal.model_copy(update={"swapping": True}))
        checkpoint("staged")
        for step in steps:
            if not _swap(step):
                raise Busy(_CHANGED.format(step.target))
            checkpoint("swapped")
    except BaseException as error:
        _take_back(places, journal, checkpoint)
        if isinstance(error, OSError):
            raise refused(error, places.home) from None
        raise
    try:
        _finish(places, journal, checkpoint)
    except OSError as error:
        where = error.filename or places.home
        raise StateUnavailable(
            f"everything is in place, but {where} cannot be tidied up: {error.strerror}; the next"
            " `baton install` does it"
        ) from None


def _take_back(places: Places, journal: _Journal, checkpoint: Checkpoint) -> None:
    """Undo at once; cut short as well, the next command goes on undoing, never forward from a half."""
    if places.journal.exists():
        # A full disk takes no note, and is no reason to stop.
        with contextlib.suppress(OSError):
            _write(places, journal.model_copy(update={"swapping": False}))
    try:
        _undo(places, journal, checkpoint)
    except OSError as error:
        where = error.filename or places.home
        raise StateUnavailable(
            f"{where} cannot be put back as it was: {error.strerror}; make room or unlock it: the next"
            " `baton install` settles the rest"
        ) from None


def interrupted(places: Places) -> bool:
    """Whether an installation was cut short."""
    return places.journal.exists()


@dataclass(frozen=True)
class Settled:
    """What became of an installation that was cut short."""

    note: str
    """One line."""
    emptied: tuple[Path, ...]
    """Folders that it would have removed where they are empty."""


def recover(places: Places) -> Settled | None:
    """Complete or undo what was cut short; None when nothing was. The caller holds the lock."""
    journal = _read(places)
    try:
        _fresh(places).unlink(missing_ok=True)
        if journal is None:
            return None
        if not journal.swapping:
            _undo(places, journal, lambda _: None)
            return Settled("an interrupted installation was undone", tuple(map(Path, journal.folders)))
        for step in journal.steps:
            if not _swap(step) and step.stage is not None and Path(step.stage).exists():
                beside = Path(step.target + BESIDE)
                if look(beside).there is There.NOTHING:
                    Path(step.stage).replace(beside)
        _finish(places, journal, lambda _: None)
    except OSError as error:
        raise refused(error, places.home) from None
    return Settled("an interrupted installation was completed", tuple(map(Path, journal.prune)))


def refused(error: OSError, home: Path) -> BatonError:
    """The one line for a disk that refuses."""
    where = error.filename or home
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StateUnavailable(f"no space left for {where}; nothing was changed")
    return StateUnavailable(f"{where} cannot be written: {error.strerror}; nothing was changed")


def _step(change: Change, name: str, backups: Path, number: int) -> _Step:
    target = change.target
    found = look(target)
    if found.there is There.OTHER:
        raise InvalidInput(f"{target}: something other than a file is in its place; nothing was changed")
    if found.sha256 != change.expected:
        raise Busy(_CHANGED.format(target))
    return _Step(
        target=str(target),
        stage=str(target.with_name(f".{target.name}.{name}")) if change.content is not None else None,
        backup=str(backups / f"{number:03}-{target.name}") if found.there is not There.NOTHING else None,
        before=found.sha256,
        after=digest(change.content) if change.content is not None else None,
    )


def _stage(journal: _Journal, changes: Sequence[Change], checkpoint: Checkpoint) -> None:
    Path(journal.backups).mkdir(parents=True, exist_ok=True)
    for folder in journal.folders:
        Path(folder).mkdir(exist_ok=True)
    checkpoint("folders")
    for step, change in zip(journal.steps, changes, strict=True):
        if step.backup is not None:
            copy(Path(step.target), Path(step.backup))
        if step.stage is not None and change.content is not None:
            put(
                Path(step.stage),
                change.content,
                mode_of(change.target) if change.mode is None else change.mode,
            )
            keep_owner(Path(step.stage), change.target)
        checkpoint("one staged")
    _sync_staged(journal)


def _sync_staged(journal: _Journal) -> None:
    """Have all that is staged on the disk before the journal says so."""
    files = [Path(step.stage) for step in journal.steps if step.stage is not None]
    if len(files) > MANY and sys.platform == "linux":
        # Waits for everything on the machine, and is still four times quicker than file by file.
        os.sync()
        return
    for path in files:
        sync(path)
    _sync_folders(journal)


def _swap(step: _Step) -> bool:
    """Put a staged file in its place, or take the target away; False when the target is not as expected."""
    target = Path(step.target)
    found = look(target)
    staged = step.stage is not None and Path(step.stage).exists()
    if found.sha256 == step.after and not staged:
        return True
    if found.sha256 != step.before or (step.stage is not None and not staged):
        return False
    if step.stage is None:
        target.unlink(missing_ok=True)
    else:
        Path(step.stage).replace(target)
    return True


def _finish(places: Places, journal: _Journal, checkpoint: Checkpoint) -> None:
    """The changes stand: tidy up, and forget the journal at the very end."""
    _sync_folders(journal)
    checkpoint("in place")
    _remove_stages(journal)
    remove_empty([Path(folder) for folder in journal.prune])
    if places.owned.exists():
        _prune_backups(places)
    else:
        # It was a removal, which leaves no backups behind.
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(places.backups)
    checkpoint("tidy")
    places.journal.unlink()
    checkpoint("done")


def _undo(places: Places, journal: _Journal, checkpoint: Checkpoint) -> None:
    """Put everything back as it was, and forget the journal at the very end."""
    for step in reversed(journal.steps):
        target = Path(step.target)
        touched = look(target).sha256 == step.after and step.after != step.before
        if step.stage is not None and Path(step.stage).exists():
            touched = False
        back = _returning(step, journal)
        back.unlink(missing_ok=True)
        if not touched:
            continue
        if step.backup is not None and Path(step.backup).exists():
            copy(Path(step.backup), back)
            keep_owner(back, target)
            checkpoint("returning")
            back.replace(target)
        elif step.backup is None:
            target.unlink(missing_ok=True)
        checkpoint("put back")
    _remove_stages(journal)
    checkpoint("undone")
    _fresh(places).unlink(missing_ok=True)
    shutil.rmtree(journal.backups, ignore_errors=True)
    # All but the folders of the journal itself, which are tried again once it is gone.
    folders = [places.backups, *(Path(folder) for folder in reversed(journal.folders))]
    remove_empty(folders)
    checkpoint("without folders")
    places.journal.unlink(missing_ok=True)
    remove_empty(folders)


def _returning(step: _Step, journal: _Journal) -> Path:
    """Where what was there comes back to, beside its target; not where ours is staged."""
    target = Path(step.target)
    return target.with_name(f".{target.name}.{Path(journal.backups).name}.back")


def _remove_stages(journal: _Journal) -> None:
    for step in journal.steps:
        if step.stage is not None:
            Path(step.stage).unlink(missing_ok=True)


def _prune_backups(places: Places) -> None:
    with contextlib.suppress(OSError):
        made = sorted(places.backups.iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
        for folder in made[:-BACKUPS_KEPT]:
            shutil.rmtree(folder, ignore_errors=True)
        remove_empty(made)
        places.backups.rmdir()


def _write(places: Places, journal: _Journal) -> None:
    fresh = _fresh(places)
    fresh.unlink(missing_ok=True)
    put(fresh, json.dumps(journal.wire(compact=False)).encode(), 0o600)
    sync(fresh)
    fresh.replace(places.journal)
    sync(places.own)


def _fresh(places: Places) -> Path:
    return places.journal.with_name(".journal.json.new")


def _read(places: Places) -> _Journal | None:
    try:
        return _Journal.model_validate_json(places.journal.read_bytes(), by_alias=True)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StateUnavailable(
            f"{places.journal} cannot be read ({error}); see what lies in {places.backups}, then remove it"
        ) from None


def _sync_folders(journal: _Journal) -> None:
    for folder in dict.fromkeys(_folders_of(journal)):
        sync(folder)


def _folders_of(journal: _Journal) -> Iterator[Path]:
    for step in journal.steps:
        yield Path(step.target).parent
