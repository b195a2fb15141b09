"""config.toml: only our entry is ever touched, whatever the file looks like."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from baton.contract.errors import InvalidInput
from baton.install.config_edit import Edit, drop_server, merged, put_server, server_in
from install.toml_files import config_files, is_valid

FILE = Path("config.toml")
ONE: dict[str, Any] = {
    "command": "sh",
    "args": ["/home/Zoë # x/serve.sh"],
    "env_vars": [f"NAME_{number}" for number in range(9)],
    "tool_timeout_sec": 300,
    "supports_parallel_tool_calls": True,
}
TWO = {**ONE, "args": ["/elsewhere/serve.sh"], "env_vars": [*ONE["env_vars"][2:], "NEW"], "required": False}


def parsed(content: bytes) -> dict[str, Any]:
    return tomllib.loads(content.decode("utf-8-sig"))


def foreign(content: bytes) -> str:
    """Everything but our entry, as text, since NaN equals nothing."""
    data = copy.deepcopy(parsed(content))
    servers = data.get("mcp_servers", {})
    servers.pop("baton", None)
    if not servers:
        data.pop("mcp_servers", None)
    return repr(data)


def life(content: bytes) -> tuple[Edit, Edit, Edit]:
    """Installed, upgraded, removed."""
    installed = put_server(content, ONE, None, FILE)
    assert installed.content is not None
    upgraded = put_server(installed.content, TWO, installed.entry, FILE)
    assert upgraded.content is not None
    return installed, upgraded, drop_server(upgraded.content, upgraded.entry, FILE)


def check_life(content: bytes) -> None:
    installed, upgraded, removed = life(content)
    for edit, values in ((installed, ONE), (upgraded, TWO)):
        assert edit.content is not None
        assert server_in(parsed(edit.content)) == values
        assert foreign(edit.content) == foreign(content)
        if edit.entry is not None and edit.entry.text:
            # Every foreign byte is where it was, in one piece.
            restored = edit.content.decode().replace(edit.entry.text, edit.entry.instead_of)
            assert restored == content.decode()
        else:
            assert lines_left(content, edit.content) <= 1
    assert removed.content == content
    again = put_server(installed.content, ONE, installed.entry, FILE)
    assert again.content == installed.content


def lines_left(before: bytes, after: bytes) -> int:
    """How many lines of the file before are not in the one after: the one our entry was put into."""
    remaining = after.splitlines()
    missing = 0
    for line in before.splitlines():
        if line in remaining:
            remaining.remove(line)
        else:
            missing += 1
    return missing


@settings(max_examples=60, deadline=None)
@given(config_files())
def test_every_foreign_byte_stays_through_install_upgrade_and_removal(content: bytes) -> None:
    assume(is_valid(content))
    check_life(content)


@pytest.mark.long
@pytest.mark.timeout(1800)
@settings(
    max_examples=2000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(config_files())
def test_every_foreign_byte_stays_in_two_thousand_files(content: bytes) -> None:
    assume(is_valid(content))
    check_life(content)


@settings(max_examples=25, deadline=None)
@given(config_files())
def test_what_is_added_behind_our_entry_later_stays_as_well(content: bytes) -> None:
    installed = put_server(content if is_valid(content) else b"", ONE, None, FILE)
    assert installed.content is not None
    grown = installed.content + b'\n[later."x y"]\nkey = 1 # theirs\n'
    assume(is_valid(grown))
    removed = drop_server(grown, installed.entry, FILE).content
    assert removed is not None and foreign(removed) == foreign(grown)
    assert b"key = 1 # theirs" in removed


TOLD = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3) | st.lists(st.integers(0, 3), unique=True))


@given(ours=TOLD, before=TOLD, current=TOLD)
def test_the_merge_of_keys_follows_ours_where_the_person_changed_nothing(
    ours: dict[str, Any], before: dict[str, Any], current: dict[str, Any]
) -> None:
    result, _ = merged(ours, before, current)
    for key in set(ours) | set(before) | set(current):
        if current.get(key) == before.get(key):
            assert result.get(key) == ours.get(key)
        elif key in current and not isinstance(current[key], list):
            assert result[key] == current[key]
        elif key not in current:
            assert key not in result


def test_additions_to_a_list_stay_and_removals_from_it_too() -> None:
    result, theirs = merged({"v": ["a", "b", "new"]}, {"v": ["a", "b", "old"]}, {"v": ["b", "old", "mine"]})
    assert result == {"v": ["b", "new", "mine"]} and not theirs


@pytest.mark.parametrize(
    "content",
    [
        # Forms that tomlkit, given the whole file, would write anew.
        b'mcp_servers = { o = { command = "x", args = [ "y" , "z" ] } } # inline\na = [ 1 , 2 ]\n',
        b"a = 1\r\nb = 2",
        b"\xef\xbb\xbfa = 1\n",
        b"",
        b"# only a remark",
        b"[x]\ny = 1\n\n\n",
    ],
)
def test_mark_line_endings_and_the_last_line_end_are_kept(content: bytes) -> None:
    installed, _, removed = life(content)
    assert installed.content is not None
    assert installed.content.startswith(b"\xef\xbb\xbf") == content.startswith(b"\xef\xbb\xbf")
    bare = installed.content.replace(b"\r\n", b"")
    assert b"\r" not in bare and (b"\r\n" not in content or b"\n" not in bare)
    assert not content or installed.content.endswith(b"\n") == content.endswith(b"\n")
    assert removed.content == content


def test_a_file_that_codex_has_written_anew_is_still_edited_by_key() -> None:
    installed = put_server(b"# mine\n", ONE, None, FILE)
    rewritten = (
        b'# mine\n\n[mcp_servers.baton]\ncommand = "sh"\nargs = ["/home/Zo\xc3\xab # x/serve.sh"]\n'
        b"env_vars = ["
        + ", ".join(f'"NAME_{number}"' for number in range(9)).encode()
        + b"]\ntool_timeout_sec = 300\n"
        b"supports_parallel_tool_calls = true\n\n# about the next\n[tui]\nx = 1\n"
    )
    upgraded = put_server(rewritten, TWO, installed.entry, FILE)
    assert upgraded.content is not None and server_in(parsed(upgraded.content)) == TWO
    assert b"# about the next\n[tui]" in upgraded.content
    removed = drop_server(upgraded.content, upgraded.entry, FILE)
    assert (
        removed.content is not None
        and removed.content.split() == b"# mine # about the next [tui] x = 1".split()
    )


def test_removal_takes_what_was_added_to_our_entry_and_says_so() -> None:
    installed = put_server(b"a = 1\n", ONE, None, FILE)
    assert installed.content is not None
    grown = (
        installed.content
        + b'enabled = false\n[mcp_servers.baton.tools.delegate_task]\napproval_mode = "prompt"\n'
    )
    removed = drop_server(grown, installed.entry, FILE)
    assert removed.content is not None and parsed(removed.content) == {"a": 1}
    assert "enabled, tools" in removed.notes[0]


def test_an_entry_that_the_person_deleted_stays_deleted() -> None:
    installed = put_server(b"a = 1\n", ONE, None, FILE)
    gone = put_server(b"a = 1\n", TWO, installed.entry, FILE)
    assert gone.content == b"a = 1\n" and "--restore" in gone.notes[0]
    back = put_server(b"a = 1\n", TWO, installed.entry, FILE, restore=True)
    assert back.content is not None and server_in(parsed(back.content)) == TWO


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = \n", "line 1, column 5"),
        (b"a = 1\n\nb = [1,\n", r"line \d+, column \d+"),
        (b"a = 1\nb = '\xff'\n", "line 2, column 6"),
        (b"[[mcp_servers]]\nx = 1\n", "must be a table"),
        (b"mcp_servers = 3\n", "must be a table"),
        (b"mcp_servers.baton = 3\n", "must be a table"),
        (b'[mcp_servers.baton]\nurl = "http://127.0.0.1:1"\n', "not Baton's; rename"),
        (b'[mcp_servers.baton]\ncommand = "sh"\nargs = ["x/serve.sh"]\n', "not Baton's; --adopt"),
    ],
)
def test_a_file_that_cannot_be_edited_safely_is_refused_in_one_line(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refusal:
        put_server(content, ONE, None, FILE)
    assert "config.toml" in refusal.value.message


def test_an_entry_of_ours_that_nobody_recorded_can_be_adopted() -> None:
    content = b'# x\n[mcp_servers.baton]\ncommand = "sh"\nargs = ["x/serve.sh"] # old\n'
    adopted = put_server(content, ONE, None, FILE, adopt=True)
    assert adopted.content is not None and server_in(parsed(adopted.content)) == ONE
    assert adopted.content.startswith(b"# x\n")
