"""An installation that is killed, hindered or met by another: the old state or the new, never between."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from baton.contract.errors import Busy, NotFound, StateUnavailable
from baton.install import journal
from baton.install.installer import Wish, uninstall
from baton.install.report import Report
from baton.ledger.locks import FileLock
from install.home import AGENT, PRESETS, Home, Picture, picture, without_own

ONE = {**PRESETS, "agents/retired.toml": AGENT.format("1")}
TWO = {name: text.replace("one", "two") for name, text in PRESETS.items()}
CONFIG = "# mine\nmodel = 'x'\n"


class _Killed(BaseException):
    """Stands where a kill would strike, when steps are only counted."""


def first(home: Home, checkpoint: journal.Checkpoint) -> Report:
    return home.installer("1.0.0", ONE, checkpoint=checkpoint).install(Wish())


def upgrade(home: Home, checkpoint: journal.Checkpoint) -> Report:
    return home.installer("2.0.0", TWO, checkpoint=checkpoint).install(Wish(upgrade=True))


def removal(home: Home, checkpoint: journal.Checkpoint) -> Report:
    return uninstall(home.places, checkpoint=checkpoint)


Action = Callable[[Home, journal.Checkpoint], Report]


def prepare(home: Home, action: Action) -> None:
    """The home as it is before an action: furnished, and for all but the first one with Baton in it."""
    home.write("config.toml", CONFIG)
    if action is not first:
        home.install("1.0.0", ONE)
        home.write("agents/luna-worker.toml", "my edit")


def kill_at(number: int) -> journal.Checkpoint:
    """A checkpoint at which the process is gone, without any clean-up."""
    left = iter(range(number, -1, -1))

    def checkpoint(_: str) -> None:
        if next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return checkpoint


def in_child(act: Callable[[], object]) -> int:
    """Run in a forked process; its wait status."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def without_backups(seen: Picture) -> Picture:
    return {name: entry for name, entry in seen.items() if "baton/backups" not in name}


@pytest.mark.parametrize("action", [first, upgrade, removal])
def test_after_a_kill_at_any_step_the_next_command_completes_or_undoes(home: Home, action: Action) -> None:
    prepare(home, action)
    before = home.picture()
    old = without_backups(before)
    steps: list[str] = []
    action(home, steps.append)
    new = without_backups(home.picture())
    assert len(steps) > 10 and {"written", "folders", "staged", "swapped", "in place", "tidy", "done"} <= set(
        steps
    )
    for number in range(len(steps)):
        restore(home, before)
        status = in_child(lambda number=number: action(home, kill_at(number)))
        assert os.WIFSIGNALED(status), f"step {number} was not reached"
        settle(home)
        swapping = number >= steps.index("staged")
        after = without_backups(home.picture())
        assert after == (new if swapping else old), f"killed at step {number} ({steps[number]})"


@pytest.mark.parametrize("action", [first, upgrade, removal])
def test_after_a_kill_while_it_was_being_undone_the_next_command_goes_on_undoing(
    home: Home, action: Action
) -> None:
    prepare(home, action)
    before = home.picture()
    old = without_backups(before)
    steps: list[str] = []
    with pytest.raises(_Killed):
        action(home, undoing(steps))
    assert home.picture() == before
    begin = steps.index("put back" if action is first else "returning")
    for number in range(begin, len(steps)):
        restore(home, before)
        status = in_child(lambda number=number: action(home, undoing([], kill_at(number))))
        assert os.WIFSIGNALED(status), f"step {number} was not reached"
        settle(home)
        assert without_backups(home.picture()) == old, f"killed at step {number} ({steps[number]})"


@pytest.mark.parametrize("action", [first, upgrade, removal])
def test_when_the_disk_refuses_to_tidy_up_it_is_said_and_the_next_command_does_it(
    home: Home, action: Action
) -> None:
    prepare(home, action)
    before = home.picture()
    action(home, lambda _: None)
    new = without_backups(home.picture())
    restore(home, before)

    def refuse(step: str) -> None:
        if step == "in place":
            raise OSError(5, "Input/output error", "somewhere")

    with pytest.raises(StateUnavailable, match="everything is in place, but somewhere"):
        action(home, refuse)
    settle(home)
    assert without_backups(home.picture()) == new


