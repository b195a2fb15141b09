"""Every kind of home: what an installation does to it, and that removal leaves the rest byte for byte."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from baton.cli import main
from baton.contract.errors import BatonError, InvalidInput, NotFound, WrongState
from baton.install.installer import Wish, read_config, uninstall
from baton.install.owned import read_owned
from baton.install.places import Places
from baton.install.plan import Act
from install.home import AGENT, PRESETS, SKILL, Home, make_package, picture, without_own

CONFIG = """# mine
model = "gpt-5.5"   # a remark
[mcp_servers.other]
command = 'x'

[projects."/some where"]
trust_level = "trusted"
"""


def furnish(home: Home) -> None:
    """A person's own skills, agents and configuration, with a policy for Baton already there."""
    home.write("config.toml", CONFIG).chmod(0o640)
    home.write("skills/mine/SKILL.md", SKILL.format("mine"))
    home.write("agents/mine.toml", AGENT.format("mine"))
    home.write("AGENTS.md", "be brief\n")
    home.write("baton/policy.toml", '[root]\nmode = "control-plane"\n')
    (home.user / ".local" / "bin").mkdir(parents=True)
    (home.user / ".local" / "bin" / "other").write_text("#!/bin/sh\n")


def link_everything(home: Home) -> None:
    """Folders and files that are links into a person's dotfiles."""
    dotfiles = home.user / "dot files"
    (dotfiles / "skills").mkdir(parents=True)
    (dotfiles / "config.toml").write_text(CONFIG)
    (dotfiles / "config.toml").chmod(0o600)
    (home.places.home / "config.toml").symlink_to(dotfiles / "config.toml")
    (home.places.home / "skills").symlink_to("../dot files/skills")


def is_itself_a_link(home: Home) -> None:
    real = home.user / "real codex"
    home.places.home.rename(real)
    home.places.home.symlink_to(real)


def has_crlf_and_no_last_line_end(home: Home) -> None:
    home.write("config.toml", b"\xef\xbb\xbf" + CONFIG.replace("\n", "\r\n").rstrip().encode())


FURNISHED = [lambda _: None, furnish, link_everything, is_itself_a_link, has_crlf_and_no_last_line_end]


@pytest.mark.parametrize("furnished", FURNISHED)
def test_a_home_is_the_same_byte_for_byte_after_installing_and_removing(home: Home, furnished) -> None:
    furnished(home)
    before = home.picture()
    assert home.install().changed
    during = home.picture()
    assert {name for name in before if before[name] != during.get(name)} <= {
        ".codex/config.toml",
        "dot files/config.toml",
    }
    assert 'name = "luna-worker"' in home.read("agents/luna-worker.toml")
    home.uninstall()
    assert home.picture() == before


def test_a_missing_home_is_made_and_removed_again(home: Home) -> None:
    home.places.home.rmdir()
    home.install()
    home.uninstall()
    assert home.picture() == {}


def test_names_with_spaces_and_beyond_ascii_work(own_home: Path, test_root: Path) -> None:
    user = own_home / "Zoë's home — 家"
    (user / ".codex").mkdir(parents=True)
    home = Home(user, test_root / "packages")
    home.install()
    entry = read_owned(home.places.owned)
    assert entry is not None and entry.config is not None
    assert entry.config.values["cwd"] == str(home.places.bundle)
    assert not home.install().changed
    home.uninstall()
    assert home.picture() == {".codex": ("folder", 0o755, b"")}


def test_a_home_whose_name_is_not_utf8_is_refused_in_one_line(own_home: Path) -> None:
    path = os.fsdecode(os.fsencode(own_home) + b"/\xff")
    with pytest.raises(InvalidInput, match="not UTF-8"):
        Places.find({"HOME": path})


def test_installing_twice_changes_nothing_the_second_time(home: Home) -> None:
    furnish(home)
    home.install()
    before = home.picture()
    report = home.install()
    assert not report.changed and home.picture() == before


def test_a_dry_run_says_what_would_be_done_and_touches_nothing(home: Home) -> None:
    home.places.home.rmdir()
    report = home.install(dry_run=True)
    assert report.changed and report.counts()["install"] > len(PRESETS)
    assert home.picture() == {}


def test_a_hard_link_to_the_config_is_told_that_it_keeps_the_text_of_before(home: Home) -> None:
    home.write("config.toml", 'model = "m"\n')
    other = home.user / "dotfiles.toml"
    other.hardlink_to(home.places.config)
    for dry_run in (True, False):
        notes = [note for note in home.install(dry_run=dry_run).notes if "hard link" in note]
        assert len(notes) == 1 and notes[0].startswith(f"{home.places.config} is a hard link: ")
    assert other.read_text() == 'model = "m"\n' and "baton" in home.places.config.read_text()
    assert not [note for note in home.uninstall().notes if "hard link" in note]


