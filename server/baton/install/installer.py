"""Installs, upgrades and removes Baton in a person's home, each as one change that holds or never happens."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton.contract.errors import InvalidInput, NotFound, StateUnavailable, WrongState
from baton.install.config_edit import Edit, drop_server, put_server
from baton.install.config_text import read_text
from baton.install.decisions import Files, Outcome, folders_of
from baton.install.disk import digest, look
from baton.install.familiar import is_entry_point
from baton.install.journal import (
    Change,
    Checkpoint,
    carry_out,
    interrupted,
    recover,
    refused,
)
from baton.install.owned import Owned, OwnedFile, read_owned
from baton.install.places import Places, shown
from baton.install.report import Report
from baton.install.shipped import Package, Shipped, agents, skills
from baton.install.writing import missing_folders, remove_empty
from baton.ledger.locks import FileLock
from baton.policy.hard_link import hard_link_note

LOCK_SECONDS = 120.0
"""How long one installer waits for another."""


@dataclass(frozen=True)
class Wish:
    """What a person asks of an installation. None: as it was the last time."""

    upgrade: bool = False
    dry_run: bool = False
    adopt: bool = False
    restore: bool = False
    agents_only: bool | None = None
    no_config: bool | None = None
    keep_parts: bool = False
    """Leave skills and server entry as they are: the plugin that replaces them is not in yet."""


@dataclass(frozen=True)
class Installer:
    """Installations of one package into one home."""

    places: Places
    package: Package
    presets: Mapping[str, str]
    """Skills and agents as rendered for this person."""
    checkpoint: Checkpoint = field(default=lambda _: None)

    def install(self, wish: Wish) -> Report:
        """Install into the home, or bring what is there up to this version.

        Raises `InvalidInput` when something foreign is in the way or config.toml cannot be read, `WrongState`
        when an upgrade was not asked for or there is none to do, `StateUnavailable` when the disk refuses,
        `Busy` while another installer is at work. In every case nothing was changed.
        """
        with _alone(self.places, wish.dry_run) as entered:
            owned = read_owned(self.places.owned)
            self._check_upgrade(owned, wish)
            return self._install_home(owned, wish, entered)

    def install_project(self, project: Path, wish: Wish) -> Report:
        """Put the agents into a project. Raises as `install` does."""
        folder = project_agents(project)
        shown(folder)
        with _alone(self.places, wish.dry_run) as entered:
            owned = read_owned(self.places.owned) or self._new()
            recorded = {path: file for path, file in _recorded(self.places, owned) if path.parent == folder}
            files = self._files(recorded, wish)
            outcome = files.settle(agents(self.presets, folder))
            outcome.check(project)
            others = [file for path, file in _recorded(self.places, owned) if path not in recorded]
            after = owned.model_copy(update={"files": (*others, *outcome.records)})
            return _do(self.places, outcome, after, wish.dry_run, entered, self.checkpoint)

    def _check_upgrade(self, owned: Owned | None, wish: Wish) -> None:
        there = owned is not None and any(is_home(self.places, path) for path, _ in _all(self.places, owned))
        if not there and wish.upgrade and not wish.adopt:
            raise WrongState(f"nothing is installed in {self.places.home} yet; install without --upgrade")
        if owned is not None and there and not wish.upgrade and owned.content != self.package.content():
            raise WrongState(
                f"another Baton ({owned.version}) is installed in {self.places.home}; --upgrade replaces it"
                f" with this one ({self.package.version()}) and keeps your edits"
            )

    def _install_home(self, owned: Owned | None, wish: Wish, entered: _Entered) -> Report:
        agents_only = _chosen(wish.agents_only, owned.agents_only if owned else False)
        no_config = _chosen(wish.no_config, owned.no_config if owned else False)
        content = read_config(self.places.config)
        plugin = plugin_in(read_text(content or b"", self.places.config).data)
        recorded = {path: file for path, file in _recorded(self.places, owned) if is_home(self.places, path)}
        wanted = self._wanted(agents_only, plugin is not None, recorded if wish.keep_parts else None)
        if not agents_only and is_entry_point(self.places.command):
            wanted = [each for each in wanted if each.path != self.places.command]
            entered.notes.append(
                f"{self.places.command} is the command of a Python package, and stays as it is"
            )
        outcome = self._files(recorded, wish).settle(wanted, earlier=True)
        outcome.check(self.places.home)
        entry = owned.config if owned else None
        if plugin is not None and not wish.keep_parts:
            edit = drop_server(content, entry, self.places.config)
            entered.notes.append(
                f"skills and server come from the plugin {plugin}: there is one server, the plugin's"
            )
        elif agents_only or no_config or (wish.keep_parts and entry is None):
            edit = Edit(content, entry)
        else:
            values = self.package.server_entry(self.places)
            edit = put_server(
                content, values, entry, self.places.config, adopt=wish.adopt, restore=wish.restore
            )
        entered.notes.extend(edit.notes)
        _add_config(self.places, outcome, content, edit, entered)
        others = [file for path, file in _recorded(self.places, owned) if path not in recorded]
        after = (owned or self._new()).model_copy(
            update={
                "version": self.package.version(),
                "content": self.package.content(),
                "files": (*outcome.records, *others),
                "config": edit.entry,
                "agents_only": agents_only,
                "no_config": no_config,
            }
        )
        return _do(self.places, outcome, after, wish.dry_run, entered, self.checkpoint)

    def _wanted(
        self, agents_only: bool, plugin: bool, present: Mapping[Path, OwnedFile] | None
    ) -> list[Shipped]:
        """What is to be there; with `present`, of the skills only those that are."""
        wanted = agents(self.presets, self.places.home / "agents")
        if agents_only:
            return wanted
        own = skills(self.presets, self.places.home / "skills")
        if present is not None:
            own = [each for each in own if each.path in present]
        elif plugin:
            own = []
        return [*self.package.bundle(self.places), *own, *wanted, self.package.command(self.places)]

    def _files(self, recorded: Mapping[Path, OwnedFile], wish: Wish) -> Files:
        apart = next(name for name in map(str, itertools.count(1)) if not (self.places.kept / name).exists())
        return Files(
            self.places,
            self.package.version(),
            recorded,
            adopt=wish.adopt,
            restore=wish.restore,
            apart=apart,
        )

    def _new(self) -> Owned:
        return Owned(version=self.package.version(), content="")


def uninstall(
    places: Places,
    *,
    project: Path | None = None,
    dry_run: bool = False,
    checkpoint: Checkpoint = lambda _: None,
) -> Report:
    """Remove what Baton owns, in the home and every project or only in one; edited files stay.

    Raises `NotFound` when nothing is installed, and as `Installer.install` does.
    """
    with _alone(places, dry_run) as entered:
        owned = read_owned(places.owned)
        folder = project_agents(project) if project is not None else None
        recorded = {path: file for path, file in _recorded(places, owned) if folder in (None, path.parent)}
        if owned is None or not (recorded or (folder is None and owned.config)):
            raise NotFound(f"nothing of Baton's is recorded in {project or places.home}")
        outcome = Files(places, owned.version, recorded).settle([])
        after = None
        if folder is not None:
            others = tuple(file for path, file in _recorded(places, owned) if path not in recorded)
            after = owned.model_copy(update={"files": others}) if others or owned.config else None
        elif owned.config is not None:
            content = read_config(places.config)
            edit = drop_server(content, owned.config, places.config)
            entered.notes.extend(edit.notes)
            _add_config(places, outcome, content, edit, entered)
        if after is None and places.kept.exists():
            entered.notes.append(f"files of yours that had given way stay in {places.kept}")
        return _do(places, outcome, after, dry_run, entered, checkpoint)


def read_config(file: Path) -> bytes | None:
    """config.toml's bytes; None when there is none. Raises `InvalidInput` when it cannot be read."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        if file.is_symlink():
            raise InvalidInput(f"{file}: a link that leads nowhere; nothing was changed") from None
        return None
    except NotADirectoryError:
        return None
    except OSError as error:
        raise InvalidInput(f"{file}: cannot be read: {error.strerror}; nothing was changed") from None


