"""`baton doctor`: what works, what does not, and what to do about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from baton.cli.shown import echo_json, many_lines
from baton.contract.errors import BatonError, InvalidInput
from baton.install.check_files import worst
from baton.install.doctor import Doctor
from baton.install.findings import Finding, Grade
from baton.install.places import Places
from baton.install.shipped import Package
from baton.policy.bundle import bundle_root

_SIGNS = {Grade.OK: "ok  ", Grade.NOTE: "note", Grade.WARNING: "warn", Grade.FAILURE: "FAIL"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option(
    "--project", type=click.Path(path_type=Path), metavar="DIR", help="Look at this project as well."
)
@click.option("--live", is_flag=True, help="Also run one tiny real task with your login; it costs tokens.")
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely, then look again.")
@click.option("--from", "source", type=click.Path(path_type=Path), hidden=True)
@click.pass_context
def doctor(
    ctx: click.Context, as_json: bool, project: Path | None, live: bool, fix: bool, source: Path | None
) -> None:
    """Look at everything between you and the first delegated task.

    Exit status 0 when all works, 1 when something does not. Without --live nothing is sent to any model: the
    session of Codex that is tried gets its answers from a script on this machine.
    """
    if project is not None and not project.is_dir():
        raise InvalidInput(f"--project {project}: no such folder")
    env = dict(os.environ)
    places = Places.find(env)
    examined = Doctor(env, places, Package((source or bundle_root()).absolute()), project)
    findings = _examine(examined, quiet=as_json)
    repaired = _repair(findings) if fix else []
    if repaired:
        for line in repaired:
            click.echo(f"fixed  {line}", err=as_json)
        findings = _examine(examined, quiet=as_json)
    outcome: dict[str, Any] = {}
    if live:
        from baton.cli.doctor_live import run_live

        finding, outcome = run_live(env)
        findings.append(finding)
        if not as_json:
            _tell(finding)
    failed = worst(findings) is Grade.FAILURE
    if as_json:
        data = {"ok": not failed, "findings": [finding.wire() for finding in findings], "fixed": repaired}
        echo_json({**data, **({"live": outcome} if live else {})})
    ctx.exit(1 if failed else 0)


def _examine(examined: Doctor, quiet: bool) -> list[Finding]:
    findings = []
    for finding in examined.examine():
        findings.append(finding)
        if not quiet:
            _tell(finding)
    return findings


def _repair(findings: list[Finding]) -> list[str]:
    """Each kind of repair once, however many findings ask for it."""
    done: dict[str, str] = {}
    for finding in findings:
        if finding.repair is None or finding.check in done:
            continue
        try:
            done[finding.check] = f"{finding.check}: {finding.repair()}"
        except BatonError as error:
            done[finding.check] = f"{finding.check}: could not be repaired: {error.message}"
    return list(done.values())


def _tell(finding: Finding) -> None:
    click.echo(many_lines(f"{_SIGNS[finding.grade]}  {finding.check}: {finding.message}"))
    if finding.fix and finding.grade is not Grade.OK:
        click.echo(many_lines(f"      -> {finding.fix}"))
