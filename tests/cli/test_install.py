"""What `baton install` tells of what it did, or would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.cli.install import _tell
from baton.install.plan import Act, Decision
from baton.install.report import FileLine, Report
from cli.conftest import Run


def test_a_project_is_told_by_its_whole_path(
    run: Run, test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = test_root / "shop"
    project.mkdir()
    monkeypatch.chdir(project)
    assert f" in {project}: " in run("install", "--project", ".").stdout.splitlines()[-1]
    assert run("uninstall", "--project", ".").stdout.splitlines()[-1].startswith(f"Baton out of {project}: ")
    assert f"recorded in {project}" in run("uninstall", "--project", ".").stderr


def test_files_that_are_counted_are_listed_or_said_not_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    home = Path("/home/x/.codex")
    program = [FileLine(home / f"baton/bundle/{name}", Decision(Act.INSTALL)) for name in range(1200)]
    own = [FileLine(home / f"agents/{name}.toml", Decision(Act.INSTALL)) for name in ("a", "b")]
    _tell(Report((*program, *own), (), True, dry_run=True), "Baton 1 in there", as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        f"install  {home}/agents/a.toml",
        f"install  {home}/agents/b.toml",
        "Baton 1 in there: 1,202 files would change, 1,200 of them the program's and not listed",
    ]
    _tell(Report((own[0],), (), True), "Baton 1 in there", as_json=False)
    assert capsys.readouterr().out.splitlines()[-1] == "Baton 1 in there: 1 file changed"
