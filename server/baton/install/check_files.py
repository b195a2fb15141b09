"""The doctor on files: what is installed against what is shipped, presets, and what was left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from baton.contract.catalogue import ModelEntry
from baton.contract.errors import BatonError
from baton.contract.wording import many
from baton.install.config_edit import server_in
from baton.install.disk import There, digest, look
from baton.install.familiar import EARLIER_FOLDER, EARLIER_LIST
from baton.install.findings import Finding, Grade, failure, note, ok, warning
from baton.install.installer import plugin_in, projects_in
from baton.install.journal import interrupted
from baton.install.overview import agents_in
from baton.install.owned import Kind, Owned
from baton.install.places import Places
from baton.install.plugin import cached_copies
from baton.install.shipped import Package

Repair = Callable[[], str]


def check_installed(
    places: Places, owned: Owned | None, config: Mapping[str, Any], package: Package, reinstall: Repair
) -> Iterator[Finding]:
    """The home, the entry in config.toml and the plugin's copies against what this version ships."""
    plugin, entry = plugin_in(config), server_in(config)
    if interrupted(places):
        yield failure("installed", "an installation was cut short", "run `baton doctor --fix`", reinstall)
    if owned is None and plugin is None:
        if entry is None:
            yield failure("installed", f"nothing is installed in {places.home}", "run `baton install`")
        else:
            yield note("installed", "config.toml has a server `baton` that `baton install` did not write")
    if plugin is not None and entry is not None:
        yield warning(
            "installed",
            f"both the plugin {plugin} and config.toml have a server `baton`; Codex starts one of them",
            "run `baton install`: the plugin's stays",
            reinstall if owned is not None else None,
        )
    if owned is not None:
        yield from _compare(places, owned, package, reinstall)
    if plugin is not None:
        yield from _compare_plugin(places, package)


def check_presets(
    places: Places,
    owned: Owned | None,
    presets: Mapping[str, str],
    models: tuple[ModelEntry, ...],
    project: Path | None,
) -> Iterator[Finding]:
    """Agents whose model this Codex does not have, and agents that are not as they would be made now."""
    found = agents_in(places, project, presets, models)
    if project is None:
        for folder in projects_in(places, owned):
            if folder.is_dir():
                found += [each for each in agents_in(places, folder, presets, models) if each not in found]
    for agent in found:
        if agent.state == "stale":
            yield warning("presets", f"{agent.file} is not as it would be made now", "run `baton install`")
        elif agent.state not in ("as shipped", "edited", "yours"):
            yield warning("presets", f"{agent.file}: {agent.state}", "run `baton install`, or mend the file")
    yield ok(
        "presets",
        f"{many(len(found), 'agent')}, {sum(agent.state == 'as shipped' for agent in found)} as shipped",
    )


def check_trust(project: Path, config: Mapping[str, Any]) -> Finding:
    """Whether Codex reads the project's own `.codex` folder."""
    root = project.resolve()
    projects = config.get("projects")
    level = None
    for folder in (root, *root.parents):
        entry = projects.get(str(folder)) if isinstance(projects, dict) else None
        if isinstance(entry, dict) and entry.get("trust_level"):
            level = entry["trust_level"]
            break
    if level == "trusted":
        return ok("trust", f"{root} is trusted: Codex reads its .codex folder")
    if not (root / ".codex").exists():
        return ok("trust", f"{root} has no .codex folder")
    return warning(
        "trust",
        f"{root} is {level or 'not trusted'}: Codex ignores its .codex folder, agents included",
        "start Codex there once and trust the project",
    )


def check_leftovers(places: Places) -> Iterator[Finding]:
    """What lies about: our versions beside edits, files that had given way, the earlier layout."""
    for folder in ("skills", "agents"):
        for file in sorted((places.home / folder).rglob("*.baton-new")):
            yield note("leftovers", f"{file}: this version's, beside your edit", "merge it, then delete it")
    if places.kept.is_dir():
        yield note(
            "leftovers",
            f"{places.kept} holds files of yours that had given way",
            "delete what you do not need",
        )
    earlier = places.home / EARLIER_FOLDER
    if (earlier / EARLIER_LIST).is_file():
        yield note(
            "leftovers",
            f"{earlier} is an earlier layout's",
            "`baton install --upgrade --adopt` takes over what its list names",
        )
    elif earlier.is_dir():
        yield note(
            "leftovers",
            f"{earlier} is an earlier layout's, and has no list of what belongs to it",
            "delete what you do not need",
        )


def _compare(places: Places, owned: Owned, package: Package, reinstall: Repair) -> Iterator[Finding]:
    damaged: list[Path] = []
    edited: list[Path] = []
    gone: list[Path] = []
    for file in owned.files:
        path = places.path(file.path)
        found = look(path)
        part = file.kind in (Kind.BUNDLE, Kind.COMMAND)
        if found.there is There.NOTHING:
            (damaged if part else gone).append(path)
        elif found.sha256 not in (file.installed, file.shipped):
            (damaged if part else edited).append(path)
    if damaged:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        yield failure(
            "installed", f"{damaged[0]}{more} is not as installed", "run `baton install`", reinstall
        )
    for path in edited:
        yield note("installed", f"{path} is edited by you; it stays so")
    for path in gone:
        yield note("installed", f"{path} was deleted by you", "`baton install --restore` puts it back")
    try:
        same = owned.content in ("", package.content())
    except BatonError as error:
        yield note("installed", f"this program cannot be compared with what is installed: {error.message}")
        return
    if not same:
        yield warning(
            "installed",
            f"{places.home} has Baton {owned.version}, this program is {package.version()} of other content",
            "run `baton install --upgrade`",
        )
    elif not damaged:
        yield ok(
            "installed",
            f"Baton {owned.version} in {places.home}, {many(len(owned.files), 'file')} as shipped",
        )


def _compare_plugin(places: Places, package: Package) -> Iterator[Finding]:
    shipped = {name: digest(path.read_bytes()) for name, path in package.files().items()}
    for copy in cached_copies(places):
        differing = [name for name, sha256 in shipped.items() if look(copy / name).sha256 != sha256]
        if differing:
            yield warning(
                "plugin",
                f"{copy} differs from this version in {many(len(differing), 'file')}, such as {differing[0]}",
                "run `codex plugin add baton@<marketplace>` again: Codex copies a plugin only then",
            )
        else:
            yield ok("plugin", f"{copy} is as shipped")


def worst(findings: list[Finding]) -> Grade:
    """The worst grade of all."""
    order = list(Grade)
    return max((finding.grade for finding in findings), key=order.index, default=Grade.OK)
