"""A person who switched consultation on, and a session that asks; the agents' programs are scripted fakes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.consult import ConsultCall, RecordsCall
from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.engine.house import House
from baton.tools.consult_catalogue import consult_specs
from consult import scripted
from consult.waiting import POLICY, end_all, refused

HOST = "gpt-6.2-sol"


@dataclass(frozen=True)
class Desk:
    """A person's folder, their policy, and a door for a session."""

    house: House
    folder: Path
    policy: Path

    @property
    def session(self) -> Session:
        return Session(cwd=str(self.folder), model=HOST, thread_id="t1")

    def service(self, house: House | None = None) -> ConsultService:
        return ConsultService(house or self.house, scripted.look, scripted.start, scripted.adapter_of)

    def consult(self, question: str = "Is it right?", **arguments: Any) -> dict[str, Any]:
        """What `consult` answers; raises what it raises."""
        given = {"question": question, "waitSeconds": 120, **arguments}
        call = parse(ConsultCall, given, "consult")

        async def ask() -> dict[str, Any]:
            return await self.service().consult(call, self.session)

        return fits("consult", anyio.run(ask))

    def script(
        self, agent_does: dict[str, Any], question_before: str = "", **arguments: Any
    ) -> dict[str, Any]:
        return self.consult(question_before + scripted_question(agent_does), **arguments)

    def records(self, action: str, **arguments: Any) -> dict[str, Any]:
        call = parse(RecordsCall, {"action": action, "waitSeconds": 120, **arguments}, "records")

        async def look() -> dict[str, Any]:
            return await self.service().records(call, self.session)

        return fits("records", anyio.run(look))

    def refuses(self, question: str = "Is it right?", **arguments: Any) -> BatonError:
        """The refusal of a call: one line, and nothing was written or started."""
        error = refused(self.house, lambda: self.consult(question, **arguments))
        assert self.house.ledger.consultations() == []
        return error

    def add_policy(self, text: str) -> None:
        self.policy.write_text(self.policy.read_text() + text)


def fits(tool: str, told: dict[str, Any]) -> dict[str, Any]:
    """The answer, which is what the tool's declaration says."""
    (spec,) = (spec for spec in consult_specs() if spec.name == tool)
    jsonschema.validate(told, spec.output)
    if "turn" not in told:  # one turn alone has all that is known of it
        assert set(told) <= set(spec.output["properties"])
    return told


def scripted_question(agent_does: dict[str, Any]) -> str:
    return f"Is it right? SCRIPT: {json.dumps(agent_does)}"


@pytest.fixture
def desk(test_root: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    folder, policy = test_root / "work", own_home / ".codex" / "baton" / "policy.toml"
    folder.mkdir()
    (folder / "a.py").write_text("a = 1\n")
    policy.parent.mkdir(parents=True)
    policy.write_text(POLICY)
    with House.open() as house:
        yield Desk(house, folder, policy)
        end_all(house)
