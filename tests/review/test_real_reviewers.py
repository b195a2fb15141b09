"""The real command lines as reviewers of one deep review; the models behind them are simulated."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from baton.consult.adapters.protocol import Runtime
from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.engine.house import House
from baton.policy.layer import PERSON_FILE
from baton.review.service import ReviewService
from baton.simulate.script import Say
from baton.simulate.service import ScriptedService
from consult.adapters.conftest import agent_at, real
from consult.adapters.test_through_service import EACH, MODELS, _inline
from review.conftest import FINDING, repository

pytestmark = pytest.mark.long

EMPTY: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}


def found(title: str) -> Say:
    answer = {"answer": "As found.", **EMPTY, "structured": {"findings": [{**FINDING, "title": title}]}}
    return Say(json.dumps(answer))


def test_three_real_command_lines_review_and_one_is_asked_for_its_form(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, test_root: Path
) -> None:
    programs = {runtime: real(runtime) for runtime in EACH}
    repository(test_root / "work")
    policy = ["[consult]", "enabled = true", 'pass_to_agents = ["SIMULATED_API_KEY"]']
    with ExitStack() as stack:
        services = {}
        for runtime in EACH:
            first = found(f"{runtime} found it") if runtime is not Runtime.OPENCODE else Say("Prose alone.")
            services[runtime] = stack.enter_context(ScriptedService(first, found(f"{runtime} found it")))
            agent, more = agent_at(runtime, services[runtime], programs[runtime])
            for name, value in more.items():
                monkeypatch.setenv(name, value)
            policy += [
                f"[consult.agents.{runtime}]",
                f"command = {json.dumps(programs[runtime])}",
                f"model = {json.dumps(MODELS[runtime])}",
                f"settings = {_inline(dict(agent.extra))}",
            ]
        names = [str(runtime) for runtime in EACH]
        policy += ["[review]", "enabled = true", f"deep_reviewers = {json.dumps(names)}"]
        file = own_home / ".codex" / PERSON_FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(policy))
        with House.open() as house:
            done = _review(house, test_root / "work")
    assert done["state"] == "awaiting_synthesis", done
    assert done["reviewers"] == sorted(names), done
    assert {one["title"] for one in done["findings"]} == {f"{name} found it" for name in names}
    assert {one["located"] for one in done["findings"]} == {"changed"}


def _review(house: House, folder: Path) -> dict[str, Any]:
    session = Session(cwd=str(folder), model="gpt-5.6-luna")

    async def do() -> dict[str, Any]:
        service = ReviewService(ConsultService(house))

        async def call(action: str, **arguments: Any) -> dict[str, Any]:
            given = {"action": action, "waitSeconds": 250, **arguments}
            return await service.review(parse(ReviewCall, given, "review"), session)

        plan = await call("plan", goal="Is it right?", diffRef="main..work", mode="deep", ownFindings=[])
        return await call("run", id=plan["reviewId"], confirm=plan["confirm"])

    return anyio.run(do)
