"""The real Codex is asked for a second opinion, and a real Codex session asks for one."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest

from baton.consult.content import remove_held
from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.consult import ConsultCall, RecordsCall
from baton.contract.errors import NoAgent
from baton.contract.session import Session
from baton.process.tree import processes_with_marker
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Say, Stall, Step, say, shell
from e2e.plugin_session import Installed, answers, policy, requests_of, script, supervise, tool
from e2e.sim import Sim, Workspace
from files_with import files_with

pytestmark = pytest.mark.codex

POLICY = """
[consult]
enabled = true
[consult.agents.codex]
model = "gpt-5.6-sol"
effort = "low"
"""

HOST = "gpt-5.6-luna"

_numbers = itertools.count(1)


def opinion(text: str, **more: Any) -> Say:
    empty: dict[str, Any] = {"assumptions": [], "uncertainties": [], "followUps": [], "sources": []}
    return say({"answer": text, **empty, **more})


class Asking:
    """A session on the simulated machine that asks the real Codex."""

    def __init__(self, sim: Sim, folder: Workspace) -> None:
        self._sim = sim
        self.house = sim.service.house
        self.folder = folder
        self.session = Session(cwd=str(folder.path), model=HOST)

    def consult(self, *steps: Step, **arguments: Any) -> dict[str, Any]:
        marker = f"<question {next(_numbers)}>"
        self.marker = marker
        self._sim.model.on(marker, *steps)
        call = parse(
            ConsultCall,
            {
                "question": f"{marker} Is the sum right?",
                "targets": ["codex"],
                "waitSeconds": 100,
                **arguments,
            },
            "consult",
        )
        return anyio.run(ConsultService(self.house).consult, call, self.session)

    def records(self, action: str, **arguments: Any) -> dict[str, Any]:
        call = parse(RecordsCall, {"action": action, "waitSeconds": 100, **arguments}, "records")
        return anyio.run(ConsultService(self.house).records, call, self.session)


@pytest.fixture
def asking(sim: Sim, workspace: Callable[..., Workspace]) -> Iterator[Asking]:
    with sim.policy(POLICY):
        yield Asking(sim, workspace({"calc.py": "def add(a, b):\n    return a - b\n"}))


def test_one_call_is_answered_by_the_model_asked_for(sim: Sim, asking: Asking) -> None:
    told = asking.consult(
        opinion("No: it subtracts.", sources=[{"title": "calc.py", "location": "calc.py:2"}])
    )
    assert told["state"] == "answered", told
    (answer,) = told["answers"]
    assert answer["answer"] == "No: it subtracts."
    assert (answer["model"], answer["attested"], answer["effort"]) == ("gpt-5.6-sol", True, "low")
    assert answer["usage"]["outputTokens"] > 0 and answer["costUsd"] is None
    assert answer["sources"] == [{"title": "calc.py", "location": "calc.py:2"}]
    (request,) = requests_of(sim.model, asking.marker)
    assert (request.model, request.effort) == ("gpt-5.6-sol", "low")
    assert request.output_schema is not None and "assumptions" in request.output_schema["required"]


def test_folder_is_read_and_cannot_be_changed_and_nothing_beside_it_is_seen(sim: Sim, asking: Asking) -> None:
    beside, own = asking.folder.path.parent / "beside.txt", sim.home / "own.txt"
    for file in (beside, own):
        file.write_text("words of the person\n")
    before = asking.folder.contents()
    told = asking.consult(
        shell(f"cat calc.py; cat {beside} {own}; echo changed >> calc.py; touch new.txt"),
        shell("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9))'"),
        opinion("It subtracts."),
    )
    (answer,) = told["answers"]
    assert (told["state"], answer["sees"]) == ("answered", "repository")
    read, connected = requests_of(sim.model, asking.marker)[1:]
    assert "return a - b" in read.last_output and "Read-only file system" in read.last_output
    assert "words of the person" not in read.last_output
    assert "PermissionError" in connected.last_output
    assert asking.folder.contents() == before


def test_question_without_the_folder_shows_nothing_of_it(sim: Sim, asking: Asking) -> None:
    told = asking.consult(
        shell(f"cat calc.py {asking.folder.path}/calc.py; ls"),
        opinion("I cannot see it."),
        sourceMode="model",
    )
    assert told["answers"][0]["sees"] == "given"
    assert "return a - b" not in requests_of(sim.model, asking.marker)[-1].last_output


def test_follow_up_is_remembered_by_codex_itself(sim: Sim, asking: Asking) -> None:
    first = asking.consult(opinion("No: it subtracts."), opinion("Because of the minus."))
    again = asking.consult(followUp=first["consultationId"])
    assert again["answers"][0]["answer"] == "Because of the minus.", again
    last = sim.model.requests[-1]
    assert "No: it subtracts." in json.dumps(last.body) and last.thread_id


def test_prose_is_an_answer_and_a_stalled_model_a_time_out(asking: Asking) -> None:
    (answer,) = asking.consult(say("Plainly, no."))["answers"]
    assert (answer["answer"], answer["asAsked"]) == ("Plainly, no.", False)
    told = asking.consult(Stall(), timeoutSeconds=3)
    assert (told["state"], told["answers"][0]["failure"]) == ("failed", "turn_timeout")


def test_killed_in_the_middle_nothing_is_asked_twice_and_codex_is_gone(sim: Sim, asking: Asking) -> None:
    told = asking.consult(Stall(), waitSeconds=0)
    name = told["consultationId"]
    version = asking.house.ledger.data_version()
    while not requests_of(sim.model, asking.marker):
        version = asking.house.ledger.wait_for_change(version, 0.1)
    askers = processes_with_marker("BATON_RUN", name)
    asker = min(askers, key=lambda process: process.start_time)
    os.kill(asker.pid, signal.SIGKILL)
    told = asking.records("wait", id=name)
    assert told["state"] == "interrupted"
    assert len(requests_of(sim.model, asking.marker)) == 1
    assert processes_with_marker("BATON_RUN", name) == ()
    assert "turn/started" in asking.records("read", id=name, what="raw", limit=30_000)["text"]


def test_codex_keeps_nothing_of_what_is_not_to_be_kept(sim: Sim, asking: Asking) -> None:
    state = asking.house.state.root
    with sim.policy(POLICY.replace("enabled = true", "enabled = true\nstore_full_content = false")):
        told = asking.consult(opinion("A marvellous answer."))
        assert told["answers"][0]["answer"] == "A marvellous answer.", told
        again = asking.consult(followUp=told["consultationId"])
        assert again["state"] == "answered", again
        # A thread of its own, which is told what was said.
        assert "your earlier answer 1" in json.dumps(sim.model.requests[-1].body)
    until_ended(told["consultationId"])
    remove_held(asking.house, time.time() + 3700)
    assert files_with(state, "marvellous") == []
    assert files_with(state, asking.marker) == []


def test_deleting_removes_the_conversation_that_codex_keeps(sim: Sim, asking: Asking) -> None:
    told = asking.consult(opinion("A peculiar answer."))
    assert told["state"] == "answered", told
    until_ended(told["consultationId"])
    state = asking.house.state
    assert any(name.startswith("codex-home/sessions") for name in files_with(state.root, "peculiar"))
    token = asking.records("delete", id=told["consultationId"])["confirm"]
    asking.records("delete", id=told["consultationId"], confirm=token)
    # Freed pages of the database are not overwritten, and Codex's own databases are not ours to edit.
    left = [name for name in files_with(state.root, "peculiar") if ".sqlite" not in name]
    assert left == []


def until_ended(name: str) -> None:
    end = time.monotonic() + 60.0
    while processes_with_marker("BATON_RUN", name):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_model_that_the_session_runs_on_is_never_asked(sim: Sim, asking: Asking) -> None:
    asking.session = Session(cwd=str(asking.folder.path), model="gpt-5.6-sol")
    with pytest.raises(NoAgent, match="own model"):
        asking.consult(opinion("Me again."))


ASK = "Please get a second opinion on the sum"


def test_real_session_consults_another_model_through_the_plugin(
    installed: Installed, model: ScriptedModel
) -> None:
    policy(installed, POLICY)
    question = "Does the sum in calc hold?"
    supervise(
        model,
        ASK,
        script(
            tool("consult", question=question, targets=["codex"]),
            tool("consult", question=question, targets=["copilot"]),
            tool("records", action="list"),
        ),
    )
    model.on(question, shell("cat src/calc.py"), opinion("It does not: it subtracts."))
    installed.session(ASK, writable=False)
    told, refused, listed = answers(model, ASK)
    assert told["state"] == "answered", told
    (answer,) = told["answers"]
    assert answer["answer"] == "It does not: it subtracts." and answer["model"] == "gpt-5.6-sol"
    assert answer["sees"] == "repository"
    assert refused.failed and refused["error"] == "no_agent" and "copilot is not asked" in refused.text
    assert [one["id"] for one in listed["consultations"]] == [told["consultationId"]]
    asked = requests_of(model, question)[0]
    assert "mcp__baton__" not in json.dumps(asked.body)


def test_session_of_a_person_who_did_not_switch_it_on_has_no_such_tools(
    installed: Installed, model: ScriptedModel
) -> None:
    supervise(model, ASK, script("ALL_TOOLS.map(tool => tool.name).filter(n => /consult|records/.test(n))"))
    installed.session(ASK)
    assert requests_of(model, ASK)[-1].last_output.strip().splitlines()[-1] == "[]"
