"""The named Codex is used or refused; otherwise the newest one that is installed wins."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from baton.codex import binary
from baton.codex.binary import CodexVersion, find_codex
from baton.contract.errors import Unsupported


@pytest.fixture(autouse=True)
def nothing_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test puts somewhere is there."""
    monkeypatch.setattr(binary, "_bundled", lambda: None)


def fake_codex(path: Path, version: str, *, calls: Path | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    count = f'echo "$0" >> {calls}\n' if calls else ""
    path.write_text(f"#!/bin/sh\n{count}echo codex-cli {version}\n")
    path.chmod(0o755)
    return path


def test_newest_of_path_launcher_and_local_bin_wins(tmp_path: Path) -> None:
    fake_codex(tmp_path / "a" / "codex", "0.165.0")
    launcher = fake_codex(tmp_path / "b" / "codex", "0.164.9")
    newest = fake_codex(tmp_path / "home" / ".local/bin/codex", "0.170.1")
    found = find_codex({"PATH": str(tmp_path / "a"), "HOME": str(tmp_path / "home")}, str(launcher))
    assert (found.path, str(found.version), found.origin) == (newest, "0.170.1", "~/.local/bin")


def test_every_folder_of_path_counts_and_relative_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_codex(tmp_path / "old" / "codex", "0.163.0")
    newer = fake_codex(tmp_path / "new" / "codex", "0.164.0")
    fake_codex(tmp_path / "here" / "codex", "9.0.0")
    monkeypatch.chdir(tmp_path / "here")
    found = find_codex({"PATH": f"{tmp_path}/old:.:{tmp_path}/new"})
    assert found.path == newer


def test_what_cannot_be_looked_at_is_passed_over(tmp_path: Path) -> None:
    too_long = "/" + "x" * 300  # an error for whoever asks what is there, as a folder of another user is
    there = fake_codex(tmp_path / "a" / "codex", "0.165.0")
    found = find_codex({"PATH": f"{too_long}:{tmp_path}/a", "HOME": too_long}, f"{too_long}/codex")
    assert found.path == there
    with pytest.raises(Unsupported, match="does not exist"):
        find_codex({"BATON_CODEX_BIN": f"{too_long}/codex"})


def test_launcher_of_the_session_wins_among_equals(tmp_path: Path) -> None:
    fake_codex(tmp_path / "a" / "codex", "0.165.0")
    launcher = fake_codex(tmp_path / "b" / "codex", "0.165.0")
    assert find_codex({"PATH": str(tmp_path / "a")}, str(launcher)).path == launcher


def test_named_program_is_used_although_a_newer_one_is_there(tmp_path: Path) -> None:
    fake_codex(tmp_path / "a" / "codex", "0.170.0")
    named = fake_codex(tmp_path / "mine", "0.163.0")
    found = find_codex({"PATH": str(tmp_path / "a"), "CODEX_BIN": str(named)})
    assert (found.path, found.origin) == (named, "CODEX_BIN")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("relative/codex", "absolute"),
        ("{tmp}/none", "does not exist"),
        ("{tmp}", "cannot be executed"),
        ("/bin/ls", "did not answer"),
        ("{tmp}/old", "0.162.9"),
        ("{tmp}/alpha", "0.163.0-alpha.2"),
    ],
)
def test_named_program_that_will_not_do_is_refused_in_one_line(tmp_path: Path, text: str, why: str) -> None:
    fake_codex(tmp_path / "old", "0.162.9")
    fake_codex(tmp_path / "alpha", "0.163.0-alpha.2")
    fake_codex(tmp_path / "a" / "codex", "0.170.0")
    with pytest.raises(Unsupported) as refused:
        find_codex({"PATH": str(tmp_path / "a"), "BATON_CODEX_BIN": text.format(tmp=tmp_path)})
    assert "BATON_CODEX_BIN" in refused.value.message
    assert why in refused.value.message


def test_nothing_usable_says_what_was_looked_at(tmp_path: Path) -> None:
    old = fake_codex(tmp_path / "a" / "codex", "0.120.0")
    with pytest.raises(Unsupported) as refused:
        find_codex({"PATH": str(tmp_path / "a"), "HOME": str(tmp_path)})
    message = refused.value.message
    assert f"{old} (0.120.0, too old)" in message
    assert ".local/bin/codex" in message
    assert "0.163.0" in message
    assert "\n" not in message


