"""`baton demo`: the main job on a small project, with the real Codex CLI and scripted workers."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import anyio
import click
from platformdirs import user_cache_path

from baton.contract.calls import InspectCall, InspectWhat
from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.house import House
from baton.engine.service import Service
from baton.policy.bundle import bundle_root
from baton.simulate.demonstration import CHECK, PROJECT, Scene, scenes
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.workspace.git import Git

_COLOURS = {"verified": "green", "failed": "red"}


@click.command()
@click.option("--keep", is_flag=True, help="Leave the project and the state of the demonstration in place.")
def demo(keep: bool) -> None:
    """Three delegated tasks on a small project: what is caught, prevented and applied.

    The Codex program, its sandbox, git and everything of Baton's are real. The model is simulated: scripted
    answers from a server on this machine. No login and no network are needed.
    """
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=_parent()))
    try:
        anyio.run(_play, folder)
    finally:
        if keep:
            click.echo(f"kept: {folder}")
            state = shlex.quote(f"BATON_STATE={folder / 'state'}")
            click.echo(f"look at its runs: env {state} {_command()} runs list (show RUN, report RUN …)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _command() -> str:
    """How the command is called here: by its name where that is on PATH, else from the checkout."""
    checkout = bundle_root() / "scripts" / "baton"
    if shutil.which("baton") or not checkout.is_file():
        return "baton"
    return shlex.quote(str(checkout))


def _parent() -> Path:
    """A folder of ours outside the system's temporary one, where Codex keeps no home."""
    parent = user_cache_path("baton", appauthor=False) / "demo"
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return parent


async def _play(folder: Path) -> None:
    workspace = folder / "till"
    _make_project(workspace)
    click.echo("baton demo: the real Codex CLI, sandbox and git; SIMULATED workers (a scripted model).")
    click.echo(f"A project whose check fails: `{CHECK}`\n")
    with ScriptedModel() as model:
        home = write_simulated_home(folder / "home" / ".codex", model.port)
        env = _environment(folder, home)
        with House.open(env) as house:
            service = Service(house)
            played = scenes()
            for number, scene in enumerate(played, start=1):
                model.on(scene.marker, *scene.steps)
                click.secho(f"[{number}/{len(played)}] {scene.title} (simulated)", bold=True)
                result = await _delegate(service, workspace, scene)
                tell(result, scene)
            await _finish(service, house, workspace)


async def _delegate(service: Service, workspace: Path, scene: Scene) -> dict[str, Any]:
    call = TaskCall(
        objective=f"{scene.marker}: the count of each item is forgotten in till/prices.py.",
        allowed_files=list(scene.allowed),
        verification_commands=[CHECK],
    )
    return await service.delegate_task(call, Session(cwd=str(workspace)))


def tell(result: dict[str, Any], scene: Scene) -> None:
    """Print what became of a scene. Raises `BatonError` where it is not what the scene is to show."""
    claim = result.get("claim", {})
    evidence = result.get("evidence", {})
    click.echo(f"   the worker claims   {claim.get('status', 'nothing')}: {claim.get('summary', '')}")
    click.echo(f"   Baton observes      {', '.join(evidence.get('changes', [])) or 'no change'}")
    for check in evidence.get("checks", []):
        text = check if isinstance(check, str) else f"{check['status']}: {check['command']}"
        click.echo(f"   check, run again    {text}")
        if isinstance(check, dict) and check.get("output"):
            click.echo(f"                       {str(check['output']).strip().splitlines()[-1]}")
    click.echo(f"   scope               {evidence.get('scope')}")
    for line in evidence.get("discrepancies", []):
        click.secho(f"   discrepancy         {line}", fg="yellow")
    if result.get("attempts", 1) > 1:
        what = "told what fails, then tried at a higher effort: the same claim"
        click.echo(f"   attempts            {result['attempts']}: {what}")
    verdict = str(result.get("verdict"))
    colour = _COLOURS.get(verdict, "yellow")
    shown = click.style(verdict, fg=colour, bold=True)
    click.echo(f"   verdict             {shown} ({result.get('integration', 'not applied')})")
    found = verdict, _first_status(evidence.get("checks", [])), str(evidence.get("scope"))
    if found != scene.outcome:
        raise BatonError(
            f"the demonstration went wrong: {scene.title}: found {', '.join(found)}"
            f" where {', '.join(scene.outcome)} was to be shown; `baton doctor` says what is amiss here"
        )
    click.secho(f"   => {scene.shows}\n", fg="cyan")


def _first_status(checks: list[Any]) -> str:
    """How the check ended: told alone where it passed."""
    if not checks:
        return "no check"
    return str(checks[0]["status"]) if isinstance(checks[0], dict) else str(checks[0]).partition(":")[0]


async def _finish(service: Service, house: House, workspace: Path) -> None:
    last = house.ledger.runs(1)[0]
    diff = await service.inspect_run(InspectCall(run_id=last.run_id, what=InspectWhat.DIFF), Session())
    click.echo("What landed in the workspace:")
    for line in str(diff["text"]).splitlines():
        if line.startswith(("+", "-")):
            click.echo(f"   {line}")
    check = subprocess.run(CHECK.split(), cwd=workspace, capture_output=True, text=True, check=False)
    click.echo(f"\n`{CHECK}` in the workspace now: {(check.stdout + check.stderr).strip().splitlines()[-1]}")
    if check.returncode != 0:
        raise BatonError("the demonstration went wrong: the project's check should pass now")


def _make_project(workspace: Path) -> None:
    for name, text in PROJECT.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # With none of the person's settings, which may sign commits or run hooks.
    git = Git.find()
    names = {
        f"GIT_{who}_{what}": "demo@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["commit", "-q", "-m", "A project with a fault"],
    ):
        git.own(command, git_dir=workspace / ".git", work_tree=workspace, env=names)


def _environment(folder: Path, home: Path) -> dict[str, str]:
    """A home and state of the demonstration's own: nothing of the person's is read or written."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "CODEX_HOME"))}
    return {**kept, "HOME": str(home.parent), "CODEX_HOME": str(home), "BATON_STATE": str(folder / "state")}
