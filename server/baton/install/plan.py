"""What becomes of each file: a pure three-way decision between shipped, installed and on disk."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from baton.install.disk import Found, There
from baton.install.owned import Kind, OwnedFile

REMADE = frozenset({Kind.BUNDLE, Kind.COMMAND})
"""Kinds that are part of the program: a deleted one is damage, not a wish."""


class Act(StrEnum):
    """What is done with one file."""

    INSTALL = "install"
    KEEP = "keep"
    """It is as it should be."""
    REPLACE = "replace"
    ADOPT = "adopt"
    """A file that is structurally ours is taken over; the old one is kept apart."""
    EDITED = "edited"
    """The person's edit stays."""
    DELETED = "deleted"
    """The person deleted it; that stays so."""
    RETIRE = "retire"
    RELEASE = "release"
    """No longer shipped, but edited: from now on the person's."""
    FORGET = "forget"
    """No longer shipped, and gone already."""
    REFUSE = "refuse"


@dataclass(frozen=True)
class Decision:
    """What is done with one file, and with what goes along."""

    act: Act
    beside: bool = False
    """Ours is put beside it as NAME.baton-new."""
    keep_apart: bool = False
    """What is on disk is the person's and gives way: it is kept below `baton/kept`."""
    why: str = ""

    @property
    def writes(self) -> bool:
        return self.act in (Act.INSTALL, Act.REPLACE, Act.ADOPT)


def decide(
    kind: Kind,
    shipped: str | None,
    record: OwnedFile | None,
    found: Found,
    *,
    familiar: bool = False,
    adopt: bool = False,
    restore: bool = False,
) -> Decision:
    """The decision for one path.

    `shipped` is the hash of what this version ships there, None for nothing; `record` what was installed;
    `familiar` says that a file nobody recorded is structurally ours; `adopt` allows taking such a file over;
    `restore` puts back what the person deleted.
    """
    if record is None:
        return _first(shipped, found, familiar, adopt)
    if shipped is None:
        return _retired(record, found)
    if found.there is There.NOTHING:
        if kind in REMADE or restore:
            return Decision(Act.INSTALL)
        return Decision(Act.DELETED, why="deleted by you; --restore puts it back")
    if found.sha256 == shipped and (found.there is There.FILE or kind not in REMADE):
        return Decision(Act.KEEP)
    untouched = found.there is There.FILE and found.sha256 == record.installed
    if untouched:
        return Decision(Act.REPLACE)
    if found.there is There.OTHER:
        return Decision(Act.REFUSE, why="something other than a file is in its place")
    if kind is Kind.BUNDLE:
        return Decision(Act.REPLACE, keep_apart=True, why="edited by you; your version is kept apart")
    changed = shipped != record.shipped
    why = "edited by you" + ("; ours is beside it" if changed else "")
    return Decision(Act.EDITED, beside=changed, why=why)


def _first(shipped: str | None, found: Found, familiar: bool, adopt: bool) -> Decision:
    """Nothing was recorded at this path."""
    if shipped is None:
        # Listed by an earlier layout only: it goes when somebody asked for taking over, and is kept apart.
        return Decision(Act.RETIRE if adopt and found.there is There.FILE else Act.FORGET, keep_apart=True)
    if found.there is There.NOTHING:
        return Decision(Act.INSTALL)
    if found.there is There.FILE and found.sha256 == shipped:
        return Decision(Act.KEEP)
    if found.there is There.FILE and familiar:
        if adopt:
            return Decision(Act.ADOPT, keep_apart=True, why="taken over; the old one is kept apart")
        return Decision(Act.REFUSE, why="looks like Baton's, but nobody recorded it; --adopt takes it over")
    return Decision(Act.REFUSE, why="not Baton's; move it away")


def _retired(record: OwnedFile, found: Found) -> Decision:
    if found.there is There.NOTHING:
        return Decision(Act.FORGET)
    if found.there is There.FILE and found.sha256 == record.installed:
        return Decision(Act.RETIRE)
    return Decision(Act.RELEASE, why="edited by you: it stays, and is yours now")