def test_program_that_hangs_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "ANSWER_SECONDS", 0.5)
    hanging = tmp_path / "a" / "codex"
    hanging.parent.mkdir()
    hanging.write_text("#!/bin/sh\nsleep 600 &\nwait\n")
    hanging.chmod(0o755)
    good = fake_codex(tmp_path / "b" / "codex", "0.165.0")
    assert find_codex({"PATH": f"{tmp_path}/a:{tmp_path}/b:/usr/bin:/bin"}).path == good


def test_shim_that_looks_at_its_name_is_executed_by_that_name(tmp_path: Path) -> None:
    multi = tmp_path / "multi"
    multi.write_text('#!/bin/sh\ncase "$0" in */codex) echo codex-cli 0.166.0;; *) exit 1;; esac\n')
    multi.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(multi)
    found = find_codex({"PATH": f"{tmp_path}/bin:/usr/bin:/bin"})
    assert found.path == tmp_path / "bin" / "codex"


def test_native_program_is_preferred_to_its_own_npm_shim(tmp_path: Path) -> None:
    modules = tmp_path / "node_modules"
    shim = fake_codex(modules / "@openai/codex/bin/codex.js", "0.166.0")
    native = fake_codex(modules / "@openai/codex-linux-x64/vendor/x86_64/bin/codex", "0.166.0")
    (modules / ".bin").mkdir()
    (modules / ".bin" / "codex").symlink_to(shim)
    assert find_codex({"PATH": str(modules / ".bin")}).path == native


def test_version_of_a_native_program_is_remembered_until_the_file_changes(
    tmp_path: Path, codex_binary: Path
) -> None:
    copy = tmp_path / "bin" / "codex"
    copy.parent.mkdir()
    copy.symlink_to(codex_binary)
    cache = tmp_path / "versions.json"
    first = find_codex({"PATH": str(copy.parent)}, cache=cache)
    stored = json.loads(cache.read_text())
    cache.write_text(json.dumps({path: [entry[0], "0.199.0"] for path, entry in stored.items()}))
    assert str(find_codex({"PATH": str(copy.parent)}, cache=cache).version) == "0.199.0"
    cache.write_text(json.dumps({path: ["another file", "0.199.0"] for path in stored}))
    assert find_codex({"PATH": str(copy.parent)}, cache=cache).version == first.version


def test_a_cache_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, codex_binary: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(codex_binary)
    (tmp_path / "a folder").mkdir()
    find_codex({"PATH": str(tmp_path / "bin")}, cache=tmp_path / "a folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a folder", "bin"]


def test_version_of_a_script_is_asked_each_time(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    shim = fake_codex(tmp_path / "bin" / "codex", "0.165.0", calls=calls)
    for _ in range(2):
        find_codex({"PATH": str(shim.parent)}, cache=tmp_path / "versions.json")
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', "\0"])
def test_damaged_cache_costs_time_only(tmp_path: Path, content: str) -> None:
    shim = fake_codex(tmp_path / "bin" / "codex", "0.165.0")
    cache = tmp_path / "versions.json"
    cache.write_text(content)
    assert str(find_codex({"PATH": str(shim.parent)}, cache=cache).version) == "0.165.0"


def test_prereleases_sort_before_their_release_and_by_number() -> None:
    texts = ["0.163.0-alpha.2", "0.163.0-alpha.10", "0.163.0-beta", "0.163.0", "0.163.1", "1.0.0"]
    versions = [CodexVersion.read(f"codex-cli {text}") for text in texts]
    orders = [version.order for version in versions if version is not None]
    assert orders == sorted(orders)
    assert len(orders) == len(texts)


@pytest.mark.codex
def test_real_codex_is_found_and_remembered(codex_binary: Path, tmp_path: Path) -> None:
    found = find_codex({**os.environ, "CODEX_BIN": str(codex_binary)}, cache=tmp_path / "versions.json")
    assert found.version.supported
    assert str(found.version) in (tmp_path / "versions.json").read_text()
