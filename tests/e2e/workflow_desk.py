"""A session that works in phases on the simulated machine, with agents that answer what is written down."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.session import Session
from baton.contract.workflow import WorkflowCall
from baton.engine.service import Service
from baton.ledger.workflow_records import WorkflowStepRecord
from baton.review.service import ReviewService
from baton.simulate.request import Request
from baton.simulate.script import Say, Step, say
from baton.workflow.service import WorkflowService
from e2e.sim import DEADLINE, Sim, Workspace

HOST = "gpt-5.6-luna"
MAKER = "gpt-5.6-sol"
REVIEWER = "gpt-5.6-terra"

POLICY = f"""
[consult]
enabled = true
[consult.agents.codex]
model = "{MAKER}"
[consult.agents.claude]
enabled = false
[consult.agents.opencode]
enabled = false
[consult.agents.copilot]
enabled = false
[consult.agents.other]
enabled = true
runtime = "codex"
command = ""
model = "{REVIEWER}"
effort = ""
web_search = false
priority = 20
scores = {{ review = 90, coding = 10 }}
settings = {{}}
[review]
enabled = true
[workflow]
enabled = true
"""

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
CHECK = "import calc\n\nassert calc.add(2, 3) == 5, calc.add(2, 3)\n"
TEST = "python3 check.py"
PROJECT: Mapping[str, str] = {"calc.py": WRONG, "check.py": CHECK, ".gitignore": "__pycache__/\n"}

DELEGATED = {
    "plan": "ask:codex",
    "brief": "ask:codex",
    "implement": "patch:codex",
    "test": "baton",
    "review": "ask:other",
    "fix": "patch:codex",
}

_PHASES = {
    "research": "Find out what has to be known",
    "plan": "Plan how the goal in the payload",
    "brief": "Write the instructions for whoever implements",
    "implement": "Implement the plan in the payload",
    "fix": "Fix what the payload lists",
    "synthesise": "Weigh the review findings",
    "review": "Review the material for this goal",
}


def opinion(text: str, structured: Any = None) -> Say:
    empty: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}
    return say({"answer": text, **empty, **({} if structured is None else {"structured": structured})})


def a_patch(*changes: tuple[str, str, str]) -> Say:
    """An answer with a patch that turns each file from the one text into the other."""
    return opinion("Done.", {"patch": diff(*changes), "summary": "The change."})


def diff(*changes: tuple[str, str, str]) -> str:
    parts = []
    for path, old, new in changes:
        before, after = old.splitlines(), new.splitlines()
        source = f"a/{path}" if old else "/dev/null"
        header = [f"diff --git a/{path} b/{path}"] + ([] if old else ["new file mode 100644"])
        at = f"@@ -{1 if before else 0},{len(before)} +1,{len(after)} @@"
        lines = [*header, f"--- {source}", f"+++ b/{path}", at]
        lines += [f"-{line}" for line in before] + [f"+{line}" for line in after]
        parts.append("\n".join(lines) + "\n")
    return "".join(parts)


def findings(*found: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]] | None = None) -> Say:
    """A review with these findings."""
    full = [
        {
            "severity": "important",
            "title": "It is wrong",
            "detail": "It goes wrong.",
            "path": "calc.py",
            "line": 2,
            "confidence": "high",
            "suggestion": None,
            **one,
        }
        for one in found
    ]
    structured: dict[str, Any] = {"findings": full}
    if earlier is not None:
        structured["earlier"] = [{"note": None, **one} for one in earlier]
    return opinion("I looked.", structured)


class Agents:
    """What agents answer, by phase, each answer once."""

    def __init__(self, sim: Sim) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Step | tuple[Step, ...]]] = {}
        self.asked: list[tuple[str, Request]] = []
        sim.model.fallback(*[self._answer] * 30)

    def on(self, phase: str, *answers: Step | tuple[Step, ...]) -> None:
        self._waiting.setdefault(phase, deque()).extend(answers)

    def left(self) -> dict[str, int]:
        return {phase: len(answers) for phase, answers in self._waiting.items() if answers}

    def prompts(self, phase: str) -> list[str]:
        return [json.dumps(request.body) for name, request in self.asked if name == phase]

    def _answer(self, request: Request) -> Any:
        text = json.dumps(request.body)
        with self._lock:
            phase = next(name for name, words in _PHASES.items() if words in text)
            self.asked.append((phase, request))
            answers = self._waiting.get(phase)
            assert answers, f"nothing is written down for {phase}"
            answer = answers.popleft()
        return list(answer) if isinstance(answer, tuple) else answer


class Desk:
    """A project and a session on it."""

    def __init__(self, sim: Sim, project: Workspace, engine: Service | None = None) -> None:
        self.sim = sim
        self.project = project
        self.agents = Agents(sim)
        self.session = Session(cwd=str(project.path), model=HOST)
        self.engine = engine or sim.service
        self.house = self.engine.house
        self.calls = 0
        self.received = 0
        self.id = ""
        self.told: dict[str, Any] = {}

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """One call of the tool, by a session that starts afresh each time; its answer."""
        given: dict[str, Any] = {"action": action, "waitSeconds": 100, **arguments}
        if action != "start":
            given["id"] = self.id
        call = parse(WorkflowCall, given, "workflow")

        async def ask() -> dict[str, Any]:
            consulting = ConsultService(self.house)
            service = WorkflowService(consulting, ReviewService(consulting), self.engine)
            return await service.workflow(call, self.session)

        told = self.sim.portal.start_task_soon(ask).result(DEADLINE)
        self.calls += 1
        self.received += len(json.dumps(told, ensure_ascii=False).encode())
        self.told = told
        if action == "start":
            self.id = told["workflowId"]
        return told

    def start(self, bindings: Mapping[str, str] = DELEGATED, **arguments: Any) -> dict[str, Any]:
        given = {"goal": "The sum is right.", "bindings": dict(bindings), "tests": [TEST], **arguments}
        return self.call("start", **given)

    def go(self, **arguments: Any) -> dict[str, Any]:
        """Agree to what was shown."""
        return self.call("next", confirm=self.told["confirm"], **arguments)

    def apply(self) -> str:
        """Do what `next` says for a patch: fetch it, take it over, commit; the commit."""
        fetch = self.told["next"].partition("commit: ")[2].partition(" && git cherry-pick")[0]
        subprocess.run(shlex.split(fetch), cwd=self.project.path, env=self.sim.env, check=True)
        self.project.git("cherry-pick", "FETCH_HEAD")
        return self.project.git("rev-parse", "HEAD").strip()

    def steps(self, step: str | None = None) -> list[WorkflowStepRecord]:
        found = self.house.ledger.workflow_steps(self.id)
        return [one for one in found if step in (None, one.step.value)]

    def to_patch(self, *patches: Step, **arguments: Any) -> dict[str, Any]:
        """Start, plan, brief and the patch, which then waits to be applied."""
        self.agents.on("plan", opinion("1. Turn the sign in calc.py."))
        self.agents.on("brief", opinion("In calc.py, add adds."))
        self.agents.on("implement", *(patches or (a_patch(("calc.py", WRONG, RIGHT)),)))
        self.start(**arguments)
        for _ in range(3):
            self.go()
        return self.told
