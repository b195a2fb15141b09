"""The review tool as a client sees it: only when switched on, small, and with a way to the person."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client.session import ClientSession
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage

from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.review.confirm import Person, Says
from baton.runtime.groups import enabled_groups
from baton.tools.person import AT_ONCE
from baton.tools.review_catalogue import review_specs
from baton.tools.server import build_server, initialization_options
from tools.conftest import StartClient

ON = "[consult]\nenabled = true\n[review]\nenabled = true\n"


@pytest.mark.parametrize(
    ("policy", "groups"),
    [
        (ON, ("consult", "review")),
        ("[review]\nenabled = true\n", ()),
        ("[consult]\nenabled = true\n", ("consult",)),
        ("[consult]\nenabled = true\n[review]\nenabled = false\n", ("consult",)),
        ("consult.enabled = true\nreview.enabled = true\n", ("consult", "review")),
    ],
)
@pytest.mark.parametrize("has_toml", [True, False])
def test_reviews_are_there_when_both_are_switched_on(
    tmp_path: Path, policy: str, groups: tuple[str, ...], has_toml: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_toml:
        monkeypatch.setattr("baton.runtime.groups.tomllib", None)
    (tmp_path / "baton").mkdir()
    (tmp_path / "baton" / "policy.toml").write_text(policy)
    assert enabled_groups({"CODEX_HOME": str(tmp_path)}) == groups


def test_whole_declaration_is_under_six_kilobytes() -> None:
    (spec,) = review_specs()
    declaration = spec.declaration().model_dump(mode="json", by_alias=True, exclude_none=True)
    assert len(json.dumps(declaration).encode()) < 6_000


class Asked:
    """In the place of the service: asks the person, and tells what they said."""

    async def review(self, call: ReviewCall, session: Session, person: Person) -> dict[str, Any]:
        says = await person("Send it?")
        return {"state": "planned", "next": says.value}


def says_with(form: Any) -> str:
    """What the service hears when the client answers its form so; None: the client has no forms."""

    async def go() -> str:
        server = build_server(Asked, worker=False, groups=("consult", "review"))  # type: ignore[arg-type]
        to_server, server_reads = create_context_streams[SessionMessage | Exception](4)
        server_writes, from_server = create_context_streams[SessionMessage](4)
        async with anyio.create_task_group() as group:
            group.start_soon(server.run, server_reads, server_writes, initialization_options(server))
            async with ClientSession(from_server, to_server, elicitation_callback=form) as client:  # type: ignore[arg-type]
                await client.initialize()
                result = await client.call_tool("review", {"action": "plan", "goal": "g"})
            group.cancel_scope.cancel()
        content = result.structured_content
        assert content is not None
        return str(content["next"])

    return anyio.run(go)


def form(action: str, content: dict[str, Any] | None = None, after: float = 0.0) -> Any:
    async def answer(_: Any, params: Any) -> types.ElicitResult:
        assert params.message == "Send it?"
        await anyio.sleep(after)
        return types.ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    return answer


def test_person_answers_the_form() -> None:
    assert says_with(form("accept", {"send": True})) == Says.YES.value
    assert says_with(form("accept", {"send": False})) == Says.NO.value


def test_program_that_declines_at_once_is_nobody_and_a_slow_no_is_a_persons() -> None:
    assert says_with(form("decline")) == Says.NOBODY.value
    assert says_with(form("decline", after=AT_ONCE + 0.1)) == Says.NO.value


def test_client_without_forms_is_nobody() -> None:
    assert says_with(None) == Says.NOBODY.value


@pytest.mark.parametrize("policy", [ON, "[review]\nenabled = true\n"])
def test_front_and_full_server_agree_on_whether_work_can_be_reviewed(
    policy: str, own_home: Path, start_front: StartClient, start_server: StartClient
) -> None:
    file = own_home / ".codex" / "baton" / "policy.toml"
    file.parent.mkdir()
    file.write_text(policy)
    said = []
    for start in (start_front, start_server):
        with start() as client:
            said.append([client.greet(), client.ask(1, "tools/list", {}), client.ask(2, "prompts/list")])
    assert said[0] == said[1]
    names = [tool["name"] for tool in said[0][1]["result"]["tools"]]
    assert ("review" in names) is (policy == ON)
