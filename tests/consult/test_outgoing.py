"""What a consultation sends: credentials are masked in prose; code that holds them is not sent unasked."""

from __future__ import annotations

import pytest

from baton.consult.outgoing import is_code
from baton.contract.errors import NotAllowed
from consult.conftest import Desk
from consult.secret_maker import WORD, Maker

KEY = "ghp_" + Maker(1).of(WORD, 36)


def test_credential_in_a_question_is_masked_before_it_is_kept_or_sent(desk: Desk) -> None:
    answer = desk.script({"echo": True}, question_before=f"Why does {KEY} fail? ")
    (turn,) = desk.house.ledger.consult_turns(answer["consultationId"])
    assert turn.question is not None
    assert KEY not in turn.question
    assert "[masked: GitHub token]" in turn.question
    assert KEY not in str(answer)


def test_file_with_a_credential_is_sent_only_when_that_is_said_and_as_it_is(desk: Desk) -> None:
    (desk.folder / "a.py").write_text(f'token = "{KEY}"\n')
    error = desk.refuses(contextPaths=["a.py"])
    assert isinstance(error, NotAllowed)
    assert "a.py:1 GitHub token" in error.message
    assert KEY not in error.message
    answer = desk.script({"echo": True}, contextPaths=["a.py"], sendSecrets=True)
    assert f'token = "{KEY}"' in str(desk.records("read", id=answer["consultationId"], what="prompt"))


def test_dry_run_says_what_was_seen_and_masked(desk: Desk) -> None:
    (desk.folder / "a.py").write_text(f'token = "{KEY}"\n')
    shown = desk.consult(f"Is {KEY} right?", contextPaths=["a.py"], dryRun=True)
    assert shown["secrets"] == ["a.py:1 GitHub token"]
    assert shown["masked"] == ["GitHub token"]


def test_schema_of_an_answer_is_looked_through_too(desk: Desk) -> None:
    schema = {"type": "object", "description": f"use {KEY}"}
    assert "answerSchema" in desk.refuses(answerSchema=schema).message


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The login fails at night.\nIt is odd.", False),
        ("diff --git a/x b/x\n", True),
        ("@@ -1 +1 @@\n-a\n+b", True),
        ("def f():\n    return 1\n", True),
        ("key = 'a'\nother = 'b'\n", True),
        ("Like this:\n```\nx\n```\nand so on, and on.\n", True),
        ("", False),
    ],
)
def test_code_is_told_from_prose(text: str, code: bool) -> None:
    assert is_code(text) is code
