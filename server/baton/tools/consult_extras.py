"""Prompts, resources and completions about other agents. A prompt is text: it asks nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import mcp_types as types
from mcp.shared.exceptions import MCPError

RESOURCE = "baton://consultation/"
TEMPLATE = RESOURCE + "{id}"

MOST_COMPLETIONS = 100
"""What the protocol allows in one answer."""


class Lookup(Protocol):
    """What completions and resources read."""

    def consultation(self, consultation_id: str) -> dict[str, Any]: ...

    def recent_ids(self) -> list[str]: ...

    def agent_names(self) -> list[str]: ...

    def persona_names(self) -> list[str]: ...


def prompts() -> list[types.Prompt]:
    """What a client shows as commands."""
    question = types.PromptArgument(name="question", description="What to ask")
    agent = types.PromptArgument(name="agent", description="Whom; default: the best one")
    persona = types.PromptArgument(name="persona", description="How to look at it")
    return [
        types.Prompt(
            name="second-opinion",
            description="Ask another agent what it thinks",
            arguments=[question, agent, persona],
        ),
        types.Prompt(
            name="both-sides", description="Have two agents argue for and against", arguments=[question]
        ),
        types.Prompt(
            name="recall",
            description="Find what an agent said earlier",
            arguments=[types.PromptArgument(name="words", description="Words that must occur")],
        ),
    ]


def prompt_text(name: str, arguments: Mapping[str, str]) -> str:
    """What a prompt says to the session. Raises `MCPError` for an unknown name."""
    question = arguments.get("question", "").strip()
    about = f"the question: {question}" if question else "what we are at; ask me first if that is not clear"
    weigh = (
        " Give it all the material it needs: it sees nothing of this conversation. Then weigh what it says."
    )
    match name:
        case "second-opinion":
            agent, persona = arguments.get("agent", "").strip(), arguments.get("persona", "").strip()
            whom = f" with targets [{json.dumps(agent)}]" if agent else ""
            how = f" and persona {json.dumps(persona)}" if persona else ""
            return f"Use Baton's consult{whom}{how} on {about}.{weigh}"
        case "both-sides":
            return f"Use Baton's consult with bothSides true on {about}.{weigh}"
        case "recall":
            words = arguments.get("words", "").strip()
            sought = f"query {json.dumps(words)}" if words else "words that you ask me for"
            return (
                f"Use Baton's records with action search and {sought}; read what fits, tell me who said it."
            )
    raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {name}")


def templates() -> list[types.ResourceTemplate]:
    """Records as resources. Templates list no instances: `records` finds an id."""
    return [
        types.ResourceTemplate(
            name="consultation",
            uri_template=TEMPLATE,
            description="A consultation with all its answers",
            mime_type="application/json",
        )
    ]


def resource_id(uri: str) -> str:
    """The id in a resource's address. Raises `MCPError` for another kind of address."""
    if not uri.startswith(RESOURCE) or len(uri) == len(RESOURCE):
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown resource: {uri}")
    return uri.removeprefix(RESOURCE)


def completions(argument: str, begun: str, lookup: Lookup) -> list[str]:
    """What the value of an argument may be, given its beginning."""
    known = {
        "agent": lookup.agent_names,
        "persona": lookup.persona_names,
        "id": lookup.recent_ids,
    }.get(argument)
    found = known() if known is not None else []
    return [value for value in found if value.startswith(begun)][:MOST_COMPLETIONS]
