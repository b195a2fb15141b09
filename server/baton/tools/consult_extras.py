"""Prompts, resources and completions about other agents. A prompt is text: it asks nobody."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from baton.tools.lookup import Lookup

RESOURCES = {
    "consult": ("baton://consultation/", "consultation", "A consultation with all its answers"),
    "review": ("baton://review/", "review", "A review with its findings and what became of them"),
    "workflow": ("baton://workflow/", "workflow", "A workflow with every step"),
}
"""Records as resources, by the group that they belong to: address, name, description."""

MOST_COMPLETIONS = 100
"""What the protocol allows in one answer."""


def prompts(groups: Collection[str]) -> list[types.Prompt]:
    """What a client shows as commands, for the groups that the person switched on."""
    return [prompt for group, make in _PROMPTS.items() if group in groups for prompt in make()]


def _consult_prompts() -> list[types.Prompt]:
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


def _review_prompts() -> list[types.Prompt]:
    return [
        types.Prompt(
            name="review",
            description="Have another agent review a change, after a plan that you see first",
            arguments=[
                types.PromptArgument(name="diff", description="A..B, A...B or a commit"),
                types.PromptArgument(name="goal", description="What to judge"),
            ],
        )
    ]


def _workflow_prompts() -> list[types.Prompt]:
    return [
        types.Prompt(
            name="workflow",
            description="Do a whole job in phases, or go on with one",
            arguments=[
                types.PromptArgument(name="goal", description="What is to be reached"),
                types.PromptArgument(name="preset", description="Who does what, by name"),
                types.PromptArgument(name="workflow_id", description="Go on with this one"),
            ],
        )
    ]


_PROMPTS: Mapping[str, Callable[[], list[types.Prompt]]] = {
    "consult": _consult_prompts,
    "review": _review_prompts,
    "workflow": _workflow_prompts,
}


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
        case "review":
            ref, goal = arguments.get("diff", "").strip(), arguments.get("goal", "").strip()
            what = f"diffRef {json.dumps(ref)}" if ref else "the change that you ask me for"
            why = f" for the goal: {goal}" if goal else ""
            return (
                f"Use Baton's review with action plan on {what}{why}. Show me the whole plan, and run it only"
                " when I agree. Then check each finding in the code before you finalise."
            )
        case "workflow":
            return _workflow_text(*(arguments.get(part, "").strip() for part in _WORKFLOW_PARTS))
    raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {name}")


_WORKFLOW_PARTS = ("goal", "preset", "workflow_id")


def _workflow_text(goal: str, preset: str, workflow_id: str) -> str:
    if workflow_id:
        begin = (
            f"Use Baton's workflow with action status and id {json.dumps(workflow_id)}, then go on with it"
        )
    else:
        reach = f"the goal: {goal}" if goal else "a goal that you ask me for"
        under = f" and preset {json.dumps(preset)}" if preset else ""
        begin = f"Use Baton's workflow with action start{under} for {reach}"
    return (
        f"{begin}. Do what each answer says in `next`. Show me what is due before you confirm it, and say"
        " what you recorded yourself."
    )


def templates(groups: Collection[str]) -> list[types.ResourceTemplate]:
    """Records as resources. Templates list no instances: `records` and the command line find an id."""
    return [
        types.ResourceTemplate(
            name=name,
            uri_template=address + "{id}",
            description=description,
            mime_type="application/json",
        )
        for group, (address, name, description) in RESOURCES.items()
        if group in groups
    ]


def resource(uri: str, lookup: Lookup, groups: Collection[str]) -> dict[str, Any]:
    """What is recorded at a resource's address. Raises `MCPError` for another kind of address."""
    read = {
        "consult": lookup.consultation,
        "review": lookup.review_record,
        "workflow": lookup.workflow_record,
    }
    for group, (address, _, _) in RESOURCES.items():
        if group in groups and uri.startswith(address) and len(uri) > len(address):
            return read[group](uri.removeprefix(address))
    raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown resource: {uri}")


def completions(argument: str, begun: str, lookup: Lookup) -> list[str]:
    """What the value of an argument may be, given its beginning."""
    known = {
        "agent": lookup.agent_names,
        "persona": lookup.persona_names,
        "id": lookup.recent_ids,
        "workflow_id": lookup.recent_workflows,
    }.get(argument)
    found = known() if known is not None else []
    return [value for value in found if value.startswith(begun)][:MOST_COMPLETIONS]
