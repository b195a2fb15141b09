"""The real command lines asked through the whole service, as a session does: one call for several agents."""

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
from baton.contract.consult import ConsultCall, RecordsCall
from baton.contract.session import Session
from baton.policy.layer import PERSON_FILE
from baton.simulate.script import Say
from baton.simulate.service import ScriptedService
from consult.adapters.conftest import Desk, agent_at, real

pytestmark = pytest.mark.long

EACH = (Runtime.CLAUDE, Runtime.OPENCODE, Runtime.COPILOT)

MODELS = {Runtime.CLAUDE: "claude-sonnet-5", Runtime.OPENCODE: "simulated/m1", Runtime.COPILOT: "simulated-1"}


def test_three_agents_are_asked_in_one_call_and_once_more(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, test_root: Path
) -> None:
    programs = {runtime: real(runtime) for runtime in EACH}
    work = test_root / "work"
    work.mkdir()
    with ExitStack() as services:
        policy, env = ["[consult]", "enabled = true"], dict(desk.house.env)
        for runtime in EACH:
            first, second = ({"answer": f"{runtime} {word}", **_EMPTY} for word in ("yes", "still"))
            service = services.enter_context(ScriptedService(Say(json.dumps(first)), Say(json.dumps(second))))
            agent, more = agent_at(runtime, service, programs[runtime])
            env |= more
            policy += _entry(runtime, programs[runtime], dict(agent.extra))
        policy.insert(2, 'pass_to_agents = ["SIMULATED_API_KEY"]')
        file = Path(env["CODEX_HOME"]) / PERSON_FILE
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(policy))
        # The process that asks has the surroundings of the session.
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        here = desk.with_env(**env)
        session = Session(cwd=str(work), model="gpt-5.6-luna")
        asked = {"question": "Is it so?", "targets": [str(runtime) for runtime in EACH], "waitSeconds": 200}
        answered = _consult(here, asked, session)
        again = _consult(
            here,
            {"question": "And now?", "followUp": answered["consultationId"], "waitSeconds": 200},
            session,
        )
    assert answered["state"] == "answered", answered
    assert {one["agent"]: one["answer"] for one in answered["answers"]} == {
        str(runtime): f"{runtime} yes" for runtime in EACH
    }
    assert [one["sees"] for one in answered["answers"]] == ["given"] * 3
    attested = {one["agent"]: one.get("attested") for one in answered["answers"]}
    assert attested == {"claude": True, "opencode": False, "copilot": False}
    assert all(one["usage"]["inputTokens"] for one in answered["answers"])
    assert {one["answer"] for one in again["answers"]} == {f"{runtime} still" for runtime in EACH}


_EMPTY: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}


def _entry(runtime: Runtime, program: str, settings: dict[str, Any]) -> list[str]:
    lines = [
        f"[consult.agents.{runtime}]",
        f"command = {json.dumps(program)}",
        f"model = {json.dumps(MODELS[runtime])}",
    ]
    return [*lines, f"settings = {_inline(settings)}"]


def _inline(value: Any) -> str:
    """A value as TOML writes it in a line."""
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value)


def _consult(here: Desk, arguments: dict[str, Any], session: Session) -> dict[str, Any]:
    async def put() -> dict[str, Any]:
        service = ConsultService(here.house)
        answer = await service.consult(parse(ConsultCall, arguments, "consult"), session)
        if answer["state"] == "working":
            wait = {"action": "wait", "id": answer["consultationId"], "waitSeconds": 200}
            answer = await service.records(parse(RecordsCall, wait, "records"), session)
        return answer

    return anyio.run(put)
