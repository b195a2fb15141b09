"""Whether optional tools are listed is read without libraries, also where Python has no TOML reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.runtime import groups

PLAIN = [
    ("[consult]\nenabled = true\n", True),
    ("[consult]\nscore_margin = 5\nenabled = true  # yes\n[consult.spend]\nmax_turns_per_day = 3\n", True),
    ("consult.enabled = true\n", True),
    ("[consult]\nenabled = false\n", False),
    ("[consult.agents.claude]\nenabled = true\n", False),
    ("[other]\nenabled = true\n# consult\n", False),
]


@pytest.mark.parametrize("has_reader", [True, False])
@pytest.mark.parametrize(("text", "enabled"), PLAIN)
def test_plain_spellings_are_understood_with_and_without_a_reader(
    text: str, enabled: bool, has_reader: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "baton").mkdir()
    (tmp_path / "baton" / "policy.toml").write_text(text)
    if not has_reader:
        monkeypatch.setattr(groups, "tomllib", None)
    assert ("consult" in groups.enabled_groups({"CODEX_HOME": str(tmp_path)})) is enabled


def test_file_that_cannot_be_read_switches_nothing_on(tmp_path: Path) -> None:
    assert groups.enabled_groups({"CODEX_HOME": str(tmp_path)}) == ()
    (tmp_path / "baton").mkdir()
    (tmp_path / "baton" / "policy.toml").write_bytes(b"[consult\xff\nenabled = true")
    assert groups.enabled_groups({"CODEX_HOME": str(tmp_path)}) == ()
