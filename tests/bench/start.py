"""How fast the server starts as Codex starts it, against a bare one-tool server in the same run.

The plugin is copied as `codex plugin add` copies it and started by its own `.mcp.json` with nothing built.
CPU is user and system time of the server's whole process tree up to its answer to `tools/list`, by wait4
after its end; the two kinds take turns, and medians are compared.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import median, parser, report

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Server:
    """How to start a server."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]


@dataclass(frozen=True)
class Start:
    """One start: milliseconds of CPU and wall to the answer to `tools/list`, and the two answers."""

    cpu: float
    wall: float
    hello: dict[str, Any]
    tools_line: bytes


class Client:
    """A client on a server's pipes, as plain as can be so that it costs the measured server nothing."""

    def __init__(self, server: Server) -> None:
        self.process = subprocess.Popen(
            server.argv, cwd=server.cwd, env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, number: int, method: str, params: Mapping[str, Any]) -> bytes:
        """The line that answers a request; notifications on the way are passed over."""
        self.tell({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"the server ended before it had answered {method}")
            if json.loads(line).get("id") == number:
                return line

    def tell(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def greet(self) -> dict[str, Any]:
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        hello: dict[str, Any] = json.loads(self.ask(0, "initialize", params))["result"]
        self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return hello

    def leave(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        if self.process.wait(timeout=60) != 0:
            raise SystemExit(f"the server ended with status {self.process.returncode}")


def measure(server: Server) -> Start:
    """Start, greet, list, end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    client = Client(server)
    hello = client.greet()
    line = client.ask(1, "tools/list", {})
    wall = time.perf_counter() - began
    client.leave()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Start(cpu * 1000, wall * 1000, hello, line)


def first_call(server: Server) -> tuple[float, dict[str, Any]]:
    """Seconds from the start to the answer of the first tool call, and that answer's result."""
    began = time.perf_counter()
    client = Client(server)
    client.greet()
    call = {"name": "inspect_run", "arguments": {"runId": "none"}}
    answer = json.loads(client.ask(2, "tools/call", call))
    seconds = time.perf_counter() - began
    client.leave()
    return round(seconds, 2), answer.get("result", {})


def installed(folder: Path) -> Server:
    """The plugin in a cache like Codex's, started as its `.mcp.json` says, with a state folder of its own."""
    plugin = folder / "plugins" / "cache" / "baton" / "baton" / "0.1.0"
    ignored = shutil.ignore_patterns(".git", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")
    shutil.copytree(CHECKOUT, plugin, ignore=ignored)
    config = json.loads((plugin / ".mcp.json").read_text())["mcpServers"]["baton"]
    passed = ("HOME", "PATH", "LANG", "TMPDIR", *config["env_vars"])
    env = {name: os.environ[name] for name in passed if name in os.environ and name != "BATON_RUNTIME"}
    env["BATON_STATE"] = str(folder / "state")
    return Server([config["command"], *config["args"]], plugin / config["cwd"], env)


def bare() -> Server:
    """The one-tool server in this interpreter."""
    script = Path(__file__).with_name("bare_server.py")
    return Server([sys.executable, str(script)], script.parent, dict(os.environ))


def main() -> None:
    arguments = parser("How fast the server starts.")
    arguments.add_argument("--pairs", type=int, default=15, help="starts of each kind (15)")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as name:
        folder = Path(name)
        front, yardstick = installed(folder), bare()
        measure(yardstick)  # Its first start compiles; the front's never does.
        pairs = [(measure(front), measure(yardstick)) for _ in range(options.pairs)]
        building, _ = first_call(front)
        ready, result = first_call(front)
    fronts, bares = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    ratio = median([a.cpu / b.cpu for a, b in pairs], 4)
    report(
        {
            "pairs": options.pairs,
            "cpuMs": median([start.cpu for start in fronts]),
            "wallMs": median([start.wall for start in fronts]),
            "bareCpuMs": median([start.cpu for start in bares]),
            "bareWallMs": median([start.wall for start in bares]),
            "cpuRatio": ratio,
            "withinAnEighth": ratio <= 1 / 8,
            "firstCallSecondsNothingBuilt": building,
            "firstCallSecondsBuilt": ready,
            "firstCallAnswered": "structuredContent" in result,
            "instructionsBytes": len(fronts[0].hello["instructions"].encode()),
            "toolsListBytes": len(fronts[0].tools_line),
        },
        as_json=options.json,
    )


if __name__ == "__main__":
    main()
