"""From what is shipped, recorded and on disk to the changes of one installation; writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.install.disk import Found, There, content, look
from baton.install.familiar import earlier_files, is_familiar, is_listed
from baton.install.journal import BESIDE, Change
from baton.install.owned import Kind, OwnedFile
from baton.install.places import Places
from baton.install.plan import Act, Decision, decide
from baton.install.report import FileLine
from baton.install.shipped import Shipped

SHOWN = 8
"""Refused files that are named; the rest are counted."""


@dataclass
class Outcome:
    """What is to be done about files."""

    lines: list[FileLine] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    records: list[OwnedFile] = field(default_factory=list)
    """What is owned afterwards."""
    refused: list[str] = field(default_factory=list)
    emptied: set[Path] = field(default_factory=set)
    """Folders of the earlier layout, to be removed where they end up empty."""

    def check(self, home: Path) -> None:
        """Raises `InvalidInput` that names what is in the way."""
        refused = list(dict.fromkeys(self.refused))
        if refused:
            more = len(refused) - SHOWN
            names = "; ".join(refused[:SHOWN]) + (f"; and {more} more" if more > 0 else "")
            raise InvalidInput(f"{home}: nothing was installed, these are in the way: {names}")


@dataclass(frozen=True)
class Files:
    """The files of one installation: a home's, or a project's."""

    places: Places
    version: str
    recorded: Mapping[Path, OwnedFile]
    adopt: bool = False
    restore: bool = False
    apart: str = "edited"
    """Name of the folder below `baton/kept` for what gives way."""

    def settle(self, shipped: Sequence[Shipped], *, earlier: bool = False) -> Outcome:
        """Decide about every file that is shipped or recorded; `earlier` takes the earlier layout along."""
        outcome = Outcome()
        wanted = {each.path: each for each in shipped}
        for each in shipped:
            self._settle_one(each, outcome, wanted)
        besides = {_beside(path) for path in wanted}
        for path, record in self.recorded.items():
            if path not in wanted and path not in besides:
                self._retire(path, record, outcome)
        if earlier and self.adopt:
            for path in earlier_files(self.places, set(wanted)):
                self._retire(path, None, outcome)
                inside = [folder for folder in path.parents if folder.is_relative_to(self.places.home)]
                outcome.emptied.update(inside[:-1])
        return outcome

    def _settle_one(self, each: Shipped, outcome: Outcome, wanted: Mapping[Path, Shipped]) -> None:
        record = self.recorded.get(each.path)
        found = look(each.path)
        blocked = _blocked(each.path, self.places) if found.there is There.OTHER else None
        decision = decide(
            each.kind,
            each.sha256,
            record,
            found,
            familiar=self._familiar(each, found) if record is None else False,
            adopt=self.adopt,
            restore=self.restore,
        )
        outcome.lines.append(FileLine(each.path, decision))
        if decision.act is Act.REFUSE:
            outcome.refused.append(f"{blocked or each.path} ({decision.why})")
            return
        self._keep_apart(each.path, found, decision, outcome)
        if decision.writes:
            outcome.changes.append(Change(each.path, each.content, found.sha256, each.mode))
        outcome.records.append(self._record(each, record, decision))
        self._settle_beside(each, decision, outcome)

    def _familiar(self, each: Shipped, found: Found) -> bool:
        if found.there is not There.FILE:
            return False
        return is_familiar(each, content(each.path)) or is_listed(self.places, each.path)

    def _record(self, each: Shipped, record: OwnedFile | None, decision: Decision) -> OwnedFile:
        stays = decision.act in (Act.EDITED, Act.DELETED) and record is not None
        return OwnedFile(
            path=self.places.name(each.path),
            kind=each.kind,
            shipped=each.sha256,
            installed=record.installed if stays and record is not None else each.sha256,
            version=self.version,
        )

    def _settle_beside(self, each: Shipped, decision: Decision, outcome: Outcome) -> None:
        """Ours beside an edited file, for as long as it differs."""
        path = _beside(each.path)
        record = self.recorded.get(path)
        if decision.act is Act.EDITED and (decision.beside or record is not None):
            ours = Shipped(path, each.content, Kind.BESIDE)
            found = look(path)
            again = decide(
                Kind.BESIDE, ours.sha256, record, found, familiar=True, adopt=True, restore=decision.beside
            )
            outcome.lines.append(FileLine(path, again))
            self._keep_apart(path, found, again, outcome)
            if again.writes:
                outcome.changes.append(Change(path, ours.content, found.sha256, 0o644))
            outcome.records.append(self._record(ours, record, again))
        elif record is not None:
            self._retire(path, record, outcome)

    def _retire(self, path: Path, record: OwnedFile | None, outcome: Outcome) -> None:
        found = look(path)
        kind = record.kind if record is not None else Kind.BUNDLE
        decision = decide(kind, None, record, found, adopt=self.adopt)
        outcome.lines.append(FileLine(path, decision))
        self._keep_apart(path, found, decision, outcome)
        if decision.act is Act.RETIRE:
            outcome.changes.append(Change(path, None, found.sha256))

    def _keep_apart(self, path: Path, found: Found, decision: Decision, outcome: Outcome) -> None:
        if not decision.keep_apart or found.sha256 is None or decision.act is Act.FORGET:
            return
        relative = path.relative_to(path.anchor) if not path.is_relative_to(self.places.home) else None
        inside = relative or path.relative_to(self.places.home)
        target = self.places.kept / self.apart / inside
        if look(target).sha256 != found.sha256:
            outcome.changes.append(Change(target, content(path), look(target).sha256, 0o600))


def folders_of(paths: Iterable[Path], made: Iterable[Path]) -> list[Path]:
    """The folders that Baton made above these paths, innermost first."""
    ours = set(made)
    above = {folder for path in paths for folder in path.parents if folder in ours}
    return sorted(above, key=lambda folder: len(folder.parts), reverse=True)


def _beside(path: Path) -> Path:
    return path.with_name(path.name + BESIDE)


def _blocked(path: Path, places: Places) -> Path | None:
    """The nearest thing above a path that is no folder."""
    for parent in path.parents:
        if parent == places.home.parent:
            return None
        if parent.exists() and not parent.is_dir():
            return parent
    return None
