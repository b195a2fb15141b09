"""The `consult` table of the policy."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, Field

from baton.policy.narrowing import FIXED, MAX, SUBSET, ordered
from baton.policy.section import (
    LOOSE,
    Bytes,
    Count,
    Dollars,
    FolderPath,
    Instructions,
    ModelName,
    Name,
    PersonaName,
    Seconds,
    Section,
    VariableNames,
    Word,
    unique,
)

Capability = Literal[
    "coding",
    "research",
    "reasoning",
    "writing",
    "review",
    "planning",
    "prompt_authoring",
    "testing",
    "synthesis",
]
"""Kinds of questions that agents are scored for."""
CAPABILITIES: tuple[str, ...] = get_args(Capability)


class ConsultAgent(Section):
    """Another agent that may be asked: its command line, its model and what it is good at."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether it may be asked."""
    runtime: Annotated[Literal["codex", "claude", "opencode", "copilot", "antigravity"], FIXED]
    """The command line that asks it."""
    command: Annotated[Word, FIXED]
    """The program, by name or absolute path; empty: the usual name, looked for on PATH."""
    model: Annotated[ModelName, FIXED]
    """Its model, under a name with a version; empty: whatever the command line uses by default."""
    effort: Annotated[Word, FIXED]
    """Its reasoning effort; empty: the command line's default."""
    web_search: Annotated[bool, ordered(True, False)]
    """Whether it may search the web for a question that asks for that."""
    priority: Annotated[Annotated[int, Field(ge=0, le=1000)], FIXED]
    """Decides between agents of equal score: the lower one is asked."""
    scores: Annotated[dict[Capability, Annotated[int, Field(ge=0, le=100)]], FIXED]
    """How good it is at what, 0 to 100; without a score it is never asked for that kind of question."""
    settings: Annotated[dict[str, Any], FIXED]
    """Settings of its command line alone."""


class ConsultSpend(Section):
    """Ceilings of what consulting may cost. 0 sets none. Looked at before anything is sent."""

    max_cost_per_consultation: Annotated[Dollars, FIXED]
    """US dollars of one consultation, as its agents report them, after which it is not followed up."""
    max_turns_per_consultation: Annotated[Annotated[int, Field(ge=0, le=10_000)], FIXED]
    """Questions put to agents in one consultation, follow-ups included."""
    max_cost_per_day: Annotated[Dollars, FIXED]
    """US dollars within 24 hours, as the agents report them."""
    max_turns_per_day: Annotated[Annotated[int, Field(ge=0, le=1_000_000)], FIXED]
    """Questions put to agents within 24 hours; also counts those that report no cost."""


class ConsultRules(Section):
    """Second opinions from other agents on this machine."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether other agents may be asked at all. What is asked goes to their providers."""
    host_model: Annotated[ModelName, FIXED]
    """The model of the session that asks, where its program does not tell; empty: not known."""
    score_margin: Annotated[Annotated[int, Field(ge=0, le=100)], FIXED]
    """Agents within so many points of the best count as equal: their priority decides."""
    max_agents: Annotated[Annotated[int, Field(ge=1, le=10)], MAX]
    """Agents that one call may ask."""
    max_parallel: Annotated[Annotated[int, Field(ge=1, le=64)], MAX]
    """Agents at work at once on this machine, in all sessions together; others wait their turn."""
    timeout_seconds: Annotated[Seconds, MAX]
    """For one answer."""
    idle_seconds: Annotated[Seconds, MAX]
    """Without a sign of life from the command line that is asked."""
    store_full_content: Annotated[bool, ordered(True, False)]
    """Keep questions, material and answers; otherwise their text goes an hour after the answer."""
    context_roots: Annotated[tuple[FolderPath, ...], LOOSE, AfterValidator(unique), SUBSET]
    """Folders whose files a call may name as material; `.` is the session's own folder."""
    max_context_bytes: Annotated[Bytes, MAX]
    """Material of one question, text and files together."""
    read_repository: Annotated[bool, ordered(True, False)]
    """Let agents whose command line can be held to reading see the session's folder."""
    pass_to_agents: Annotated[VariableNames, SUBSET]
    """Names of environment variables for their command lines, beside the built-in list."""
    keep_days: Annotated[Count, FIXED]
    """Days that a consultation is kept."""
    personas: Annotated[dict[PersonaName, Instructions], FIXED]
    """Ways to look at a question, by name, as instructions for the agent."""
    spend: ConsultSpend
    agents: Annotated[dict[Name, ConsultAgent], FIXED]
    """Agents by name."""
