"""Explorations by real workers: what they cite is checked, what they may not read or change they cannot."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from baton.contract.errors import InvalidInput
from baton.contract.findings import Finding
from baton.contract.session import Session
from baton.contract.states import Enforcement
from baton.simulate.script import Step, say
from baton.simulate.workers import exploring
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

FILES: dict[str, str | bytes] = {
    "src/calc.py": "import math\n\n\ndef add(a, b):\n    return a - b\n",
    "src/other.py": "OTHER = 'other words'\n",
    "docs/notes.md": "the notes say so\n",
    "secret/key.txt": "the secret words\n",
    "AGENTS.md": "Write in French.\n",
}

TRUE = Finding(statement="It subtracts.", file="src/calc.py", line=5, quote="return a - b")


def _cites(file: str, line: int, quote: str) -> Finding:
    return Finding(statement="So it is.", file=file, line=line, quote=quote)


_numbers = itertools.count(1)

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def folder(workspace: Callable[..., Workspace]) -> Workspace:
    made = workspace(FILES)
    made.write("draft.txt", "an untracked draft\n")
    return made


@pytest.fixture
def ask(sim: Sim, folder: Workspace, request: pytest.FixtureRequest) -> Ask:
    """Explore with a worker that follows these steps."""

    def explore(steps: Sequence[Step], session: Session | None = None, **more: Any) -> dict[str, Any]:
        question = sim.script(f"{request.node.name} {next(_numbers)}", *steps)
        return sim.explore({"question": question, "workspace": str(folder.path), **more}, session)

    return explore


def _outputs(sim: Sim, run_id: str) -> str:
    thread = sim.result(run_id).thread_id
    assert thread is not None
    return "".join(output.text for output in sim.model.requests_of(thread)[-1].outputs)


def test_true_citations_are_confirmed_and_make_the_answer_verified(
    sim: Sim, folder: Workspace, ask: Ask
) -> None:
    before = folder.contents()
    answer = ask(exploring([TRUE, _cites("draft.txt", 1, "untracked draft")], summary="It subtracts."))
    assert (answer["state"], answer["verdict"]) == ("done", "verified"), answer
    assert answer["reasons"] == ["all 2 citations are in the files"]
    assert answer["claim"]["summary"] == "It subtracts."
    assert answer["findings"] == [
        {"statement": "It subtracts.", "at": "src/calc.py:5", "citation": "confirmed"},
        {"statement": "So it is.", "at": "draft.txt:1", "citation": "confirmed"},
    ]
    assert sim.task(answer["runId"]).contract.role == "terra-explorer"
    assert answer["route"]["model"] == sim.result(answer["runId"]).route.model  # type: ignore[union-attr]
    assert folder.contents() == before


def test_false_and_moved_citations_are_told_apart(ask: Ask) -> None:
    answer = ask(
        exploring(
            [
                TRUE,
                _cites("src/calc.py", 1, "def add(a, b):"),
                _cites("src/calc.py", 5, "return a * b"),
                _cites("src/gone.py", 1, "import math"),
            ]
        )
    )
    assert answer["verdict"] == "unverified"
    assert answer["reasons"] == [
        "2 of 4 citations do not hold: src/calc.py:5 (the quote is not in the file),"
        " src/gone.py:1 (no such file)"
    ]
    assert [(one["at"], one["citation"]) for one in answer["findings"]] == [
        ("src/calc.py:5", "confirmed"),
        ("src/calc.py:4", "moved"),
        ("src/calc.py:5", "not_found"),
        ("src/gone.py:1", "not_found"),
    ]


def test_answer_without_citations_or_without_a_report_proves_nothing(ask: Ask, sim: Sim) -> None:
    assert ask(exploring([]))["reasons"] == ["no finding cites a file"]
    prose = ask([say("It subtracts, believe me.")])
    assert prose["verdict"] == "unverified"
    assert "the final report is missing or malformed" in prose["reasons"]


def test_worker_that_edits_is_stopped_by_the_sandbox(sim: Sim, folder: Workspace, ask: Ask) -> None:
    before = folder.contents()
    answer = ask(exploring([TRUE], ["echo changed >> src/calc.py", "touch new.txt"]))
    assert _outputs(sim, answer["runId"]).count("Read-only file system") == 2
    assert sim.result(answer["runId"]).evidence.changes == []
    assert folder.contents() == before


def test_what_lies_outside_files_cannot_be_read_by_any_route(sim: Sim, folder: Workspace, ask: Ask) -> None:
    commands = [
        "cat src/calc.py",
        "cat secret/key.txt",
        f"cat {folder.path}/secret/key.txt",
        "git show HEAD:secret/key.txt",
        f"git -C {folder.path} show HEAD:secret/key.txt",
        f"ls -R {folder.path} . /root /home",
    ]
    answer = ask(exploring([TRUE], commands), files=["src"])
    assert answer["verdict"] == "verified", answer
    seen = _outputs(sim, answer["runId"])
    assert "return a - b" in seen
    assert "secret words" not in seen and "key.txt\n" not in seen
    scope = sim.result(answer["runId"]).evidence.scope
    assert scope.enforcement is Enforcement.PREVENTED, scope.why_detected
    thread = sim.result(answer["runId"]).thread_id
    assert thread is not None
    assert "Write in French" not in json.dumps(sim.model.requests_of(thread)[0].body)


def test_patterns_show_single_files(sim: Sim, ask: Ask) -> None:
    commands = ["cat src/calc.py docs/notes.md", "cat src/other.py", "cat AGENTS.md"]
    answer = ask(exploring([TRUE], commands), files=["src/c*.py", "docs/notes.md"])
    seen = _outputs(sim, answer["runId"])
    assert "return a - b" in seen and "the notes say so" in seen
    assert "other words" not in seen and "Write in French" not in seen
    assert answer["evidence"]["scope"] == "prevented"


def test_a_true_citation_from_outside_files_fails_the_answer(ask: Ask) -> None:
    answer = ask(exploring([TRUE, _cites("secret/key.txt", 1, "the secret words")]), files=["src"])
    assert answer["verdict"] == "failed"
    assert answer["reasons"] == ["out of scope: secret/key.txt (read although it is outside `files`)"]
    guessed = ask(exploring([TRUE, _cites("secret/key.txt", 1, "no such words")]), files=["src"])
    assert (guessed["verdict"], guessed["findings"][1]["why"]) == ("unverified", "outside `files`")


def test_exploring_needs_no_right_to_write(folder: Workspace, ask: Ask) -> None:
    entry = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
    profile = {
        "sandboxCwd": folder.path.as_uri(),
        "permissionProfile": {
            "type": "managed",
            "file_system": {"type": "restricted", "entries": [entry]},
            "network": "restricted",
        },
    }
    answer = ask(exploring([TRUE]), Session(cwd=str(folder.path), profile=profile))
    assert (answer["state"], answer["verdict"]) == ("done", "verified"), answer
    assert answer["integration"] == "nothing"
    assert answer["next"].startswith("nothing was to land; inspect_run report")


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (["../x"], "files: pattern '../x' leaves the workspace by .."),
        (["!src"], "files: pattern '!src' is a negation"),
        ([""], "files: pattern '' is empty"),
    ],
)
def test_bad_patterns_are_refused_before_anything_is_made(ask: Ask, files: list[str], why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask([], files=files)
    assert why in caught.value.message


def test_patterns_that_match_nothing_end_the_run_with_the_reason(ask: Ask) -> None:
    answer = ask([], files=["nothing/here"])
    assert answer["verdict"] == "failed"
    assert answer["reasons"] == ["files: nothing in the workspace matches nothing/here"]


def test_long_answer_keeps_within_the_limit_and_points_to_the_rest(ask: Ask) -> None:
    long = [TRUE.model_copy(update={"statement": "so it is " * 40}) for _ in range(60)]
    answer = ask(exploring(long, summary="word " * 2_000))
    assert len(json.dumps(answer)) <= 8_192
    assert answer["verdict"] == "verified"
    assert "inspect_run" in answer["shortened"]


def test_no_worker_was_asked_more_than_its_script_says(sim: Sim) -> None:
    assert sim.model.surprises == ()