def test_foreign_files_in_the_way_are_all_named_and_nothing_is_installed(home: Home) -> None:
    home.write("agents/luna-worker.toml", "mine")
    home.write("skills/orchestrate-work/SKILL.md", "mine too")
    home.write("skills/orchestrate-work/references", "a file where a folder would be")
    before = home.picture()
    with pytest.raises(InvalidInput) as refusal:
        home.install()
    for name in ("agents/luna-worker.toml", "orchestrate-work/SKILL.md", "orchestrate-work/references ("):
        assert refusal.value.message.count(name) == 1
    assert home.picture() == before


def test_one_thing_in_the_way_of_many_files_is_named_once(home: Home) -> None:
    home.write("skills", "a file where a folder would be")
    with pytest.raises(InvalidInput) as refusal:
        home.install()
    assert refusal.value.message.count("/skills (") == 1


def test_adopting_takes_over_what_is_built_like_ours_and_keeps_the_old_one_apart(home: Home) -> None:
    old = AGENT.format("by an older tool")
    home.write("agents/luna-worker.toml", old)
    with pytest.raises(InvalidInput, match="--adopt"):
        home.install()
    home.install(adopt=True)
    assert home.read("agents/luna-worker.toml") == PRESETS["agents/luna-worker.toml"]
    assert home.read("baton/kept/1/agents/luna-worker.toml") == old
    home.uninstall()
    assert home.read("baton/kept/1/agents/luna-worker.toml") == old


def test_adopting_does_not_take_what_only_has_the_name(home: Home) -> None:
    home.write("agents/luna-worker.toml", 'name = "another"\n')
    with pytest.raises(InvalidInput, match="move it away"):
        home.install(adopt=True)


def test_a_server_entry_of_our_name_that_is_not_ours_is_refused(home: Home) -> None:
    home.write("config.toml", '[mcp_servers.baton]\ncommand = "conductor"\n')
    before = home.picture()
    with pytest.raises(InvalidInput, match=r"mcp_servers\.baton"):
        home.install(adopt=True)
    assert home.picture() == before


ENTRY_POINTS = {
    "pip": "#!/usr/bin/python3\nimport sys\nfrom baton.cli.main import main\nsys.exit(main())\n",
    "uv": "#!/x/bin/python\n# -*- coding: utf-8 -*-\nimport sys\nfrom baton.cli.main import main\n",
}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("text", ENTRY_POINTS.values())
def test_the_command_of_a_python_package_in_the_same_folder_stays(
    home: Home, text: str, linked: bool
) -> None:
    home.places.commands.mkdir(parents=True)
    script = home.user / "tools" / "baton" if linked else home.places.command
    script.parent.mkdir(exist_ok=True)
    script.write_text(text)
    if linked:
        home.places.command.symlink_to(script)
    before = home.picture()
    report = home.install()
    assert "command of a Python package" in " ".join(report.notes)
    assert home.places.bundle.is_dir()
    assert not home.install().changed
    home.install("2.0.0", upgrade=True)
    home.uninstall()
    assert home.picture() == before


def test_a_command_of_ours_that_a_python_package_has_replaced_is_given_up(home: Home) -> None:
    home.install()
    home.places.command.write_text(ENTRY_POINTS["pip"])
    home.install("2.0.0", upgrade=True)
    assert {file.name for file in home.places.commands.iterdir()} == {"baton"}
    home.uninstall()
    assert home.places.command.read_text() == ENTRY_POINTS["pip"]


@pytest.mark.parametrize("there", ["a foreign command", None])
def test_a_foreign_command_of_our_name_is_refused(home: Home, there: str | None) -> None:
    home.places.commands.mkdir(parents=True)
    if there is None:
        home.places.command.symlink_to("nowhere")
    else:
        home.places.command.write_text(there)
    before = home.picture()
    with pytest.raises(InvalidInput, match=r"bin/baton \(not Baton's"):
        home.install(adopt=True)
    assert home.picture() == before


EARLIER = {
    "orchestration/owned-paths.txt": (
        "skills/orchestrate-work\nagents/luna-worker.toml\norchestration/scripts\n../outside\n"
    ),
    "orchestration/scripts/orchestrate.py": "print()\n",
    "agents/luna-worker.toml": "not even TOML = = but listed\n",
    "skills/orchestrate-work/SKILL.md": SKILL.format("the earlier one"),
    "skills/orchestrate-work/references/old.md": "no longer there\n",
    "skills/mine/SKILL.md": SKILL.format("mine"),
}


def test_the_earlier_layout_is_taken_over_by_its_own_list(home: Home) -> None:
    for name, text in EARLIER.items():
        home.write(name, text)
    (home.user / "outside").write_text("not in the home")
    home.install(upgrade=True, adopt=True)
    for name, text in PRESETS.items():
        assert home.read(name) == text
    assert not (home.places.home / "orchestration").exists()
    for name in ("orchestration/scripts/orchestrate.py", "skills/orchestrate-work/references/old.md"):
        assert home.read(f"baton/kept/1/{name}") == EARLIER[name]
    assert home.read("skills/mine/SKILL.md") == EARLIER["skills/mine/SKILL.md"]
    assert (home.user / "outside").exists()


