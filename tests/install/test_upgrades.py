"""Upgrades: a person's edits, deletions and renames stay, and what is retired goes only untouched."""

from __future__ import annotations

import pytest

from baton.install.disk import digest
from baton.install.owned import read_owned
from install.home import AGENT, SKILL, Home, without_own

ONE = {
    "agents/kept.toml": AGENT.format("1"),
    "agents/edited.toml": AGENT.format("1"),
    "agents/deleted.toml": AGENT.format("1"),
    "agents/renamed.toml": AGENT.format("1"),
    "agents/retired.toml": AGENT.format("1"),
    "agents/retired-edited.toml": AGENT.format("1"),
    "skills/old-name/SKILL.md": SKILL.format("1"),
}
TWO = {
    "agents/kept.toml": AGENT.format("2"),
    "agents/edited.toml": AGENT.format("2"),
    "agents/deleted.toml": AGENT.format("2"),
    "agents/renamed.toml": AGENT.format("2"),
    "skills/new-name/SKILL.md": SKILL.format("2"),
}
THREE = {name: text.replace("2", "3") for name, text in TWO.items()}


@pytest.fixture
def upgraded(home: Home) -> Home:
    """Installed, then changed by the person in every way, then upgraded."""
    home.install("1.0.0", ONE)
    home.write("agents/edited.toml", "mine")
    home.write("agents/retired-edited.toml", "mine as well")
    (home.places.home / "agents/deleted.toml").unlink()
    (home.places.home / "agents/renamed.toml").rename(home.places.home / "agents/my-own.toml")
    home.install("2.0.0", TWO, upgrade=True)
    return home


def agents(home: Home) -> dict[str, str]:
    folder = home.places.home / "agents"
    return {file.name: file.read_text() for file in folder.iterdir()}


def test_an_upgrade_keeps_edits_deletions_and_renames_and_retires_the_untouched(upgraded: Home) -> None:
    assert agents(upgraded) == {
        "kept.toml": AGENT.format("2"),
        "edited.toml": "mine",
        "edited.toml.baton-new": AGENT.format("2"),
        "my-own.toml": AGENT.format("1"),
        "retired-edited.toml": "mine as well",
    }
    skills = upgraded.places.home / "skills"
    assert [folder.name for folder in skills.iterdir()] == ["new-name"]


def test_a_second_upgrade_refreshes_what_lies_beside_an_edit(upgraded: Home) -> None:
    upgraded.install("3.0.0", THREE, upgrade=True)
    assert agents(upgraded)["edited.toml"] == "mine"
    assert agents(upgraded)["edited.toml.baton-new"] == AGENT.format("3")
    assert "deleted.toml" not in agents(upgraded)


def test_ours_beside_an_edit_that_was_thrown_away_comes_back_only_with_something_new(upgraded: Home) -> None:
    (upgraded.places.home / "agents/edited.toml.baton-new").unlink()
    upgraded.install("2.0.0", TWO)
    assert "edited.toml.baton-new" not in agents(upgraded)
    upgraded.install("3.0.0", THREE, upgrade=True)
    assert agents(upgraded)["edited.toml.baton-new"] == AGENT.format("3")


def test_taking_ours_over_ends_the_edit(upgraded: Home) -> None:
    beside = upgraded.places.home / "agents/edited.toml.baton-new"
    upgraded.write("agents/edited.toml", beside.read_bytes())
    upgraded.install("2.0.0", TWO)
    assert not beside.exists()
    upgraded.install("3.0.0", THREE, upgrade=True)
    assert agents(upgraded)["edited.toml"] == AGENT.format("3")


def test_an_edit_taken_back_is_upgraded_again(upgraded: Home) -> None:
    upgraded.write("agents/edited.toml", AGENT.format("1"))
    upgraded.install("2.0.0", TWO)
    assert agents(upgraded)["edited.toml"] == AGENT.format("2")
    assert "edited.toml.baton-new" not in agents(upgraded)


def test_what_was_deleted_comes_back_only_when_asked_for(upgraded: Home) -> None:
    report = upgraded.install("2.0.0", TWO)
    assert any("--restore" in line.decision.why for line in report.files)
    upgraded.install("2.0.0", TWO, restore=True)
    assert agents(upgraded)["deleted.toml"] == AGENT.format("2")


def test_removal_after_upgrades_leaves_only_the_persons_files(upgraded: Home) -> None:
    upgraded.install("3.0.0", THREE, upgrade=True)
    upgraded.uninstall()
    assert agents(upgraded) == {
        "edited.toml": "mine",
        "my-own.toml": AGENT.format("1"),
        "retired-edited.toml": "mine as well",
    }
    assert set(upgraded.picture()) == {".codex", ".codex/agents"} | {
        f".codex/agents/{name}" for name in agents(upgraded)
    }


def test_the_program_itself_is_replaced_whole_and_an_edit_of_it_kept_apart(home: Home) -> None:
    home.install("1.0.0")
    home.write("baton/bundle/scripts/serve.sh", "# mine\n")
    (home.places.bundle / "requirements.lock").unlink()
    report = home.install("2.0.0", upgrade=True)
    assert "2.0.0" in home.read("baton/bundle/scripts/serve.sh")
    assert home.read("baton/kept/1/baton/bundle/scripts/serve.sh") == "# mine\n"
    assert (home.places.bundle / "requirements.lock").exists()
    assert any("kept apart" in line.decision.why for line in report.files)


