"""Wrong use of the `baton` command: one line, no traceback, exit status 2; what the machine refuses is 1."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cli.conftest import Run


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nonsense",), "baton has no command 'nonsense'"),
        (("run",), "did you mean 'runs'?"),
        (("--nonsense",), "see `baton --help`"),
        (("runs", "frob"), "baton runs has no command 'frob'; commands: diff, evidence, export, "),
        (("runs", "show"), "Missing argument 'RUN'; see `baton runs show --help`"),
        (("runs", "list", "--limit", "x"), "see `baton runs list --help`"),
        (("policy", "show", "extra"), "see `baton policy show --help`"),
        (("demo", "--frob"), "see `baton demo --help`"),
    ],
)
def test_wrong_use_is_one_line_that_says_where_to_look(
    run: Run, arguments: tuple[str, ...], told: str
) -> None:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.startswith("baton: ")
    assert done.stderr.count("\n") == 1


def test_help_tells_whole_sentences(run: Run) -> None:
    for arguments in ([], ["policy"], ["runs"]):
        done = run(*arguments, "--help")
        assert done.exit_code == 0
        assert "..." not in done.output.partition("Commands:")[2]


def test_demonstration_without_git_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    done = run("demo")
    assert done.exit_code == 1
    assert "git was not found on PATH" in done.stderr.splitlines()[-1]
    assert isinstance(done.exception, SystemExit)


def test_folder_that_is_gone_is_one_line(run: Run, test_root: Path) -> None:
    gone = test_root / "gone"
    gone.mkdir()
    before = Path.cwd()
    os.chdir(gone)
    shutil.rmtree(gone)
    try:
        done = run("policy", "show")
    finally:
        os.chdir(before)
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("baton: No such file or directory")


def test_foreign_names_in_errors_and_faults_do_nothing_to_a_terminal(run: Run, test_root: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\u202e"
    project = test_root / "folder" / ".codex"
    project.mkdir()
    (project / "baton.toml").write_text('"\\u001b[2J\\u202e" = 1\n')
    for arguments in (
        (hostile,),
        ("runs", "show", hostile),
        ("activity", hostile),
        ("runs", "list", "--since", hostile),
        ("runs", "list", "--state", hostile),
        ("policy", "check"),
        ("policy", "show"),
    ):
        done = run(*arguments)
        assert done.exit_code != 0, arguments
        assert all(char.isprintable() or char == "\n" for char in done.stdout + done.stderr), arguments
        assert "\\x1b" in done.stdout + done.stderr, arguments


def test_a_name_that_is_not_utf8_is_shown_as_an_escape(run: Run) -> None:
    done = run("runs", "show", os.fsdecode(b"r\xff"))
    assert done.exit_code == 1
    assert done.stderr == "baton: no run 'r\\udcff'; `baton runs list` lists the runs\n"
