"""The MCP handlers for prompts, resources and completions about other agents."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from baton.contract.errors import BatonError
from baton.tools.consult_extras import completions, prompt_text, prompts, resource, templates
from baton.tools.lookup import Lookup

Context = ServerRequestContext[dict[str, Any], Any]


def consult_handlers(lookup: Callable[[], Lookup], groups: Collection[str]) -> dict[str, Any]:
    """Arguments of a server by name, for the groups that are switched on; listing never calls `lookup`."""

    async def list_prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts(groups))

    async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in [prompt.name for prompt in prompts(groups)]:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {params.name}")
        text = prompt_text(params.name, params.arguments or {})
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])

    async def list_resources(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def list_templates(
        _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=templates(groups))

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        found = await _told(lambda: resource(uri, lookup(), groups))
        text = json.dumps(found, ensure_ascii=False)
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def complete(_: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        argument = params.argument
        values = await _told(lambda: completions(argument.name, argument.value, lookup()))
        return types.CompleteResult(completion=types.Completion(values=values))

    return {
        "on_list_prompts": list_prompts,
        "on_get_prompt": get_prompt,
        "on_list_resources": list_resources,
        "on_list_resource_templates": list_templates,
        "on_read_resource": read_resource,
        "on_completion": complete,
    }


async def _told(read: Callable[[], Any]) -> Any:
    """What reading gives, in a thread; what a person can mend is one line of an error."""
    try:
        return await anyio.to_thread.run_sync(read)
    except BatonError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=error.message) from None
