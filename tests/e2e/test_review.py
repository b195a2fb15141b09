"""The real Codex reviews a change, and a real Codex session has one reviewed through the plugin."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.review.service import ReviewService
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Say, javascript, say, shell
from baton.simulate.workers import report
from e2e.plugin_session import Installed, answers, policy, requests_of, script, supervise
from e2e.sim import Sim, Workspace

pytestmark = pytest.mark.codex

POLICY = """
[consult]
enabled = true
[consult.agents.codex]
model = "gpt-5.6-sol"
effort = "low"
[review]
enabled = true
reviewers = ["codex"]
"""

HOST = "gpt-5.6-luna"

FINDING = {
    "severity": "important",
    "title": "add subtracts",
    "detail": "It returns a - b.",
    "path": "src/calc.py",
    "line": 2,
    "confidence": "high",
    "suggestion": None,
}


def reviewed(*findings: dict[str, Any]) -> Say:
    empty: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}
    return say({"answer": "As found.", **empty, "structured": {"findings": list(findings)}})


def review(sim: Sim, folder: Workspace, action: str, **arguments: Any) -> dict[str, Any]:
    call = parse(ReviewCall, {"action": action, "waitSeconds": 100, **arguments}, "review")
    service = ReviewService(ConsultService(sim.service.house))
    return anyio.run(service.review, call, Session(cwd=str(folder.path), model=HOST))


def test_real_codex_reviews_and_is_asked_once_for_the_form(
    sim: Sim, workspace: Callable[..., Workspace]
) -> None:
    folder = workspace({"src/calc.py": "def add(a, b):\n    return a + b\n"})
    folder.write("src/calc.py", "def add(a, b):\n    return a - b\n")
    folder.git("commit", "-qam", "change")
    goal = "<review 1> Does the sum hold?"
    sim.model.on("<review 1>", say("It subtracts, plainly."), reviewed(FINDING))
    with sim.policy(POLICY):
        plan = review(sim, folder, "plan", goal=goal, diffRef="HEAD")
        assert not requests_of(sim.model, "<review 1>")
        done = review(sim, folder, "run", id=plan["reviewId"], confirm=plan["confirm"])
    assert done["state"] == "awaiting_synthesis", done
    (found,) = done["findings"]
    assert (found["place"], found["located"], found["by"]) == ("src/calc.py:2", "changed", "codex")
    first, again = sim.model.requests[-2:]
    assert "return a - b" in json.dumps(first.body)
    # The same conversation of Codex goes on.
    assert again.thread_id == first.thread_id
    assert first.output_schema is not None
    assert "findings" in json.dumps(first.output_schema)


def test_what_a_run_changed_is_reviewed(sim: Sim, workspace: Callable[..., Workspace]) -> None:
    folder = workspace({"src/calc.py": "def add(a, b):\n    return a - b\n"})
    mend = shell("sed -i 's/a - b/a + b/' src/calc.py")
    objective = sim.script("mend", mend, report(files=["src/calc.py"]))
    call = {
        "objective": objective,
        "allowedFiles": ["src"],
        "workspace": str(folder.path),
        "waitSeconds": 100,
    }
    run = sim.delegate(call)
    sim.model.on("<review 2>", reviewed())
    with sim.policy(POLICY):
        plan = review(sim, folder, "plan", goal="<review 2> Is it mended?", runId=run["runId"])
        assert plan["files"] == ["src/calc.py"]
        done = review(sim, folder, "run", id=plan["reviewId"], confirm=plan["confirm"])
    assert done["state"] == "awaiting_synthesis"
    assert "+    return a + b" in json.dumps(requests_of(sim.model, "<review 2>")[0].body)


ASK = "Please have the change reviewed"


def test_session_that_cannot_ask_its_person_reviews_in_three_calls(
    installed: Installed, model: ScriptedModel
) -> None:
    policy(installed, POLICY)
    (installed.workspace / "src" / "calc.py").write_text("def add(a, b):\n    return a - b - 0\n")
    installed.git("commit", "-qam", "change")
    goal = "Does the sum in calc hold now?"
    planned = json.dumps({"action": "plan", "goal": goal, "diffRef": "HEAD"})
    calls = f"""
const plan = await tools.mcp__baton__review({planned});
const {{reviewId: id, confirm}} = plan.structuredContent;
const done = await tools.mcp__baton__review({{action: "run", id, confirm}});
const end = await tools.mcp__baton__review({{action: "finalise", id, conclusion: "mend it",
  dispositions: [{{finding: "F1", disposition: "open"}}]}});
for (const one of [plan, done, end]) text(JSON.stringify(one));
"""
    supervise(model, ASK, javascript('// @exec: {"yield_time_ms": 290000}\n' + calls))
    model.on(goal, reviewed(FINDING))
    installed.session(ASK, writable=False)
    plan, done, end = answers(model, ASK)
    assert plan["state"] == "planned", plan
    assert done["state"] == "awaiting_synthesis", done
    # `codex exec` declines every form by itself: that is nobody's no.
    assert done["confirmedBy"] == "token"
    assert (end["state"], end["openSerious"]) == ("finalised", 1)
    received = sum(len(json.dumps(one.result["structuredContent"])) for one in (plan, done, end))
    assert received <= 5_000
    (asked,) = requests_of(model, goal)[:1]
    assert "mcp__baton__" not in json.dumps(asked.body)


def test_session_of_a_person_who_did_not_switch_reviews_on_has_no_such_tool(
    installed: Installed, model: ScriptedModel
) -> None:
    policy(installed, POLICY.replace("[review]\nenabled = true", "[review]\nenabled = false"))
    supervise(model, ASK, script("ALL_TOOLS.map(tool => tool.name).filter(n => /review/.test(n))"))
    installed.session(ASK)
    assert requests_of(model, ASK)[-1].last_output.strip().splitlines()[-1] == "[]"