def test_a_command_that_was_edited_stays_and_one_that_was_deleted_comes_back(home: Home) -> None:
    home.install()
    home.places.command.write_text("#!/bin/sh\nmine\n")
    home.install("2.0.0", upgrade=True)
    assert "mine" in home.places.command.read_text()
    home.places.command.unlink()
    home.install("2.0.0")
    assert home.places.command.stat().st_mode & 0o111


def test_an_installed_file_that_became_a_link_is_the_persons(home: Home) -> None:
    home.install("1.0.0", ONE)
    agent = home.places.home / "agents/kept.toml"
    elsewhere = home.user / "kept.toml"
    agent.rename(elsewhere)
    agent.symlink_to(elsewhere)
    home.install("2.0.0", TWO, upgrade=True)
    assert agent.is_symlink() and elsewhere.read_text() == AGENT.format("1")
    assert agents(home)["kept.toml.baton-new"] == AGENT.format("2")
    home.uninstall()
    assert agent.is_symlink() and elsewhere.exists()


def test_keys_that_a_person_changed_in_our_entry_stay_and_the_rest_follows(home: Home) -> None:
    home.install("1.0.0")
    text = home.read("config.toml")
    changed = text.replace('"1.0.0"', '"1.0.0", "MY_PROVIDER_KEY"').replace(
        "[mcp_servers.baton]", "[mcp_servers.baton]\nenabled = false"
    )
    home.write("config.toml", changed)
    home.install("2.0.0", upgrade=True)
    upgraded = home.read("config.toml")
    assert "enabled = false" in upgraded
    assert '"2.0.0"' in upgraded and '"MY_PROVIDER_KEY"' in upgraded and '"1.0.0"' not in upgraded
    report = home.uninstall()
    assert "enabled" in " ".join(report.notes) and not home.places.config.exists()


def test_backups_of_the_last_installations_are_there_and_no_more(home: Home) -> None:
    for number in range(1, 7):
        home.install(f"{number}.0.0", upgrade=number > 1)
    backups = sorted(home.places.backups.iterdir())
    assert 1 <= len(backups) <= 3
    texts = [file.read_text() for folder in backups for file in folder.glob("*config.toml")]
    assert any('"5.0.0"' in text for text in texts)
    owned = read_owned(home.places.owned)
    assert owned is not None and owned.version == "6.0.0"
    home.uninstall()
    assert without_own(home.picture()) == home.picture()


RECORD = """{
 "schemaVersion": 1,
 "version": "0.1.0",
 "content": "0000",
 "files": [
  {"path": "baton/bundle/old.py", "kind": "bundle", "shipped": "%(hash)s", "installed": "%(hash)s",
   "version": "0.1.0"},
  {"path": "agents/kept.toml", "kind": "agent", "shipped": "%(hash)s", "installed": "%(hash)s",
   "version": "0.1.0"},
  {"path": "agents/edited.toml", "kind": "agent", "shipped": "1111", "installed": "1111", "version": "0.1.0"},
  {"path": "agents/edited.toml.baton-new", "kind": "beside", "shipped": "%(hash)s", "installed": "%(hash)s",
   "version": "0.1.0"},
  {"path": "%(user)s/.local/bin/baton", "kind": "command", "shipped": "%(hash)s", "installed": "%(hash)s",
   "version": "0.1.0"}
 ],
 "folders": ["%(user)s/.local", "%(user)s/.local/bin", "agents", "baton", "baton/bundle"],
 "config": {
  "values": {"command": "sh", "args": ["serve.sh"]},
  "text": "\\n[mcp_servers.baton]\\ncommand = \\"sh\\"\\nargs = [\\"serve.sh\\"]\\n",
  "madeFile": false, "madeTable": true
 },
 "plugin": false, "agentsOnly": false, "noConfig": false
}
"""
"""What the first version that kept a record wrote; it must be understood for ever."""


def test_what_the_first_version_has_recorded_is_upgraded_and_removed(home: Home) -> None:
    home.write("config.toml", '# mine\n\n[mcp_servers.baton]\ncommand = "sh"\nargs = ["serve.sh"]\n# more\n')
    for name in ("baton/bundle/old.py", "agents/kept.toml", "agents/edited.toml.baton-new"):
        home.write(name, "as installed")
    home.write("agents/edited.toml", "mine")
    home.places.commands.mkdir(parents=True)
    home.places.command.write_text("as installed")
    home.write("baton/owned.json", RECORD % {"hash": digest(b"as installed"), "user": home.user})
    home.install("2.0.0", TWO, upgrade=True)
    assert not (home.places.bundle / "old.py").exists()
    assert agents(home)["kept.toml"] == AGENT.format("2")
    assert agents(home)["edited.toml"] == "mine"
    assert agents(home)["edited.toml.baton-new"] == AGENT.format("2")
    assert str(home.places.bundle) in home.read("config.toml")
    home.uninstall()
    assert home.read("config.toml") == "# mine\n# more\n"
    assert set(home.picture()) == {
        ".codex",
        ".codex/config.toml",
        ".codex/agents",
        ".codex/agents/edited.toml",
    }
