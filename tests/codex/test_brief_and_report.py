"""A worker is told its task, with foreign text as data; its report is read strictly, its form leniently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.codex.brief import brief, parse_claim
from baton.codex.instructions import collect_instructions
from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import PatternReading
from baton.contract.states import Enforcement
from baton.contract.task import Task

CLAIM = {
    "status": "PASS",
    "summary": "Done.",
    "filesChanged": ["a.py"],
    "checksRun": [],
    "blockers": [],
    "notes": [],
}
TEXT = json.dumps(CLAIM)


def test_the_brief_holds_task_scope_checks_and_instructions() -> None:
    task = Task(objective="Make it green.", allowed_files=["src"], acceptance_criteria=["It is green."])
    reading = PatternReading(
        pattern="src", role="allowed", reading="all below src", enforcement=Enforcement.PREVENTED
    )
    text = brief(task, [reading], [("../AGENTS.md", "Use tabs.")], ["pytest -q"])
    for part in ("Make it green.", "all below src", "It is green.", "pytest -q", "Use tabs.", "../AGENTS.md"):
        assert part in text
    assert "filesChanged" in text
    assert "AGENTS.md" not in brief(task, [reading])


@pytest.mark.parametrize(
    "message",
    [
        TEXT,
        f"\n  {TEXT}\n",
        "\ufeff" + TEXT,
        json.dumps(CLAIM, indent=2),
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}\n```",
        f"Here it is:\n\n```json\r\n{TEXT}\r\n```\nThat was it.",
        f"```sh\necho {{}}\n```\n```json\n{TEXT}\n```",
        f"The report: {TEXT} Bye.",
    ],
)
def test_a_report_in_prose_or_fences_is_read(message: str) -> None:
    report = parse_claim(message)
    assert report.claim is not None, report.why
    assert (report.claim.status, report.claim.files_changed) == (ClaimStatus.PASS, ["a.py"])
    assert report.malformed is None


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (None, "without a final message"),
        ("  ", "without a final message"),
        ("Context loaded. Ready.", "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ("{" * 50_000, "no JSON object"),
        (TEXT[:-1], "no JSON object"),
        (TEXT.replace('"Done."', "NaN"), "no JSON object"),
        (TEXT[:-1] + ', "status": "FAILED"}', "no JSON object"),
        (f"```\n{TEXT}\n```\n```\n{TEXT}\n```", "several"),
        (json.dumps({**CLAIM, "status": "pass"}), "status"),
        (json.dumps({**CLAIM, "extra": 1}), "extra"),
        (json.dumps({**CLAIM, "filesChanged": "a.py"}), "filesChanged"),
        (json.dumps({**CLAIM, "files_changed": []}), "filesChanged"),
        (json.dumps({key: CLAIM[key] for key in list(CLAIM)[:3]}), "missing"),
    ],
)
def test_anything_else_is_malformed_and_says_why(message: str | None, why: str) -> None:
    report = parse_claim(message)
    assert report.claim is None
    kept = message if message and message.strip() else ""
    assert report.malformed == kept[:4000]
    assert report.why is not None and why in report.why


@given(st.text())
def test_no_message_is_too_odd_to_be_read(message: str) -> None:
    report = parse_claim(message)
    assert (report.claim is None) == (report.malformed is not None)


def _claim(**values: object) -> Claim:
    return Claim.model_validate(values, by_name=True)


@given(
    st.builds(
        _claim,
        status=st.sampled_from(ClaimStatus),
        summary=st.text(),
        files_changed=st.lists(st.text()),
        checks_run=st.lists(st.text()),
        blockers=st.lists(st.text()),
        notes=st.lists(st.text()),
    )
)
def test_every_claim_is_read_as_written(claim: Claim) -> None:
    assert parse_claim(json.dumps(claim.wire())).claim == claim


def test_instructions_come_from_the_top_down_to_the_workspace(tmp_path: Path) -> None:
    cwd = tmp_path / "pkg" / "a"
    cwd.mkdir(parents=True)
    (tmp_path.parent / "AGENTS.md").write_text("above the repository")
    (tmp_path / "AGENTS.md").write_text("top")
    (tmp_path / "pkg" / "AGENTS.md").write_text("hidden by the override")
    (tmp_path / "pkg" / "AGENTS.override.md").write_text("override")
    (cwd / "AGENTS.md").write_bytes(b"here \xff")
    (cwd / "deeper").mkdir()
    (cwd / "deeper" / "AGENTS.md").write_text("deeper")
    assert collect_instructions(tmp_path, cwd) == (
        ("../../AGENTS.md", "top"),
        ("../AGENTS.override.md", "override"),
        ("AGENTS.md", "here \ufffd"),
    )


def test_links_out_of_the_repository_folders_and_hidden_files_are_passed_over(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    root = tmp_path / "repo"
    for name in ("a", "a/b", "a/b/c"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "AGENTS.md").symlink_to(secret)
    (root / "a" / "AGENTS.md").mkdir()
    (root / ".env").write_text("hidden")
    (root / "a" / "b" / "AGENTS.md").symlink_to(root / ".env")
    (root / "CLAUDE.md").write_text("shared")
    (root / "a" / "b" / "c" / "AGENTS.md").symlink_to("../../../CLAUDE.md")
    found = collect_instructions(root, root / "a" / "b" / "c", hidden=lambda path: path.name == ".env")
    assert found == (("AGENTS.md", "shared"),)


def test_long_instructions_are_cut_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "AGENTS.md").write_text("x" * 60)
    (tmp_path / "sub" / "AGENTS.md").write_text("y" * 60)
    (first, second) = collect_instructions(tmp_path, tmp_path / "sub", limit=100)
    assert first[1] == "x" * 60
    assert second[1].startswith("y" * 40 + "\n[cut off")
    assert len(collect_instructions(tmp_path, tmp_path / "sub", limit=60)) == 1
