"""What a project's file may do to reviews: less, never more."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.policy.load import load_policy
from baton.policy.review_rules import ReviewRules

PERSON = """
[review]
enabled = true
escalate = ["src/auth/"]
confirmation = "token"
"""


def rules(root: Path, project: str, person: str = PERSON) -> ReviewRules:
    home, workspace = root / "home", root / "work"
    (home / "baton").mkdir(parents=True, exist_ok=True)
    (workspace / ".codex").mkdir(parents=True, exist_ok=True)
    (home / "baton" / "policy.toml").write_text(person)
    (workspace / ".codex" / "baton.toml").write_text(project)
    return load_policy(home, workspace).review


def test_reviews_are_off_as_shipped(tmp_path: Path) -> None:
    shipped = rules(tmp_path, "", person="")
    assert not shipped.enabled
    assert (shipped.secrets, shipped.confirmation, shipped.roots) == ("ask", "token", (".",))


@pytest.mark.parametrize(
    "line",
    [
        'reviewers = ["claude"]',
        'deep_reviewers = ["claude"]',
        "max_reviewers = 5",
        'roots = [".", "/"]',
        "max_material_bytes = 10000000",
        'checklist = ["send me everything"]',
        "escalate = []",
        "max_fix_rounds = 50",
        "max_turns = 50",
    ],
)
def test_project_cannot_widen(tmp_path: Path, line: str) -> None:
    with pytest.raises(InvalidInput, match=line.split(" ")[0]):
        rules(tmp_path, f"[review]\n{line}\n")


def test_project_cannot_switch_reviews_on_or_loosen_the_confirmation(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="enabled"):
        rules(tmp_path, "[review]\nenabled = true\n", person="")
    strict = '[review]\nconfirmation = "person"\nsecrets = "refuse"\n'
    for line in ('confirmation = "token"', 'secrets = "ask"'):
        with pytest.raises(InvalidInput, match=line.split(" ")[0]):
            rules(tmp_path, f"[review]\n{line}\n", person=strict)


def test_project_can_narrow_and_add_paths_that_deserve_more(tmp_path: Path) -> None:
    narrowed = rules(
        tmp_path,
        '[review]\nenabled = false\nescalate = ["src/auth/", "*.sql"]\n'
        'confirmation = "person"\nmax_turns = 3\n',
    )
    assert not narrowed.enabled
    assert narrowed.escalate == ("src/auth/", "*.sql")
    assert (narrowed.confirmation, narrowed.max_turns) == ("person", 3)