@pytest.mark.parametrize("content", [b"model = \n", b"a = 1\na = 2\n", b"\xff\xfe", b"[x\n"])
def test_an_unreadable_config_stops_everything_and_says_where(home: Home, content: bytes) -> None:
    home.write("config.toml", content)
    before = home.picture()
    with pytest.raises(InvalidInput, match=r"config\.toml: line \d+, column \d+"):
        home.install()
    assert home.picture() == before


def test_a_config_that_leads_nowhere_or_is_a_folder_stops_everything(home: Home) -> None:
    home.places.config.symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="leads nowhere"):
        home.install()
    home.places.config.unlink()
    home.places.config.mkdir()
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_config(home.places.config)


def test_without_config_the_file_is_never_touched_and_that_is_remembered(home: Home) -> None:
    home.write("config.toml", CONFIG)
    home.install(no_config=True)
    assert home.read("config.toml") == CONFIG
    home.install("2.0.0", upgrade=True)
    assert home.read("config.toml") == CONFIG
    home.install("2.0.0", no_config=False)
    assert "[mcp_servers.baton]" in home.read("config.toml")


def test_agents_alone_can_be_installed(home: Home) -> None:
    home.install(agents_only=True)
    names = set(without_own(home.picture()))
    assert names == {".codex", ".codex/agents", ".codex/agents/luna-worker.toml"}
    assert not home.places.bundle.exists()
    home.uninstall()
    assert home.picture() == {".codex": ("folder", 0o755, b"")}


def test_a_project_gets_the_agents_and_loses_only_them(home: Home, test_root: Path) -> None:
    project = test_root / "a project"
    (project / ".codex").mkdir(parents=True)
    (project / ".codex" / "config.toml").write_text("model = 'x'\n")
    before, before_home = picture(project), home.picture()
    installer = home.installer()
    assert installer.install_project(project, Wish()).changed
    assert not installer.install_project(project, Wish()).changed
    assert (project / ".codex/agents/luna-worker.toml").read_text() == PRESETS["agents/luna-worker.toml"]
    home.install()
    uninstall(home.places, project=project)
    assert picture(project) == before
    installer.install_project(project, Wish())
    home.uninstall()
    assert picture(project) == before and home.picture() == before_home
    with pytest.raises(NotFound):
        home.uninstall()


def test_with_the_plugin_there_is_one_server_and_that_is_said(home: Home) -> None:
    home.install()
    plugged = home.read("config.toml") + '\n[plugins."baton@here"]\nenabled = true\n'
    home.write("config.toml", plugged)
    report = home.install()
    assert "one server" in " ".join(report.notes)
    assert "mcp_servers" not in home.read("config.toml")
    assert not (home.places.home / "skills").exists()
    assert (home.places.home / "agents/luna-worker.toml").exists()


def test_a_plugin_without_a_codex_that_could_remove_it_stops_the_removal_in_one_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.install(no_config=True)
    home.write("config.toml", f"[marketplaces.baton]\nsource = {json.dumps(str(home.places.bundle))}\n")
    before = home.picture()
    monkeypatch.setenv("BATON_CODEX_BIN", "/nowhere/codex")
    monkeypatch.setattr(sys, "argv", ["baton", "uninstall"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    said = capsys.readouterr().err
    assert ended.value.code == 1 and said.count("\n") == 1
    assert "the plugin baton@baton goes first" in said and "/nowhere/codex" in said
    assert home.picture() == before


def test_another_version_needs_to_be_asked_for(home: Home) -> None:
    with pytest.raises(WrongState, match="nothing is installed"):
        home.install(upgrade=True)
    home.install()
    before = home.picture()
    with pytest.raises(WrongState, match="--upgrade"):
        home.install("2.0.0")
    assert home.picture() == before


@pytest.mark.parametrize("content", ["{", "[]", '{"schemaVersion": 99}', '{"version": "1", "content": 3}'])
def test_a_damaged_list_of_what_is_owned_is_never_guessed_at(home: Home, content: str) -> None:
    home.install()
    home.write("baton/owned.json", content)
    before = home.picture()
    with pytest.raises(BatonError, match=r"owned\.json"):
        home.install()
    assert home.picture() == before


def test_an_incomplete_bundle_is_not_installed_from(home: Home) -> None:
    package = make_package(home.packages, "1.0.0")
    (package.root / ".mcp.json").unlink()
    with pytest.raises(BatonError, match=r"no complete bundle.*\.mcp\.json"):
        package.files()


def test_everything_installed_is_recorded_and_only_that(home: Home) -> None:
    report = home.install()
    owned = read_owned(home.places.owned)
    assert owned is not None
    assert {home.places.path(file.path) for file in owned.files} == {line.path for line in report.files}
    assert {line.decision.act for line in report.files} == {Act.INSTALL}
