"""Git is run without the environment's or anybody's configuration in the way, and always ends."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from baton.contract.errors import StateUnavailable
from baton.workspace.git import Git, GitFailed


@pytest.fixture
def fake(tmp_path):
    """A program in git's place whose body a test writes."""

    def make(body: str) -> Git:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\nimport os, sys, subprocess, time\n{body}\n")
        program.chmod(0o755)
        return Git(program, (2, 39, 0), Git.find().environment)

    return make


def test_variables_of_git_are_removed_and_others_stay():
    git = Git.find({"PATH": os.environ["PATH"], "GIT_DIR": "/x", "git_work_tree": "/y", "HTTPS_PROXY": "p"})
    assert "GIT_DIR" not in git.environment and "git_work_tree" not in git.environment
    assert git.environment["HTTPS_PROXY"] == "p"
    assert git.environment["GIT_ALLOW_PROTOCOL"] == "none"


def test_own_repositories_see_no_configuration_but_their_own(person, own_home, tmp_path):
    (own_home / ".gitconfig").write_text("[alias]\n\tx = y\n[user]\n\tname = somebody\n")
    git = Git.find()
    listed = git.own(["config", "--list"], git_dir=person.root / ".git").stdout
    assert b"alias.x" not in listed and b"somebody" not in listed
    assert b"alias.x" in git.theirs(["config", "--list"], cwd=person.root).stdout


def test_a_command_beyond_its_deadline_is_ended_with_its_children(fake, tmp_path):
    pid = tmp_path / "pid"
    git = fake(
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    with pytest.raises(GitFailed, match="did not end within"):
        git.theirs(["status"], cwd=tmp_path, timeout=3)
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid.read_text()], capture_output=True, text=True)
    assert state.stdout.strip()[:1] in ("", "Z")


def test_output_beyond_the_limit_is_cut_and_the_command_ended(fake, tmp_path):
    git = fake("while True: sys.stdout.write('x' * 65536)")
    out = git.theirs(["log"], cwd=tmp_path, max_output=1000)
    assert (out.stdout, out.cut) == (b"x" * 1000, True)


def test_output_of_exactly_the_limit_is_whole(fake, tmp_path):
    out = fake("sys.stdout.write('x' * 1000)").theirs(["log"], cwd=tmp_path, max_output=1000)
    assert (len(out.stdout), out.cut) == (1000, False)


def test_a_failure_is_one_line_with_the_command_and_gits_reason(person):
    with pytest.raises(GitFailed) as caught:
        Git.find().theirs(["rev-parse", "--verify", "nonsense"], cwd=person.root)
    assert "git rev-parse failed" in caught.value.message
    assert "fatal: Needed a single revision" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_full_disk_is_said_as_such(fake, tmp_path):
    git = fake("sys.stderr.write('error: unable to write file: No space left on device\\n'); sys.exit(128)")
    with pytest.raises(StateUnavailable, match="no space left"):
        git.theirs(["add"], cwd=tmp_path)


def test_standard_input_is_closed_and_large_input_does_not_block(fake, tmp_path):
    git = fake("sys.stdout.write('y' * 300000 + str(len(sys.stdin.read())))")
    assert git.theirs(["x"], cwd=tmp_path).stdout.endswith(b"y0")
    assert git.theirs(["x"], cwd=tmp_path, input=b"z" * 300_000).stdout.endswith(b"y300000")


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    with pytest.raises(GitFailed, match="is gone"):
        Git.find().theirs(["status"], cwd=tmp_path / "gone")
