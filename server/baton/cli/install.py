"""`baton install` and `baton uninstall`: what is done is decided in the room `install`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from baton.cli.shown import echo_json
from baton.contract.errors import BatonError, InvalidInput, NotFound, WrongState
from baton.contract.wording import many
from baton.install import surroundings
from baton.install.installer import Installer, Wish
from baton.install.installer import uninstall as remove
from baton.install.places import Places
from baton.install.plan import Act
from baton.install.plugin import PLUGIN, CodexCommands
from baton.install.purge import purge_state
from baton.install.report import CHANGING, Report
from baton.install.shipped import Package
from baton.policy.bundle import bundle_root

_FOLDER = click.Path(path_type=Path)

_TOLD = {
    Act.INSTALL: "install",
    Act.REPLACE: "replace",
    Act.ADOPT: "take over",
    Act.RETIRE: "remove",
    Act.EDITED: "keep",
    Act.DELETED: "leave out",
    Act.RELEASE: "leave",
}


@click.command()
@click.option("--upgrade", is_flag=True, help="Bring an installation to this version; your edits stay.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--uninstall", "removing", is_flag=True, help="Remove it again, as `baton uninstall` does.")
@click.option("--project", type=_FOLDER, metavar="DIR", help="Only put the agents into DIR/.codex/agents.")
@click.option("--agents-only/--all-parts", default=None, help="Install the agents alone.")
@click.option("--no-config/--config", default=None, help="Leave config.toml alone.")
@click.option("--plugin", is_flag=True, help="Skills and server as a plugin, by Codex's own commands.")
@click.option("--adopt", is_flag=True, help="Take over files that are structurally Baton's.")
@click.option("--restore", is_flag=True, help="Put back what you deleted.")
@click.option("--from", "source", type=_FOLDER, hidden=True, help="The bundle to install from.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def install(
    ctx: click.Context,
    upgrade: bool,
    dry_run: bool,
    removing: bool,
    project: Path | None,
    agents_only: bool | None,
    no_config: bool | None,
    plugin: bool,
    adopt: bool,
    restore: bool,
    source: Path | None,
    as_json: bool,
) -> None:
    """Install Baton into $CODEX_HOME or ~/.codex: skills, agents, server, and the `baton` command.

    Done as a whole or not at all, and again without effect. Files that are not Baton's are never overwritten:
    a first installation names those in its way, and an upgrade puts its version beside a file you edited.
    """
    if removing:
        ctx.invoke(uninstall, project=project, dry_run=dry_run, as_json=as_json)
        return
    project = _whole(project)
    if plugin and (agents_only or no_config or project):
        raise InvalidInput("--plugin goes with none of --project, --agents-only and --no-config")
    env = dict(os.environ)
    places = Places.find(env)
    package = Package((source or bundle_root()).absolute())
    codex, why = surroundings.find_or_why(env, places)
    if plugin and codex is None:
        raise InvalidInput(f"--plugin needs Codex: {why}")
    presets = package.presets(places, codex.models if codex else None)
    installer = Installer(places, package, presets)
    plugin = plugin or (upgrade and project is None and CodexCommands(Path("codex"), places, env).is_ours())
    wish = Wish(upgrade, dry_run, adopt, restore, agents_only, no_config, keep_parts=plugin)
    report = installer.install_project(project, wish) if project else installer.install(wish)
    if plugin and codex is not None and not dry_run:
        CodexCommands(codex.binary.path, places, env).add()
        # Only now that the plugin is in do the parts that it replaces go.
        after = installer.install(Wish(adopt=adopt))
        report = Report((*report.files, *after.files), (*report.notes, *after.notes), True)
    if why is not None:
        note = f"{why}; the agents name the models that Baton ships with, install again once Codex is there"
        report = Report(report.files, (*report.notes, note), report.changed, report.dry_run)
    _tell(report, f"Baton {package.version()} in {project or places.home}", as_json)


@click.command()
@click.option("--project", type=_FOLDER, metavar="DIR", help="Only remove the agents of DIR/.codex/agents.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--purge", is_flag=True, help="Also remove the state folder: all runs and their results.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def uninstall(project: Path | None, dry_run: bool, as_json: bool, purge: bool = False) -> None:
    """Remove what Baton installed; everything else is left byte for byte.

    Files that you edited stay and are named. Runs and their results stay in the state folder unless --purge.
    """
    project = _whole(project)
    env = dict(os.environ)
    places = Places.find(env)
    if project is None and not dry_run:
        _remove_plugin(places, env)
    try:
        report = remove(places, project=project, dry_run=dry_run)
    except NotFound as nothing:
        # Where only the plugin was, or a checkout, there is a state folder all the same.
        if not purge or project is not None:
            raise
        report = Report((), (nothing.message,), False, dry_run)
    if purge and project is None:
        report = Report(report.files, (*report.notes, purge_state(env, dry_run)), True, dry_run)
    own = places.home / "baton" / "policy.toml"
    if project is None and own.exists():
        report = Report(
            report.files, (*report.notes, f"your own policy stays: {own}"), report.changed, dry_run
        )
    _tell(report, f"Baton out of {project or places.home}", as_json)


def _whole(project: Path | None) -> Path | None:
    """The folder by its whole path, as it is told; links on the way are left as they are."""
    return None if project is None else Path(os.path.abspath(project))  # noqa: PTH100


def _remove_plugin(places: Places, env: dict[str, str]) -> None:
    """The plugin comes from the installed copy, so it goes before that does."""
    if not CodexCommands(Path("codex"), places, env).is_ours():
        return
    try:
        codex = surroundings.find(env, places)
    except BatonError as error:
        raise WrongState(
            f"the plugin {PLUGIN} goes first, by Codex's own command: {error.message}; nothing was changed"
        ) from None
    CodexCommands(codex.binary.path, places, env).remove()


def _tell(report: Report, what: str, as_json: bool) -> None:
    if as_json:
        echo_json(report.wire())
        return
    for line in report.files:
        # The many files of the program are counted, the person's named.
        named = line.decision.why or report.dry_run or line.decision.act is not Act.KEEP
        if named and line.decision.act in _TOLD and not _is_program(line.path):
            why = f"  ({line.decision.why})" if line.decision.why else ""
            click.echo(f"{_TOLD[line.decision.act]}  {line.path}{why}")
        elif line.decision.why and _is_program(line.path):
            click.echo(f"{_TOLD[line.decision.act]}  {line.path}  ({line.decision.why})")
    for note in report.notes:
        click.echo(note)
    changing = [line.path for line in report.files if line.decision.act in CHANGING]
    told = f"{many(len(changing), 'file')} {'would change' if report.dry_run else 'changed'}"
    if program := sum(map(_is_program, changing)):
        told += f", {program:,} of them the program's and not listed"
    click.echo(f"{what}: {told if report.changed else 'nothing to do'}")


def _is_program(path: Path) -> bool:
    return "baton/bundle/" in path.as_posix()
