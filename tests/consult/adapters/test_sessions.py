"""Conversations in the state folder are removed one by one, and when they were not used for long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from baton.consult.adapters.program import own_folder
from baton.consult.adapters.protocol import Runtime
from baton.consult.sessions import database_of, forget, sweep
from consult.adapters.conftest import Desk

DAY = 86400.0


def opencode(desk: Desk, name: str) -> Path:
    database = database_of(desk.house, name)
    database.write_text("x")
    database.with_name(f"{database.name}-wal").write_text("x")
    return database


def copilot(desk: Desk, name: str) -> Path:
    home = own_folder(desk.house, "copilot", "home")
    folder = home / "session-state" / name
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text("x")
    (home / "usage").mkdir(exist_ok=True)
    (home / "usage" / f"{name}.json").write_text("{}")
    return folder


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    for entry in (path, *path.rglob("*"), *path.parent.glob(f"{path.name}-*")):
        os.utime(entry, (then, then))


def test_one_conversation_is_removed_and_the_others_stay(desk: Desk) -> None:
    gone, kept = opencode(desk, "ses_a"), opencode(desk, "ses_b")
    assert forget(desk.house, Runtime.OPENCODE, "ses_a")
    assert not gone.exists() and not gone.with_name("ses_a.db-wal").exists()
    assert kept.exists()
    folder = copilot(desk, "11111111-1111-4111-8111-111111111111")
    assert forget(desk.house, Runtime.COPILOT, folder.name)
    assert not folder.exists()
    assert not list((folder.parents[1] / "usage").iterdir())


def test_what_was_not_used_for_long_is_removed(desk: Desk) -> None:
    old, new = opencode(desk, "ses_old"), opencode(desk, "ses_new")
    stale, fresh = copilot(desk, "aaaa"), copilot(desk, "bbbb")
    written = copilot(desk, "cccc")
    for path in (old, stale, written):
        age(path, 40 * DAY)
    os.utime(own_folder(desk.house, "copilot", "home") / "usage" / "aaaa.json", (0, 0))
    (written / "events.jsonl").write_text("more")  # the folder itself is as old as before
    assert sweep(desk.house, 30 * DAY) == 2
    assert [path.exists() for path in (old, new, stale, fresh, written)] == [False, True, False, True, True]


@pytest.mark.parametrize("name", ["../home", "", ".", "..", "a/b"])
def test_a_name_never_leads_elsewhere(desk: Desk, name: str) -> None:
    copilot(desk, "aaaa")
    assert not forget(desk.house, Runtime.COPILOT, name)
    assert not forget(desk.house, Runtime.OPENCODE, name)
    assert (own_folder(desk.house, "copilot", "home") / "session-state" / "aaaa").exists()


def test_what_others_keep_is_not_ours_to_remove(desk: Desk) -> None:
    assert not forget(desk.house, Runtime.CLAUDE, "11111111-1111-4111-8111-111111111111")
    assert not forget(desk.house, Runtime.CODEX, "11111111-1111-4111-8111-111111111111")