def test_a_journal_whose_writing_was_cut_short_is_cleared_away(home: Home) -> None:
    before = home.picture()
    home.packages.mkdir()
    home.write("baton/.journal.json.new", '{"swapp')
    settle(home)
    assert home.picture() == before


def undoing(steps: list[str], then: journal.Checkpoint = lambda _: None) -> journal.Checkpoint:
    """A checkpoint at whose fourth swap the installation is called off; then `then` is told."""

    def checkpoint(step: str) -> None:
        steps.append(step)
        then(step)
        if step == "swapped" and steps.count("swapped") == 4:
            raise _Killed

    return checkpoint


def test_what_comes_back_is_the_owners_and_in_the_group_it_was(home: Home) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    config = home.write("config.toml", CONFIG)
    os.chown(config, 1234, 4321)
    with pytest.raises(_Killed):
        first(home, lambda step: stop() if step == "in place" else None)
    settle(home)
    home.install("1.0.0", ONE)
    assert (config.stat().st_uid, config.stat().st_gid) == (1234, 4321)
    before = home.picture()
    steps: list[str] = []
    with pytest.raises(_Killed):
        removal(home, undoing(steps))
    assert "returning" in steps and home.picture() == before
    assert (config.stat().st_uid, config.stat().st_gid) == (1234, 4321)


def settle(home: Home) -> None:
    """What the next command does first, of one that then has nothing to do."""
    with pytest.raises(NotFound):
        uninstall(home.places, project=home.packages)


@pytest.mark.parametrize("beside", [None, "a file of mine, with that name"])
def test_an_edit_made_between_a_kill_and_the_next_command_is_not_overwritten(
    home: Home, beside: str | None
) -> None:
    prepare(home, upgrade)
    home.write("agents/luna-worker.toml", ONE["agents/luna-worker.toml"])
    reached: list[str] = []
    before = home.picture()
    upgrade(home, reached.append)
    restore(home, before)
    status = in_child(lambda: upgrade(home, kill_at(reached.index("staged"))))
    assert os.WIFSIGNALED(status)
    home.write("agents/luna-worker.toml", "edited just now")
    if beside is not None:
        home.write("agents/luna-worker.toml.baton-new", beside)
    report = home.install("2.0.0", TWO)
    assert "completed" in " ".join(report.notes)
    assert home.read("agents/luna-worker.toml") == "edited just now"
    assert home.read("agents/luna-worker.toml.baton-new") == (beside or TWO["agents/luna-worker.toml"])


@pytest.mark.parametrize("action", [first, upgrade, removal])
def test_when_the_disk_refuses_at_any_step_everything_is_as_it_was(home: Home, action: Action) -> None:
    prepare(home, action)
    before = home.picture()
    counted: list[str] = []
    with pytest.raises(_Killed):
        action(home, lambda step: counted.append(step) if step != "in place" else stop())
    restore(home, before)
    for number in range(len(counted)):
        refuse = refusing_at(number)
        with pytest.raises(StateUnavailable, match=r"no space left.*nothing was changed"):
            action(home, refuse)
        assert home.picture() == before, f"refused at step {number} ({counted[number]})"


def stop() -> None:
    raise _Killed


def restore(home: Home, before: Picture) -> None:
    """Put a home back to a picture of it."""
    subprocess.run(["rm", "-rf", home.user], check=True)
    home.user.mkdir()
    for name, (kind, mode, content) in sorted(before.items()):
        path = home.user / name
        if kind == "folder":
            path.mkdir()
        else:
            path.write_bytes(content)
        path.chmod(mode)


def refusing_at(number: int) -> journal.Checkpoint:
    left = iter(range(number, -1, -1))

    def checkpoint(_: str) -> None:
        if next(left, None) == 0:
            raise OSError(28, "No space left on device", "somewhere")

    return checkpoint


