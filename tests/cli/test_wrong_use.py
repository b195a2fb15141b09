"""Wrong use of the `baton` command: one line, no traceback, exit status 2; what the machine refuses is 1."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from baton.cli.group import Program
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from cli.conftest import Run
from cli.ledgers import add_run, start


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
        (("install", "--project"), "requires an argument; see `baton install --help`"),
        (("runs", "list", "--json=yes"), "does not take a value; see `baton runs list --help`"),
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


def test_a_question_that_nobody_answers_says_how_to_agree() -> None:
    @click.group(cls=Program)
    def program() -> None:
        pass

    @program.command()
    def ask() -> None:
        click.confirm("send it?", abort=True, err=True)

    done = CliRunner().invoke(program, ["ask"], input="")
    assert done.exit_code == 130
    assert (
        done.stderr.splitlines()[-1] == "baton: nobody is there to answer; --yes agrees without being asked"
    )


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


DAMAGE = {
    "state of a run": "UPDATE runs SET state = 'dreaming'",
    "state of a task": "UPDATE tasks SET state = 'dreaming'",
    "contract": "UPDATE tasks SET contract = '{half'",
    "dependencies": "UPDATE tasks SET depends_on = '{}'",
    "event": "UPDATE events SET data = '[half'",
    "kind of an event's data": "UPDATE events SET data = '[1]'",
    "result": "UPDATE attempts SET result = '{half'",
}


@pytest.mark.parametrize("sql", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_record_is_one_line_in_every_command_that_reads_it(run: Run, sql: str) -> None:
    with Ledger.open(StateFolder.find()) as ledger:
        add_run(ledger, "r1")
        start(ledger, "r1", "one")
        with ledger.db.transaction() as db:
            db.execute(sql)
    failed = 0
    for arguments in (
        ("activity",),
        ("activity", "r1", "--json"),
        ("runs", "list"),
        ("runs", "show", "r1"),
        ("runs", "log", "r1"),
        ("runs", "evidence", "r1"),
        ("report", "r1"),
        ("usage",),
    ):
        done = run(*arguments)
        failed += done.exit_code
        if done.exit_code:
            assert (done.exit_code, done.stderr.count("\n")) == (1, 1), arguments
            assert done.stderr.startswith("baton: "), arguments
            assert "cannot be read" in done.stderr or "a fault of Baton's own" in done.stderr, arguments
    assert failed, "no command noticed"


def test_what_nobody_expected_is_one_line_that_says_how_to_see_more(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("two\nlines \x1b[2J")

    monkeypatch.setattr(StateFolder, "find", broken)
    done = run("activity")
    assert done.exit_code == 1
    assert done.stderr == (
        "baton: a fault of Baton's own (RuntimeError: two lines \\x1b[2J); BATON_LOG=debug shows where\n"
    )
