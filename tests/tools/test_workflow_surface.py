"""The workflow tool, its prompt, its resource and its completions, as a client sees them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from baton.contract.workflow import Executor, Step
from baton.engine.house import House
from baton.ledger.workflow_records import WorkflowRecord
from baton.tools.workflow_catalogue import workflow_specs
from baton.workflow.terms import Bound, Terms
from tools.client import Client
from tools.conftest import StartClient

CHECKOUT = Path(__file__).parents[2]

CONSULT = "[consult]\nenabled = true\n"
ALL = CONSULT + "[review]\nenabled = true\n[workflow]\nenabled = true\n"
LISTED = ("tools/list", "prompts/list", "resources/templates/list")


def switch_on(home: Path, policy: str) -> None:
    (home / ".codex" / "baton").mkdir()
    (home / ".codex" / "baton" / "policy.toml").write_text(policy)


def test_whole_declaration_is_under_six_kilobytes() -> None:
    (spec,) = workflow_specs()
    declaration = spec.declaration().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert len(json.dumps(declaration).encode()) < 6_000


@pytest.mark.parametrize(
    ("policy", "there"),
    [(ALL, True), (CONSULT, False), (ALL.replace("[consult]\nenabled = true", ""), False)],
)
def test_front_and_server_list_it_alike_and_only_when_switched_on(
    own_home: Path, start_front: StartClient, start_server: StartClient, policy: str, there: bool
) -> None:
    switch_on(own_home, policy)
    said = []
    for start in (start_front, start_server):
        with start() as client:
            hello = client.greet()
            said.append([client.ask(number, method) for number, method in enumerate(LISTED, 1)] + [hello])
    assert said[0] == said[1]
    told = said[0][-1]["instructions"]
    assert len(told) <= 600 and "yield_time_ms" in told and "{" not in told.replace('{"yield', "")
    assert ("workflow" in told) is there and ("review" in told) is there
    assert ("workflow" in [tool["name"] for tool in said[0][0]["result"]["tools"]]) is there
    if "result" in said[0][1]:
        prompts = [prompt["name"] for prompt in said[0][1]["result"]["prompts"]]
        kinds = [template["name"] for template in said[0][2]["result"]["resourceTemplates"]]
        assert ("workflow" in prompts) is there and ("workflow" in kinds) is there
        assert ("review" in prompts) is there and ("review" in kinds) is there


def test_prompt_is_text_that_starts_nothing(own_home: Path, start_server: StartClient) -> None:
    switch_on(own_home, ALL)
    with start_server() as client:
        client.greet()
        texts = []
        for number, arguments in enumerate(
            ({"goal": "Faster", "preset": "cheap"}, {"workflow_id": "wabc"}, {}), 1
        ):
            found = client.ask(number, "prompts/get", {"name": "workflow", "arguments": arguments})["result"]
            texts.append(found["messages"][0]["content"]["text"])
    assert "the goal: Faster" in texts[0] and '"cheap"' in texts[0]
    assert 'id "wabc"' in texts[1] and "a goal that you ask me for" in texts[2]
    with House.open() as house:
        assert house.ledger.workflows() == []


@pytest.mark.parametrize("policy", [CONSULT, ALL])
def test_record_is_a_resource_and_its_id_is_completed(own_home: Path, test_root: Path, policy: str) -> None:
    switch_on(own_home, policy)
    bound = {step: Bound(executor=Executor.HOST) for step in Step}
    terms = Terms(
        bindings=bound,
        max_fix_rounds=1,
        advance_on_failed_test=False,
        different_from_implementer=True,
        different_from_planner=False,
        max_patch_bytes=1,
        max_cost=0,
        max_turns=0,
    )
    with House.open() as house:
        house.ledger.begin_workflow(
            WorkflowRecord(
                workflow_id="wabcdefgh",
                workspace="/nowhere",
                repo_key="k",
                goal="Right sums.",
                base="b",
                terms=terms.wire(compact=False),
                replan_token="secret",
            )
        )
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "server")}
    with Client([sys.executable, "-B", "-m", "baton.tools.server"], cwd=test_root, env=env) as client:
        client.greet()
        answer = client.ask(1, "resources/read", {"uri": "baton://workflow/wabcdefgh"})
        if policy == CONSULT:
            assert "Unknown resource" in answer["error"]["message"]
            return
        text = answer["result"]["contents"][0]["text"]
        assert json.loads(text)["goal"] == "Right sums." and "secret" not in text
        missing = client.ask(2, "resources/read", {"uri": "baton://workflow/wnothing"})["error"]
        assert "baton workflow list" in missing["message"]
        asked = {
            "ref": {"type": "ref/prompt", "name": "workflow"},
            "argument": {"name": "workflow_id", "value": "wab"},
        }
        assert client.ask(3, "completion/complete", asked)["result"]["completion"]["values"] == ["wabcdefgh"]
        told = client.call(4, "workflow", {"action": "status", "id": "wabcdefgh"})
        assert told["structuredContent"]["goal"] == "Right sums.", told
        refused = client.call(5, "workflow", {"action": "next"})
        assert refused["isError"] and "id" in refused["structuredContent"]["message"]