@pytest.fixture
def small_disk(test_root: Path) -> Iterator[Path]:
    """A file system of 64 KiB; only root can mount one."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    folder = test_root / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine mounts nothing")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_leaves_the_home_as_it_was(small_disk: Path, test_root: Path) -> None:
    home = Home(small_disk / "user", test_root / "packages")
    home.write("config.toml", CONFIG)
    before = home.picture()
    big = {**PRESETS, "skills/orchestrate-work/references/big.md": "x" * 60_000}
    with pytest.raises(StateUnavailable, match="no space left"):
        home.install("1.0.0", big)
    assert home.picture() == before


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, also where the one that runs the tests is root."""
    folder = Path(tempfile.mkdtemp(prefix="baton-test-"))
    folder.chmod(0o777)
    yield folder
    subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    shutil.rmtree(folder)


@pytest.mark.parametrize("locked", [".codex", ".codex/agents", ".local/bin"])
def test_a_read_only_folder_is_one_line_and_changes_nothing(
    home: Home, open_folder: Path, locked: str
) -> None:
    # Once as the one who runs this: a user who may read nothing else can load no further module.
    home.install()
    there = Home(open_folder / "user", open_folder / "packages")
    there.write("agents/mine.toml", "mine")
    (there.user / ".local" / "bin").mkdir(parents=True)
    installer = there.installer()
    (there.user / locked).chmod(0o500)
    before = there.picture()

    def attempt() -> None:
        give_up_root(there.user)
        try:
            installer.install(Wish())
        except StateUnavailable as error:
            (open_folder / "said").write_text(error.message)

    in_child(attempt)
    said = (open_folder / "said").read_text()
    assert "nothing was changed" in said and "\n" not in said and locked in said
    assert there.picture() == before


def give_up_root(user: Path) -> None:
    """Become somebody to whom permissions apply, and own the home."""
    if os.geteuid() != 0:
        return
    for folder, names, files in os.walk(user):
        for name in ("", *names, *files):
            os.chown(Path(folder, name), 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)


def test_two_installers_at_once_leave_one_whole_installation(home: Home) -> None:
    home.write("config.toml", CONFIG)
    installer = home.installer()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            try:
                installer.install(Wish())
                os._exit(0)
            except BaseException:
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0, 0]
    assert not home.install().changed
    assert home.read("config.toml").count("[mcp_servers.baton]") == 1
    home.uninstall()
    assert home.picture().keys() == {".codex", ".codex/config.toml"}
    assert home.read("config.toml") == CONFIG


def test_a_target_that_changes_while_files_are_staged_stops_the_installation(home: Home) -> None:
    home.write("config.toml", CONFIG)

    def meddle(step: str) -> None:
        if step == "staged":
            home.write("config.toml", "# written by Codex meanwhile\n")

    with pytest.raises(Busy, match=r"config\.toml was changed"):
        first(home, meddle)
    assert home.picture().keys() == {".codex", ".codex/config.toml"}
    assert home.read("config.toml") == "# written by Codex meanwhile\n"


def test_an_installer_waits_for_another_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.places.own.mkdir()
    lock = FileLock(home.places.lock)
    lock.acquire()
    done = threading.Event()
    thread = threading.Thread(target=lambda: (home.install(), done.set()))
    thread.start()
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        assert not done.wait(0.05)
    lock.release()
    thread.join(30)
    assert done.is_set()


def test_a_damaged_journal_is_said_and_not_guessed_at(home: Home) -> None:
    home.install()
    home.write("baton/journal.json", "{")
    with pytest.raises(StateUnavailable, match=r"journal\.json cannot be read"):
        home.install()


def test_after_a_clean_installation_nothing_of_the_way_there_is_left(home: Home) -> None:
    home.install()
    names = {Path(name).name for name in home.picture()}
    assert not any(".baton-" in name or "journal" in name for name in names if not name.startswith("baton-"))
    assert without_own(home.picture()) and picture(home.user) == home.picture()
