"""Renders what the front answers without the full server: `surface.json`, tracked beside this file.

`python -m baton.tools.surface` writes it, with `--check` it only compares (exit 1 when it is stale).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NoReturn

import anyio
import mcp_types as types
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from baton.runtime.groups import FURTHER_GROUPS
from baton.tools.catalogue import Service
from baton.tools.server import build_server, initialization_options

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
"""What the front answers. Without consultation it is `tools/list` alone: the others are not served."""


def surface_path() -> Path:
    """Where the rendered surface lies."""
    return Path(__file__).with_name("surface.json")


def render_surface() -> str:
    """The surface as JSON: what the full server really answers, asked over its own streams.

    `initialize` and `tools` are the results for a session, `consult` the ones for a session of a person who
    switched consultation on, `further` the tools that other groups add to those, `furtherLists` what they
    add to the lists and `instructions` the text for each choice of groups, joined by a space; `worker` those
    for a server inside a worker.
    The front puts the negotiated version, one of `versions` or else the one in `initialize`, into the answer.
    """
    hello, tools = anyio.run(_ask, False, (), LISTS[:1])
    consult_hello, consult_tools, *lists = anyio.run(_ask, False, ("consult",), LISTS)
    worker_hello, worker_tools = anyio.run(_ask, True, (), LISTS[:1])
    further, further_lists = {}, dict[str, dict[str, Any]]()
    for group in FURTHER_GROUPS:
        _, more, *more_lists = anyio.run(_ask, False, ("consult", group), LISTS)
        further[group] = more["tools"][len(consult_tools["tools"]) :]
        further_lists[group] = {
            method: _added(before, after)
            for method, before, after in zip(LISTS[1:], lists, more_lists, strict=True)
            if before != after
        }
    choices = [("consult", *more) for size in (1, 2) for more in combinations(FURTHER_GROUPS, size)]
    told = {"consult": consult_hello["instructions"]}
    for groups in choices:
        (group_hello,) = anyio.run(_ask, False, groups, ())
        told[" ".join(groups)] = group_hello["instructions"]
    surface = {
        "versions": list(HANDSHAKE_PROTOCOL_VERSIONS),
        "initialize": hello,
        "tools": tools,
        "lists": {},
        "consult": {
            "initialize": consult_hello,
            "tools": consult_tools,
            "lists": dict(zip(LISTS[1:], lists, strict=True)),
        },
        "further": further,
        "furtherLists": further_lists,
        "instructions": told,
        "worker": {"initialize": worker_hello, "tools": worker_tools, "lists": {}},
    }
    return json.dumps(surface, separators=(",", ":"), ensure_ascii=False) + "\n"


def _added(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[Any]]:
    """What one list has more at its end."""
    return {
        name: entries[len(before[name]) :]
        for name, entries in after.items()
        if isinstance(entries, list) and entries != before[name]
    }


def check_surface() -> str | None:
    """One line on how the tracked surface differs from the server, None when it does not."""
    path = surface_path()
    current = path.read_text(encoding="utf-8") if path.exists() else ""
    if current == render_surface():
        return None
    return f"{path.name} is stale: run python -m baton.tools.surface"


async def _ask(worker: bool, groups: Sequence[str], lists: Sequence[str]) -> list[dict[str, Any]]:
    """The results of `initialize` and of each list of a server on memory streams."""
    server = build_server(_no_service, worker=worker, groups=groups)
    to_server, server_reads = create_context_streams[SessionMessage | Exception](4)
    server_writes, from_server = create_context_streams[SessionMessage](4)
    parameters = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": {},
        "clientInfo": {"name": "surface", "version": "0"},
    }
    results: list[dict[str, Any]] = []
    async with from_server, anyio.create_task_group() as group:
        group.start_soon(server.run, server_reads, server_writes, initialization_options(server))
        asked: list[tuple[str, dict[str, Any]]] = [
            ("initialize", parameters),
            *((name, {}) for name in lists),
        ]
        for number, (method, params) in enumerate(asked):
            request = types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params)
            await to_server.send(SessionMessage(request))
            answer = (await from_server.receive()).message
            assert isinstance(answer, types.JSONRPCResponse), answer
            results.append(answer.result)
        await to_server.aclose()
        async for _ in from_server:
            pass
    return results


def _no_service() -> Service:
    raise AssertionError("listing tools must not need the engine")


def main() -> NoReturn:
    """Write the surface, or compare it with `--check`."""
    if sys.argv[1:] == ["--check"]:
        fault = check_surface()
        sys.exit(fault)
    surface_path().write_text(render_surface(), encoding="utf-8")
    sys.exit(0)


if __name__ == "__main__":
    main()
