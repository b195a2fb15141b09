"""The full MCP server: thin functions over the engine's service, on the low-level API of the SDK."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from importlib.resources import files
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError

from baton import __version__
from baton.contract.base import parse
from baton.contract.errors import BatonError
from baton.process.logs import set_up_logging
from baton.process.utf8 import go_on_in_utf8
from baton.runtime.groups import enabled_groups
from baton.runtime.use import hold_own_environment
from baton.tools.catalogue import Service, ToolSpec, tool_specs
from baton.tools.consult_catalogue import consult_specs
from baton.tools.consult_handlers import consult_handlers
from baton.tools.person import person_before
from baton.tools.review_catalogue import review_specs
from baton.tools.session import SANDBOX_STATE, host_folder, read_session
from baton.tools.stdio import stdio
from baton.tools.workflow_catalogue import workflow_specs

logger = logging.getLogger(__name__)

Context = ServerRequestContext[dict[str, Any], Any]

PROGRESS_SECONDS = 10.0
"""How often a waiting call says that it is still waiting, to a client that asked for progress."""


def build_server(
    service: Callable[[], Service], *, worker: bool, groups: Collection[str] = ()
) -> Server[dict[str, Any]]:
    """A server whose tools call `service()`, made at the first call so that listing never touches the state.

    `worker`: the server was started inside a worker, which may not delegate: it lists no tools. `groups`: the
    optional ones that the person switched on (see `baton.runtime.groups`).
    """
    consult = "consult" in groups and not worker
    specs = () if worker else tool_specs() + tuple(spec for name in groups for spec in _OPTIONAL[name]())
    by_name = {spec.name: spec for spec in specs}
    made: list[Service] = []

    def the_service() -> Service:
        if not made:
            made.append(service())
        return made[0]

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[spec.declaration() for spec in specs])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        spec = by_name.get(params.name)
        if spec is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        # The raw `_meta`: the typed one renames keys.
        meta = (context.params or {}).get("_meta")
        return await _answer(spec, params.arguments or {}, meta, the_service, context)

    return Server(
        "baton",
        version=__version__,
        title="Baton",
        instructions=None if worker else instructions(groups),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        **(consult_handlers(the_service, groups) if consult else {}),
    )


_OPTIONAL: Mapping[str, Callable[[], tuple[ToolSpec, ...]]] = {
    "consult": consult_specs,
    "review": review_specs,
    "workflow": workflow_specs,
}
"""The tools of each optional group."""


_NAMED: Mapping[str, str] = {
    "review": " Judge a diff: review.",
    "workflow": " Job in phases: workflow.",
}
"""What the instructions add for a group that stands on consultation."""


def instructions(groups: Collection[str] = ()) -> str:
    """The text that the supervising model sees before it has looked at any tool, with those of `groups`."""
    name = "instructions_consult.md" if "consult" in groups else "instructions.md"
    text = (files("baton.tools") / name).read_text(encoding="utf-8").strip()
    return text.replace("{further}", "".join(said for group, said in _NAMED.items() if group in groups))


def initialization_options(server: Server[dict[str, Any]]) -> InitializationOptions:
    """What the server says of itself; the experimental capability asks Codex for the session's folder."""
    return server.create_initialization_options(experimental_capabilities={SANDBOX_STATE: {}})


async def _answer(
    spec: ToolSpec,
    arguments: Mapping[str, object],
    meta: Mapping[str, object] | None,
    service: Callable[[], Service],
    context: Context,
) -> types.CallToolResult:
    try:
        call = parse(spec.arguments, arguments, spec.name)
        session = read_session(meta, host_folder(os.environ))
        made = await anyio.to_thread.run_sync(service)
        way = (person_before(context),) if spec.asks_person else ()
        result = await _with_progress(context, getattr(made, spec.name)(call, session, *way))
    except BatonError as error:
        return failure(error.code, error.message)
    except Exception as error:
        # The log has the traceback; a caller gets one line and keeps its session.
        logger.exception("%s failed", spec.name)
        return failure("internal", f"internal error in {spec.name}: {type(error).__name__}: {error}")
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=one_line(result))],
        structured_content=result,
    )


def failure(code: str, message: str) -> types.CallToolResult:
    """An error as a tool's answer: the same line for a model that reads only one of the two parts."""
    line = " ".join(message.split())
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=line)],
        structured_content={"error": code, "message": line},
        is_error=True,
    )


def one_line(result: Mapping[str, object]) -> str:
    """The text block of an answer: who, how it stands and what to do next; the structure has the rest."""
    parts = [
        str(result[key])
        for key in ("runId", "workflowId", "reviewId", "consultationId", "state", "verdict", "integration")
        if result.get(key)
    ]
    following = result.get("next")
    text = " ".join(parts) or "done"
    return " ".join(f"{text}; next: {following}".split()) if following else text


async def _with_progress(context: Context, call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    """Await `call`; meanwhile report the seconds waited, which only ever rise."""
    start = time.monotonic()

    async def beat() -> None:
        while True:
            await anyio.sleep(PROGRESS_SECONDS)
            seconds = round(time.monotonic() - start)
            await context.session.report_progress(1.0 + seconds, None, f"waiting for {seconds} s")

    failed: Exception | None = None
    result: dict[str, Any] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        try:
            result = await call
        except Exception as error:
            # Kept and raised outside: the task group would wrap it.
            failed = error
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return result


async def serve(server: Server[dict[str, Any]]) -> None:
    """Serve one client over stdin and stdout until it closes."""
    async with stdio() as (read, write):
        await server.run(read, write, initialization_options(server))


def main() -> None:
    """Entry point `baton-server`, started by the front or by hand."""
    go_on_in_utf8()
    set_up_logging("warning", "%(name)s: %(message)s")
    hold_own_environment()
    worker = os.environ.get("BATON_WORKER") == "1"
    server = build_server(_session_service, worker=worker, groups=enabled_groups(os.environ))
    anyio.run(serve, server)


def _session_service() -> Service:
    # Imported here: listing tools and reading schemas need none of the engine.
    from baton.tools.services import SessionService

    return SessionService()


if __name__ == "__main__":
    main()