def plugin_in(data: Mapping[str, Any]) -> str | None:
    """The name under which Baton is enabled as a plugin in a parsed config.toml."""
    plugins = data.get("plugins")
    if not isinstance(plugins, dict):
        return None
    for name, settings in plugins.items():
        if name.split("@")[0] == "baton" and isinstance(settings, dict) and settings.get("enabled", True):
            return str(name)
    return None


def project_agents(project: Path) -> Path:
    """Where a project's agents lie. Raises `InvalidInput` for what is no folder."""
    if not project.is_dir():
        raise InvalidInput(f"{project}: no such folder")
    return project.resolve() / ".codex" / "agents"


def is_home(places: Places, path: Path) -> bool:
    """Whether an owned path belongs to the home's installation, not to a project's."""
    return path.is_relative_to(places.home) or path == places.command


def projects_in(places: Places, owned: Owned | None) -> list[Path]:
    """Projects with agents of ours, sorted."""
    found = {path.parents[2] for path, _ in _recorded(places, owned) if not is_home(places, path)}
    return sorted(found)


def _recorded(places: Places, owned: Owned | None) -> Iterator[tuple[Path, OwnedFile]]:
    return _all(places, owned) if owned is not None else iter(())


def _all(places: Places, owned: Owned) -> Iterator[tuple[Path, OwnedFile]]:
    return ((places.path(file.path), file) for file in owned.files)


