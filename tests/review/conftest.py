"""A person who switched reviews on, a repository with a change, and scripted reviewers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.errors import BatonError
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.engine.house import House
from baton.review.confirm import Person, nobody
from baton.review.service import ReviewService
from baton.tools.review_catalogue import review_specs
from consult.scripted import look
from consult.waiting import POLICY as ASKING
from consult.waiting import end_all, refused
from review import scripted

POLICY = f"{ASKING}[review]\nenabled = true\n"

HOST = "gpt-6.2-sol"

FINDING = {
    "severity": "important",
    "title": "The sum is wrong",
    "detail": "It subtracts.",
    "path": "calc.py",
    "line": 2,
    "confidence": "high",
    "suggestion": None,
}


def fits(told: dict[str, Any]) -> dict[str, Any]:
    """The answer, which is what the tool's declaration says."""
    (spec,) = review_specs()
    jsonschema.validate(told, spec.output)
    assert set(told) <= set(spec.output["properties"])
    return told


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.test", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def repository(folder: Path) -> None:
    """Two commits on `main`, and the change under review on `work`."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    (folder / "readme.md").write_text("calc\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    git(folder, "switch", "-qc", "work")
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    git(folder, "commit", "-qam", "change")


@dataclass
class Desk:
    """A person's folder, their policy, and a door for a session."""

    house: House
    folder: Path
    policy: Path
    script: scripted.Script
    starts: Callable[..., None] = scripted.start

    @property
    def session(self) -> Session:
        return Session(cwd=str(self.folder), model=HOST, thread_id="t1")

    def review(
        self, action: str, id: str | None = None, person: Person = nobody, **arguments: Any
    ) -> dict[str, Any]:
        """What `review` answers; raises what it raises."""
        given = {"action": action, "waitSeconds": 60, **arguments} | ({"id": id} if id else {})
        call = parse(ReviewCall, given, "review")

        async def do() -> dict[str, Any]:
            consulting = ConsultService(self.house, look, self.starts, scripted.adapter_of)
            return await ReviewService(consulting).review(call, self.session, person)

        return fits(anyio.run(do))

    def plan(self, **arguments: Any) -> dict[str, Any]:
        return self.review("plan", **{"goal": "Is it right?", "diffRef": "main..work", **arguments})

    def run(self, plan: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        return self.review("run", plan["reviewId"], confirm=plan.get("confirm"), **arguments)

    def reviewed(self, **arguments: Any) -> dict[str, Any]:
        return self.run(self.plan(**arguments))

    def refuses(self, action: str, id: str | None = None, **arguments: Any) -> BatonError:
        """The refusal of a call: one line, and nobody was asked."""
        return refused(self.house, lambda: self.review(action, id, **arguments))

    def refuses_plan(self, **arguments: Any) -> BatonError:
        return self.refuses("plan", **{"goal": "Is it right?", "diffRef": "main..work", **arguments})

    def add_policy(self, text: str) -> None:
        self.policy.write_text(self.policy.read_text() + text)


@pytest.fixture
def desk(test_root: Path, own_home: Path) -> Iterator[Desk]:
    folder, policy = test_root / "work", own_home / ".codex" / "baton" / "policy.toml"
    repository(folder)
    policy.parent.mkdir(parents=True)
    policy.write_text(POLICY)
    with House.open() as house:
        yield Desk(house, folder, policy, scripted.Script(house))
        end_all(house)
