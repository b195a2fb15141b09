"""A person who switched workflows on, a repository, and agents whose programs are scripted fakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from baton.contract.base import parse
from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.contract.workflow import WorkflowCall
from baton.engine.house import House
from baton.tools.workflow_catalogue import workflow_specs
from consult.waiting import end_all, refused
from review import scripted
from review.conftest import POLICY as REVIEWING
from workflow.driven import BINDINGS, HOST, PATCH, WRONG, git, said, service_of

POLICY = f"{REVIEWING}[workflow]\nenabled = true\n"


@dataclass
class Desk:
    """A person's folder, their policy, and a door for a session."""

    house: House
    folder: Path
    policy: Path
    script: scripted.Script
    id: str = ""
    model: str = HOST
    """Of the session."""

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """What `workflow` answers; raises what it raises."""
        given: dict[str, Any] = {"action": action, "waitSeconds": 60, **arguments}
        if action != "start":
            given["id"] = self.id
        call = parse(WorkflowCall, given, "workflow")

        async def do() -> dict[str, Any]:
            return await service_of(self.house).workflow(
                call, Session(cwd=str(self.folder), model=self.model)
            )

        told = anyio.run(do)
        (spec,) = workflow_specs()
        jsonschema.validate(told, spec.output)
        assert set(told) <= set(spec.output["properties"])
        if action == "start":
            self.id = told["workflowId"]
        return told

    def start(self, **arguments: Any) -> dict[str, Any]:
        return self.call("start", **{"goal": "Right sums.", "bindings": BINDINGS, **arguments})

    def refuses(self, action: str, **arguments: Any) -> BatonError:
        """The refusal of a call: one line, and nobody was asked."""
        return refused(self.house, lambda: self.call(action, **arguments))

    def add_policy(self, text: str) -> None:
        self.policy.write_text(self.policy.read_text() + text)


@pytest.fixture
def desk(test_root: Path, own_home: Path) -> Iterator[Desk]:
    folder, policy = test_root / "work", own_home / ".codex" / "baton" / "policy.toml"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "calc.py").write_text(WRONG)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    policy.parent.mkdir(parents=True)
    policy.write_text(POLICY)
    with House.open() as house:
        script = scripted.Script(house)
        script.says("codex", said("Turn the sign."), said("Done.", {"patch": PATCH, "summary": "Turned."}))
        script.says("opencode", {"findings": []})
        yield Desk(house, folder, policy, script)
        end_all(house)