def _chosen(asked: bool | None, before: bool) -> bool:
    return before if asked is None else asked


def _add_config(
    places: Places, outcome: Outcome, content: bytes | None, edit: Edit, entered: _Entered
) -> None:
    if edit.content != content:
        if content is not None and (note := hard_link_note(places.config)) is not None:
            entered.notes.append(note)
        # Through the link, if it is one: the link is the person's.
        before = None if content is None else digest(content)
        change = Change(places.config.resolve(), edit.content, before)
        # The entry comes after the server it starts, and goes before it.
        outcome.changes.insert(len(outcome.changes) if edit.entry else 0, change)


@dataclass(frozen=True)
class _Entered:
    """The home, entered alone."""

    notes: list[str]
    made: list[Path]
    """Folders that had to be made for it."""


@contextmanager
def _alone(places: Places, dry_run: bool) -> Iterator[_Entered]:
    """Hold the home's lock, with whatever was cut short settled."""
    if dry_run:
        first = "an interrupted installation would be settled first"
        yield _Entered([first] if interrupted(places) else [], [])
        return
    entered = _Entered([], missing_folders([places.own]))
    lock = FileLock(places.lock)
    try:
        places.home.mkdir(parents=True, exist_ok=True)
        places.own.mkdir(mode=0o700, exist_ok=True)
        lock.acquire(LOCK_SECONDS)
    except OSError as error:
        remove_empty(_deepest(entered.made))
        raise refused(error, places.own) from None
    except StateUnavailable as error:
        remove_empty(_deepest(entered.made))
        raise StateUnavailable(f"{error.message}; nothing was changed") from None
    try:
        settled = recover(places)
        if settled is not None:
            entered.notes.append(settled.note)
            entered.made.extend(settled.emptied if not places.owned.exists() else ())
        yield entered
    finally:
        if not places.owned.exists() and not interrupted(places):
            lock.remove()
            remove_empty([places.own, *_deepest(set(entered.made))])
        lock.release()


def _do(
    places: Places,
    outcome: Outcome,
    after: Owned | None,
    dry_run: bool,
    entered: _Entered,
    checkpoint: Checkpoint,
) -> Report:
    """Carry the outcome out, with the new list of what is owned as its last change."""
    files, notes = tuple(outcome.lines), tuple(entered.notes)
    before = read_owned(places.owned)
    if dry_run or (not outcome.changes and after == before):
        return Report(files, notes, bool(outcome.changes), dry_run)
    made = {places.path(name) for name in (before.folders if before else ())} | set(entered.made)
    made.update(missing_folders([change.target.parent for change in outcome.changes]))
    gone = [change.target for change in outcome.changes if change.content is None]
    if after is not None:
        names = tuple(sorted(places.name(folder) for folder in made))
        content = after.model_copy(update={"folders": names}).encoded()
        prune = folders_of(gone, made | outcome.emptied)
    else:
        content = None
        prune = _deepest(made)
    last = Change(places.owned, content, look(places.owned).sha256, 0o600)
    carry_out(places, [*outcome.changes, last], prune, checkpoint, entered.made)
    if after is None:
        entered.made.extend(made)
    return Report(files, notes, True)


def _deepest(folders: Iterable[Path]) -> list[Path]:
    """Innermost first."""
    return sorted(folders, key=lambda folder: len(folder.parts), reverse=True)
