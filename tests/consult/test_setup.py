"""Switching consultation on changes two kinds of keys in the person's policy, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from baton.consult.setup import set_up
from baton.contract.errors import InvalidInput, StateUnavailable
from baton.policy.layer import PERSON_FILE
from baton.policy.load import load_policy

OWN = """# mine
[concurrency]
max_workers = 3 # not more

[consult]
# off for now
enabled = false
keep_days = 7
"""


@pytest.fixture
def home() -> Path:
    folder = Path(os.environ["CODEX_HOME"])
    (folder / PERSON_FILE).parent.mkdir(parents=True)
    return folder


def test_with_no_file_it_is_made_for_its_owner_alone(home: Path) -> None:
    done = set_up(home, {})
    assert done.changes == ("consult.enabled = true",)
    assert load_policy(home, None).consult.enabled
    assert (home / PERSON_FILE).stat().st_mode & 0o777 == 0o600
    assert set_up(home, {}).changes == ()


def test_everything_else_in_the_file_stays_as_it_is(home: Path) -> None:
    file = home / PERSON_FILE
    file.write_text(OWN)
    file.chmod(0o640)
    set_up(home, {})
    assert file.read_text() == OWN.replace("enabled = false", "enabled = true")
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "text", ["", OWN, "consult.enabled = false\n", '[consult.agents.opencode]\neffort = "low"\n']
)
def test_an_agent_s_model_is_written_where_it_belongs(home: Path, text: str) -> None:
    (home / PERSON_FILE).write_text(text)
    done = set_up(home, {"opencode": "deepseek/deepseek-chat", "claude": "claude-opus-5-5"})
    rules = load_policy(home, None).consult
    assert rules.enabled
    assert rules.agents["opencode"].model == "deepseek/deepseek-chat"
    assert rules.agents["claude"].model == "claude-opus-5-5"
    assert 'consult.agents.opencode.model = "deepseek/deepseek-chat"' in done.changes
    assert set_up(home, {"claude": "claude-opus-5-5"}).changes == ()


def test_a_link_to_the_file_stays_a_link(home: Path, test_root: Path) -> None:
    real = test_root / "dotfiles.toml"
    real.write_text(OWN)
    (home / PERSON_FILE).symlink_to(real)
    set_up(home, {})
    assert (home / PERSON_FILE).is_symlink()
    assert "enabled = true" in real.read_text()


def test_a_hard_link_to_the_file_is_told_that_it_keeps_its_text(home: Path, test_root: Path) -> None:
    file, other = home / PERSON_FILE, test_root / "dotfiles.toml"
    file.write_text(OWN)
    other.hardlink_to(file)
    for dry_run in (True, False):
        note = set_up(home, {}, dry_run=dry_run).note
        assert note is not None and note.startswith(f"{file} is a hard link: its other names keep the text")
    assert other.read_text() == OWN and "enabled = true" in file.read_text()
    assert set_up(home, {}).note is None


def test_a_dry_run_writes_nothing(home: Path) -> None:
    assert set_up(home, {}, dry_run=True).changes == ("consult.enabled = true",)
    assert not (home / PERSON_FILE).exists()


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("[consult\n", {}),
        ("consult = 3\n", {}),
        ("[consult]\nenabeld = true\n", {}),
        ("", {"opencod": "a/b"}),
        ("", {"opencode": "not a model\n"}),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_and_nothing_is_changed(
    home: Path, text: str, models: dict[str, str]
) -> None:
    (home / PERSON_FILE).write_text(text)
    with pytest.raises(InvalidInput) as refused:
        set_up(home, models)
    assert len(refused.value.message.splitlines()) == 1
    assert (home / PERSON_FILE).read_text() == text
    assert [path.name for path in (home / PERSON_FILE).parent.iterdir()] == [PERSON_FILE.name]


def test_a_file_that_is_no_text_is_refused(home: Path) -> None:
    (home / PERSON_FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput):
        set_up(home, {})


def test_a_folder_that_cannot_be_made_is_told(home: Path) -> None:
    (home / PERSON_FILE).parent.rmdir()
    (home / PERSON_FILE).parent.symlink_to("/proc/1/nowhere")
    with pytest.raises((InvalidInput, StateUnavailable)):
        set_up(home, {})
