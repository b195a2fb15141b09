"""Whatever is wrong with a call is said in one line, and nothing has been created then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.contract.errors import InvalidInput, Unsupported
from baton.contract.session import Session
from engine.conftest import Desk

SURROGATE = "\ud800"

GOOD: dict[str, Any] = {"objective": "Mend it", "allowedFiles": ["src/"]}

BAD_TASKS: dict[str, tuple[dict[str, Any], str]] = {
    "key in snake case": ({"allowed_files": ["src"]}, "did you mean 'allowedFiles'"),
    "misspelt key": ({"verificationComands": []}, "did you mean 'verificationCommands'"),
    "misspelt key further in": ({"contextCapsule": {"invarients": []}}, "did you mean 'invariants'"),
    "key of nothing": ({"zzz": 1}, "known keys: "),
    "no objective": ({"objective": None}, "delegate_task.objective"),
    "blank objective": ({"objective": " \n "}, "objective: must not be empty"),
    "endless objective": ({"objective": "x" * 200_001}, "objective"),
    "objective with NUL": ({"objective": "a\0b"}, "objective: must not contain a NUL"),
    "objective with half a character": ({"objective": f"a{SURROGATE}"}, "unicode"),
    "criterion with half a character": ({"acceptanceCriteria": [SURROGATE]}, "unicode"),
    "capsule with NUL": ({"contextCapsule": {"invariants": ["\0"]}}, "NUL"),
    "label with NUL": ({"label": "a\0b"}, "label"),
    "label with half a character": ({"label": SURROGATE}, "label"),
    "role with half a character": ({"role": SURROGATE}, "role"),
    "tier with half a character": ({"tier": SURROGATE}, "tier"),
    "effort with half a character": ({"effort": SURROGATE}, "effort"),
    "nothing allowed": ({"allowedFiles": []}, "allowedFiles: required"),
    "a string for a list": ({"allowedFiles": "src"}, "allowedFiles"),
    "empty pattern": ({"allowedFiles": [""]}, "allowedFiles: pattern '' is empty"),
    "blank pattern": ({"allowedFiles": ["src", "  "]}, "is empty"),
    "negated pattern": ({"allowedFiles": ["src", "!src/a.py"]}, "is a negation"),
    "negated forbidden pattern": (
        {"forbiddenFiles": ["!src"]},
        "forbiddenFiles: pattern '!src' is a negation",
    ),
    "negated hidden pattern": ({"hiddenFiles": ["!src"]}, "hiddenFiles"),
    "absolute pattern": ({"allowedFiles": ["/etc"]}, "is absolute"),
    "Windows pattern": ({"allowedFiles": ["C:\\x"]}, "is absolute"),
    "pattern in a home": ({"allowedFiles": ["~/.ssh"]}, "home"),
    "pattern that leaves": ({"allowedFiles": ["../other"]}, "leaves the workspace"),
    "pattern that leaves later": ({"allowedFiles": ["src/../../other"]}, "leaves the workspace"),
    "hidden pattern that leaves": ({"hiddenFiles": ["../x"]}, "leaves the workspace"),
    "pattern for git": ({"allowedFiles": [".git/hooks"]}, "never writable"),
    "pattern with NUL": ({"allowedFiles": ["a\0"]}, "control character"),
    "pattern with half a character": ({"allowedFiles": [SURROGATE]}, "lone surrogate"),
    "pattern with braces": ({"allowedFiles": ["src/{a,b}.py"]}, "one pattern for each"),
    "pattern that is a comment": ({"allowedFiles": ["# all"]}, "comment"),
    "both role and tier": ({"role": "luna-worker", "tier": "luna"}, "not both"),
    "unknown role": ({"role": "luna-worke"}, "luna-worker"),
    "unknown tier": ({"tier": "mars"}, "luna"),
    "unknown effort": ({"effort": "mediun"}, "did you mean 'medium'"),
    "effort of no kind": ({"effort": "qqqqqq"}, "low, medium, high"),
    "unknown intent": ({"changeIntent": "maybe"}, "changeIntent"),
    "unknown category": ({"taskCategory": "cooking"}, "taskCategory"),
    "and": ({"verificationCommands": ["a && b"]}, "uses &&"),
    "pipe": ({"verificationCommands": ["a | b"]}, "uses |"),
    "sequence": ({"verificationCommands": ["a; b"]}, "uses ;"),
    "redirection": ({"verificationCommands": ["a > b"]}, "uses >"),
    "background": ({"verificationCommands": ["a &"]}, "uses &"),
    "substitution": ({"verificationCommands": ["echo $(id)"]}, "uses $("),
    "backticks": ({"verificationCommands": ["echo `id`"]}, "uses `"),
    "variable": ({"verificationCommands": ["echo $HOME"]}, "variable"),
    "two lines": ({"verificationCommands": ["a\nb"]}, "newline"),
    "open quote": ({"verificationCommands": ["echo 'x"]}, "without its match"),
    "only a variable": ({"verificationCommands": ["A=1"]}, "names no program"),
    "empty command": ({"verificationCommands": [""]}, "empty"),
    "empty argument list": ({"verificationCommands": [[]]}, "at least a program"),
    "argument with NUL": ({"verificationCommands": [["echo", "\0"]]}, "NUL"),
    "argument with half a character": ({"verificationCommands": [["echo", SURROGATE]]}, "Unicode"),
    "id in capitals": ({"id": "Task"}, "id: must be 1 to 40"),
    "id with a slash": ({"id": "a/b"}, "id: must be 1 to 40"),
    "id with a line feed": ({"id": "a\n"}, "id: must be 1 to 40"),
    "empty id": ({"id": ""}, "id: must be 1 to 40"),
    "long id": ({"id": "a" * 41}, "id: must be 1 to 40"),
    "no time": ({"timeoutSeconds": 0}, "timeoutSeconds"),
    "too much time": ({"timeoutSeconds": 86_401}, "timeoutSeconds"),
    "time that is no number": ({"timeoutSeconds": float("nan")}, "timeoutSeconds"),
    "too long a wait": ({"waitSeconds": 281}, "waitSeconds"),
    "negative wait": ({"waitSeconds": -1}, "waitSeconds"),
    "depends on nobody": ({"dependsOn": ["t9"]}, "no task 't9'"),
    "depends on itself": ({"id": "a", "dependsOn": ["a"]}, "circle"),
    "unknown integration": ({"integrate": "yes"}, "integrate"),
}


@pytest.mark.codex
@pytest.mark.parametrize("name", BAD_TASKS)
def test_a_bad_task_is_refused_in_one_line(desk: Desk, name: str) -> None:
    fault, expected = BAD_TASKS[name]
    call = {**GOOD, "workspace": str(desk.repository), **fault}
    if fault.get("objective", "") is None:
        del call["objective"]
    error = desk.refuses(call)
    assert isinstance(error, InvalidInput)
    assert expected in error.message


BAD_BATCHES: dict[str, tuple[dict[str, Any], str]] = {
    "no tasks": ({"tasks": []}, "tasks"),
    "tasks that are none": ({"tasks": ["do it"]}, "tasks[0]"),
    "misspelt key in a task": ({"tasks": [GOOD, {**GOOD, "forbiden": []}]}, "tasks[1].forbiden: unknown key"),
    "key of a call in a task": ({"tasks": [{**GOOD, "workspace": "/x"}]}, "tasks[0].workspace: unknown key"),
    "misspelt key beside": ({"tasks": [GOOD], "maxParalel": 2}, "did you mean 'maxParallel'"),
    "no workers": ({"tasks": [GOOD], "maxParallel": 0}, "maxParallel"),
    "unknown mode": ({"tasks": [GOOD], "mode": "random"}, "mode"),
    "an id twice": ({"tasks": [{**GOOD, "id": "a"}, {**GOOD, "id": "a"}]}, "'a' is given twice"),
    "unknown predecessor": ({"tasks": [{**GOOD, "id": "a", "dependsOn": ["b"]}]}, "no task 'b'"),
    "circle": (
        {"tasks": [{**GOOD, "id": "a", "dependsOn": ["b"]}, {**GOOD, "id": "b", "dependsOn": ["a"]}]},
        "circle among a, b",
    ),
    "circle by order": (
        {"mode": "sequential", "tasks": [{**GOOD, "id": "a", "dependsOn": ["b"]}, {**GOOD, "id": "b"}]},
        "circle among a, b",
    ),
    "a bad task among good ones": ({"tasks": [GOOD, {**GOOD, "allowedFiles": ["../x"]}]}, "tasks.t2"),
}


@pytest.mark.codex
@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused_as_a_whole(desk: Desk, name: str) -> None:
    fault, expected = BAD_BATCHES[name]
    error = desk.refuses({"workspace": str(desk.repository), **fault})
    assert isinstance(error, InvalidInput)
    assert expected in error.message


@pytest.mark.codex
@pytest.mark.parametrize(
    ("workspace", "expected"),
    [
        ("src", "must be an absolute path"),
        ("", "workspace"),
        ("{repository}/nothing", "does not exist"),
        ("{repository}/src/a.py", "is not a folder"),
        ("{repository}/.git", "git"),
        ("{repository}/../bare.git", "bare"),
        ("{repository}/../broken", "git cannot use the repository"),
        ("/", "root of the file system"),
        ("{home}", "home folder"),
        ("{home}/..", "home folder"),
        ("{repository}/a\0b", "workspace"),
        (f"{{repository}}/{SURROGATE}", "workspace"),
    ],
)
def test_a_workspace_that_cannot_be_one_is_refused(
    desk: Desk, own_home: Path, workspace: str, expected: str
) -> None:
    named = workspace.replace("{repository}", str(desk.repository)).replace("{home}", str(own_home))
    error = desk.refuses({**GOOD, "workspace": named})
    assert isinstance(error, InvalidInput | Unsupported)
    assert expected in error.message


@pytest.mark.codex
def test_without_a_session_the_workspace_must_be_named(desk: Desk) -> None:
    assert "give its absolute path" in desk.refuses(GOOD).message


@pytest.mark.codex
def test_a_session_that_may_not_read_the_workspace_gets_nothing_done_there(desk: Desk) -> None:
    entries = [{"path": {"type": "path", "path": "/usr"}, "access": "read"}]
    profile = {"type": "managed", "file_system": {"type": "restricted", "entries": entries}}
    state = {"permissionProfile": profile, "sandboxCwd": "file:///usr"}
    error = desk.refuses({**GOOD, "workspace": str(desk.repository)}, Session(cwd="/usr", profile=state))
    assert "may not read" in error.message


@pytest.mark.codex
@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("person", "[deadlines\n", "policy.toml"),
        ("person", "[deadlines]\nidle_secnds = 3\n", "did you mean 'idle_seconds'"),
        ("person", '[deadlines]\nidle_seconds = "soon"\n', "deadlines.idle_seconds: expected a"),
        ("person", "[roles.mine]\ntier = 'luna'\n", "roles.mine"),
        ("person", "[routing]\ndefault_role = 'nobody'\n", "routing.default_role"),
        ("project", "[deadlines\n", "baton.toml"),
        ("project", "[nothing]\nx = 1\n", "nothing: unknown key"),
        ("project", "[concurrency]\nmax_parallel = 400\n", "a project may not set 400"),
        ("project", "[network]\nworker_hosts = ['example.com']\n", "a project may not set"),
        ("project", "[checks]\nunsandboxed = [['sh']]\n", "a project may not set"),
        ("project", "[environment]\npass_to_workers = ['SECRET']\n", "a project may not set"),
    ],
)
def test_a_policy_that_is_wrong_or_widens_is_refused(
    own_desk: Desk, file: str, text: str, expected: str
) -> None:
    path = (
        own_desk.codex_home / "baton/policy.toml"
        if file == "person"
        else own_desk.repository / ".codex/baton.toml"
    )
    path.parent.mkdir()
    path.write_text(text)
    error = own_desk.refuses({**GOOD, "workspace": str(own_desk.repository)})
    assert isinstance(error, InvalidInput)
    assert expected in error.message
    assert str(path) in error.message


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (None, "does not exist"),
        ("#!/bin/sh\necho codex-cli 0.162.9\n", "0.163.0 or newer is needed"),
        ("#!/bin/sh\necho something else 9.9.9\n", "did not answer --version as Codex does"),
        ("#!/bin/sh\nexit 1\n", "did not answer"),
    ],
)
def test_without_a_codex_that_is_new_enough_nothing_is_begun(
    own_desk: Desk, test_root: Path, program: str | None, expected: str
) -> None:
    path = test_root / "codex"
    if program is not None:
        path.write_text(program)
        path.chmod(0o755)
    error = own_desk.with_env(BATON_CODEX_BIN=str(path)).refuses(
        {**GOOD, "workspace": str(own_desk.repository)}
    )
    assert isinstance(error, Unsupported)
    assert expected in error.message


def test_a_codex_that_cannot_be_executed_is_said(own_desk: Desk, test_root: Path) -> None:
    (test_root / "codex").write_text("#!/bin/sh\n")
    changed = own_desk.with_env(BATON_CODEX_BIN=str(test_root / "codex"))
    assert "cannot be executed" in changed.refuses({**GOOD, "workspace": str(own_desk.repository)}).message


def test_a_config_of_codex_that_cannot_be_read_is_said_with_its_place(own_desk: Desk) -> None:
    (own_desk.codex_home / "config.toml").write_text("model = [\n")
    error = own_desk.refuses({**GOOD, "workspace": str(own_desk.repository)})
    assert str(own_desk.codex_home / "config.toml") in error.message


@pytest.mark.parametrize("version", [None, "git version 2.37.9"])
def test_without_a_git_that_is_new_enough_nothing_is_begun(
    own_desk: Desk, test_root: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    programs = test_root / "bin"
    programs.mkdir()
    if version is not None:
        (programs / "git").write_text(f"#!/bin/sh\necho {version}\n")
        (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    error = own_desk.with_env(PATH=str(programs)).refuses({**GOOD, "workspace": str(own_desk.repository)})
    assert isinstance(error, Unsupported)
    assert "git" in error.message


@pytest.mark.codex
def test_scope_that_cannot_be_prevented_is_refused_where_the_policy_demands_it(own_desk: Desk) -> None:
    policy = own_desk.codex_home / "baton/policy.toml"
    policy.parent.mkdir()
    policy.write_text("[enforcement]\nrequire_prevention = true\n")
    call = {**GOOD, "workspace": str(own_desk.repository), "allowedFiles": ["src/**/*.py"]}
    error = own_desk.refuses(call)
    assert isinstance(error, InvalidInput | Unsupported)
    assert "only detected" in error.message
    assert own_desk.answer({**call, "allowedFiles": ["src/"], "dryRun": True})["scope"] == "prevented"
