"""Single keys of the person's policy file are changed, and nothing is lost on the way."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from baton.contract.errors import StateUnavailable, WrongState
from baton.policy.faults import KeyPath
from baton.policy.layer import PERSON_FILE
from baton.policy.load import load_policy
from baton.policy.person import read_person, write_keys

MODEL: KeyPath = ("consult", "agents", "claude", "model")
CODING: KeyPath = ("consult", "agents", "claude", "scores", "coding")


@pytest.fixture
def home() -> Path:
    folder = Path(os.environ["CODEX_HOME"])
    (folder / PERSON_FILE).parent.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", '[consult.agents.claude]\nmodel = "m-1"\nscores = {coding = 5}\n'),
        (
            "consult.enabled = false # not yet\n",
            "consult.enabled = false # not yet\n\n"
            '[consult.agents.claude]\nmodel = "m-1"\nscores = {coding = 5}\n',
        ),
        (
            "[consult.agents.claude.scores] # mine\ncoding = 3 # three\n",
            "[consult.agents.claude]\n"
            'model = "m-1"\n\n[consult.agents.claude.scores] # mine\ncoding = 5 # three\n',
        ),
        (
            "[consult.agents.claude]\nmodel = 'm' # single\nscores.coding = 3\n# end",
            '[consult.agents.claude]\nmodel = "m-1" # single\nscores.coding = 5\n# end',
        ),
    ],
)
def test_keys_are_written_where_a_person_would(home: Path, old: str, new: str) -> None:
    (home / PERSON_FILE).write_text(old)
    changes = write_keys(read_person(home), {MODEL: "m-1", CODING: 5})
    assert (home / PERSON_FILE).read_text() == new
    assert changes == ('consult.agents.claude.model = "m-1"', "consult.agents.claude.scores.coding = 5")
    assert (home / PERSON_FILE).with_name("policy.toml.bak").read_text() == old
    assert write_keys(read_person(home), {MODEL: "m-1", CODING: 5}) == ()


@pytest.mark.parametrize("meanwhile", [b"# mine\n", None])
def test_a_file_that_changed_since_it_was_read_stays(home: Path, meanwhile: bytes | None) -> None:
    file = home / PERSON_FILE
    file.write_text("")
    read = read_person(home)
    file.unlink()
    if meanwhile is not None:
        file.write_bytes(meanwhile)
    with pytest.raises(WrongState, match="has been changed meanwhile"):
        write_keys(read, {MODEL: "m-1"})
    assert (file.read_bytes() if file.exists() else None) == meanwhile
    assert not read.backup.exists()


def test_of_many_who_read_the_same_file_one_writes(home: Path) -> None:
    read = read_person(home)
    start = threading.Barrier(6)
    ended: list[str] = []

    def write(number: int) -> None:
        start.wait()
        try:
            write_keys(read, {CODING: number})
        except WrongState:
            ended.append("refused")
        else:
            ended.append(f"wrote {number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [one for one in ended if one != "refused"]
    assert winner == f"wrote {load_policy(home, None).consult.agents['claude'].scores['coding']}"


def test_a_file_that_cannot_be_replaced_is_told_and_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / PERSON_FILE
    file.write_text("# mine\n")
    read = read_person(home)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateUnavailable, match="No space left on device; nothing was changed"):
        write_keys(read, {MODEL: "m-1"})
    assert [(path.name, path.read_text()) for path in file.parent.iterdir()] == [("policy.toml", "# mine\n")]


def test_every_other_content_has_another_fingerprint(home: Path) -> None:
    file = home / PERSON_FILE
    seen = {read_person(home).fingerprint}
    for text in ("", "\n", "# mine\n", "[consult]\nenabled = true\n"):
        file.write_text(text)
        seen.add(read_person(home).fingerprint)
    assert len(seen) == 5
