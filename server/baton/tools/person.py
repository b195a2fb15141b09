"""The way to the person in front of a session: a form that their program shows (MCP elicitation)."""

from __future__ import annotations

import logging
import time
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from baton.review.confirm import Person, Says

logger = logging.getLogger(__name__)

Context = ServerRequestContext[dict[str, Any], Any]

AT_ONCE = 2.0
"""Seconds within which nobody has read a form: a program that runs unattended declines by itself."""

_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "send": {"type": "boolean", "title": "Send it", "description": "To the agents named above"}
    },
    "required": ["send"],
}


def person_before(context: Context) -> Person:
    """The person in front of the session that a request came from."""

    async def ask(text: str) -> Says:
        form = types.ClientCapabilities(elicitation=types.ElicitationCapability())
        if not context.session.check_client_capability(form):
            return Says.NOBODY
        began = time.monotonic()
        try:
            result = await context.session.elicit_form(text, _FORM, context.request_id)
        except MCPError as error:
            logger.info("the client does not ask the person: %s", error)
            return Says.NOBODY
        if result.action == "accept":
            return Says.YES if (result.content or {}).get("send") is True else Says.NO
        return Says.NOBODY if time.monotonic() - began < AT_ONCE else Says.NO

    return ask
