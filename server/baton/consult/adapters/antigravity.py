"""Antigravity (experimental): one `agy -p`, whose words are taken as they come.

Nothing is known that contains it, and some of its versions say nothing without a terminal. So it is asked
only where the person says so, in an empty folder, and its silence is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.consult.adapters.output import (
    ended_badly,
    failed,
    killed,
    last_line,
    structured_from,
    with_schema,
)
from baton.consult.adapters.program import empty_room, program_of
from baton.consult.adapters.protocol import (
    MAX_OUTPUT,
    Agent,
    CannotAsk,
    Exit,
    Invocation,
    Kill,
    Places,
    Question,
    Reply,
    Runtime,
    Sees,
    Watcher,
)
from baton.contract.errors import InvalidInput
from baton.contract.reply import ReplyFailure

MAX_PROMPT = 100_000
"""Bytes: the question is an argument, and one argument is bounded by the system (128 KiB on Linux)."""


@dataclass(frozen=True)
class Antigravity:
    """Is given the question alone, but nothing holds it to that: the reply says so."""

    runtime: Runtime = Runtime.ANTIGRAVITY
    sees: Sees = Sees.GIVEN
    web: bool = False

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        program = program_of(
            agent, places.house, "agy", known={"uncontained": bool}, names=("GEMINI_API_KEY", "GOOGLE_*")
        )
        if program.extra.get("uncontained") is not True:
            raise CannotAsk(
                ReplyFailure.SCOPE_NOT_ENFORCED,
                "Antigravity cannot be contained; set settings = { uncontained = true } for it to ask it so",
            )
        if question.resume is not None:
            raise InvalidInput("a conversation with Antigravity cannot be gone on with")
        if agent.model is not None or agent.effort is not None:
            raise InvalidInput(f"agents.{agent.id}: Antigravity's model and effort cannot be chosen here")
        prompt = with_schema(question.prompt, question.answer_schema)
        if not prompt.strip() or len(prompt.encode("utf-8", "replace")) > MAX_PROMPT or "\0" in prompt:
            raise InvalidInput(f"a question to Antigravity has 1 to {MAX_PROMPT} bytes, without zeros")
        return program.asked(("-p", prompt), empty_room(places.house, self.runtime), b"")

    def watcher(self) -> Watcher:
        return _watch

    def read(self, agent: Agent, question: Question, places: Places, ended: Exit) -> Reply:
        try:
            said = places.stdout.read_bytes()[:MAX_OUTPUT].decode("utf-8", "replace").strip()
        except OSError:
            said = ""
        reply = Reply(
            text=said or None,
            structured=structured_from(said) if question.answer_schema is not None else None,
            detail="not contained: nothing held it to the question alone",
        )
        if ended.kill is not None:
            return killed(reply, ended)
        if ended.code != 0:
            return ended_badly(reply, ended, places.stderr, last_line(places.stderr) or said[-300:])
        if reply.text is None:
            return failed(reply, ReplyFailure.NO_ANSWER, "Antigravity ended without saying anything")
        return reply


def _watch(line: bytes) -> Kill | None:
    return None
