"""Records what the real command lines print for the cases: PYTHONPATH=server:tests python THIS-FILE ROOT

Kept are the events that mean something, without the machine's paths and the long texts of the programs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from baton.consult.adapters import adapter_of
from baton.consult.adapters.protocol import Runtime
from baton.engine.house import House
from baton.simulate.service import ScriptedService
from consult.adapters.cases import CASES, SCHEMA
from consult.adapters.conftest import Desk, agent_at, question, real

FOLDER = Path(__file__).parent / "recorded"

_DROPPED = ("user", "user.message", "session.skills_loaded", "session.info", "session.mcp_servers_loaded")


def main() -> None:
    root = Path(sys.argv[1])
    (root / "home").mkdir(parents=True)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(root / "home"),
        "CODEX_HOME": str(root / "home" / ".codex"),
        "BATON_STATE": str(root / "state"),
    }
    with House.open(env) as house:
        for name, cases in CASES.items():
            for case in cases:
                if case.recorded:
                    _record(Desk(house, root), Runtime(name), case)


def _record(desk: Desk, runtime: Runtime, case: Any) -> None:
    with ScriptedService(*case.answers) as service:
        agent, env = agent_at(runtime, service, real(runtime))
        places = desk.with_env(**env).places()
        schema = SCHEMA if case.with_schema else None
        adapter = _Listening(adapter_of(runtime))
        reply = desk.with_env(**env).ask(agent, question(answer_schema=schema), places, adapter)
        port = service.root.rsplit(":", 1)[1]
    files = {"stdout": places.stdout, "stderr": places.stderr, "usage": places.scratch / "usage.json"}
    kept: dict[str, Any] = {"status": adapter.status}
    for kind, file in files.items():
        text = file.read_text() if file.exists() else ""
        text = text.replace(str(desk.root), "/home/person").replace(port, "8080")
        kept[kind] = _events(text) if kind == "stdout" else text
    target = FOLDER / f"{runtime}-{case.name}.json"
    target.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    print(target.name, reply.failure, reply.detail)


class _Listening:
    """An adapter that notes how its program ended."""

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self.status: int | None = None

    def prepare(self, *given: Any) -> Any:
        return self._adapter.prepare(*given)

    def watcher(self) -> Any:
        return self._adapter.watcher()

    def read(self, agent: Any, asked: Any, places: Any, ended: Any) -> Any:
        self.status = ended.code
        return self._adapter.read(agent, asked, places, ended)

    runtime = sees = web = None


def _events(text: str) -> list[Any]:
    events = []
    for line in text.splitlines():
        event = json.loads(line)
        if event.get("type") in _DROPPED:
            continue
        if event.get("type") == "system":
            event = {
                key: event[key] for key in ("type", "subtype", "session_id", "model", "tools") if key in event
            }
        events.append(event)
    return events


if __name__ == "__main__":
    main()
