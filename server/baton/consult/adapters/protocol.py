"""What an adapter of another agent's command line gets and gives; nothing of any single one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from baton.codex.session_profile import UNBOUNDED, SessionProfile
from baton.contract.errors import BatonError
from baton.contract.evidence import Usage
from baton.contract.reply import ReplyFailure
from baton.engine.house import House

MAX_OUTPUT = 64 * 1024 * 1024
"""Bytes of a command line's output that are kept; one that writes more is ended (`too_much`)."""

MAX_TEXT = 1024 * 1024
"""Characters of an answer that are taken into `Reply.text`; the whole stays in the raw output."""


class Runtime(StrEnum):
    """The command lines that can be asked."""

    CODEX = "codex"
    CLAUDE = "claude"
    OPENCODE = "opencode"
    COPILOT = "copilot"
    ANTIGRAVITY = "antigravity"


class Sees(StrEnum):
    """What an agent can read while it answers."""

    REPOSITORY = "repository"
    """The folder of the question, read-only by the sandbox."""
    GIVEN = "given"
    """The text of the question alone: it has no tool that reads files."""


@dataclass(frozen=True)
class Agent:
    """One agent as the person configured it."""

    id: str
    runtime: Runtime
    command: str | None = None
    """The program, a name on PATH or an absolute path; None: the runtime's usual name."""
    model: str | None = None
    """None: the command line's own default, whatever that is today."""
    effort: str | None = None
    web_search: bool = False
    """Whether this agent may be asked with the web; the question must want it too."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Settings of one runtime alone; unknown ones are refused by `prepare`."""
    env_names: tuple[str, ...] = ()
    """Variables that the person adds to what its program is given; a trailing `*` lists all that start so."""


@dataclass(frozen=True)
class Question:
    """One question, complete."""

    prompt: str
    """The whole text. It goes to standard input, so its size is not bounded by the system."""
    cwd: Path
    """For an agent that sees the repository, the folder it may read; the others never see it."""
    timeout_seconds: float
    idle_seconds: float
    """How long the program may be silent."""
    answer_schema: Mapping[str, Any] | None = None
    readable: tuple[Path, ...] = ()
    """More that an agent which sees the repository may read."""
    web: bool = False
    session: SessionProfile = UNBOUNDED
    """What the calling session may read bounds what an agent that sees the repository may read."""
    resume: str | None = None
    """The program's own id of the conversation to go on with, `Reply.session_id` of the turn before."""
    keep_session: bool = True
    """Whether the program is to keep the conversation, so that it can be gone on with."""
    max_cost: float | None = None
    """US dollars, held where the program itself has such a limit."""


@dataclass(frozen=True)
class Places:
    """Where one question is worked on. The folders exist; the two files are made by the run."""

    house: House
    """Its `env` is what a program's environment is chosen from; homes of runtimes that need one of their own
    lie in its state folder."""
    scratch: Path
    """A folder of this question alone: the working folder of an agent that only sees what it is given."""
    stdout: Path
    """Raw output, kept whatever becomes of the question."""
    stderr: Path


@dataclass(frozen=True)
class Invocation:
    """A program to be started. `env` is its whole environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    stdin: bytes


class CannotAsk(BatonError):
    """Raised by an adapter that cannot put the question at all; no model was asked and nothing was spent."""

    code = "cannot_ask"

    def __init__(self, failure: ReplyFailure, message: str, required_action: str | None = None) -> None:
        super().__init__(message)
        self.failure = failure
        self.required_action = required_action


@dataclass(frozen=True)
class Kill:
    """Why a running program is to be ended before its time."""

    failure: ReplyFailure
    detail: str


@dataclass(frozen=True)
class Exit:
    """How the program ended. Exactly one of `code` and `signal` is set; `kill` when we ended it."""

    code: int | None
    signal: int | None = None
    kill: Kill | None = None


@dataclass(frozen=True)
class Reply:
    """What came of a question. A failed one may still carry text, usage and session: they were paid for."""

    text: str | None = None
    structured: Any | None = None
    """The answer as data when a schema was asked for; it satisfies the schema unless `failure` says not."""
    session_id: str | None = None
    model: str | None = None
    """The model that answered, as far as the program tells."""
    attested: bool = False
    """Whether `model` is what was reported of the answer, not an echo of what was asked for."""
    usage: Usage | None = None
    """Tokens of this question alone; None: not told."""
    cost: float | None = None
    """US dollars of this question alone as the program reckons; None: not told."""
    failure: ReplyFailure | None = None
    detail: str = ""
    """One line: what went wrong and what to do, or what is worth knowing of a good answer."""
    retry_after: float | None = None
    """Seconds that the service asked to wait."""
    required_action: str | None = None
    """The exact command that mends it, where there is one."""


@dataclass(frozen=True)
class Progress:
    """What `ask` tells while it goes on: the start of the program, then its signs of life."""

    event: str
    """`started` or `line`."""
    pid: int | None = None
    """With `started`: the guard's pid, for the process record; ending it with SIGTERM ends the tree."""
    lines: int = 0
    """Lines of output so far."""


Tell = Callable[[Progress], None]
"""Called on the event loop; must not block. What it raises ends the question."""

Watcher = Callable[[bytes], Kill | None]


class Adapter(Protocol):
    """One runtime. Holds no state: every question has its own watcher and files."""

    @property
    def runtime(self) -> Runtime: ...

    @property
    def sees(self) -> Sees: ...

    @property
    def web(self) -> bool:
        """Whether it can be asked to use the web while everything else stays shut."""
        ...


@runtime_checkable
class ProgramAdapter(Adapter, Protocol):
    """A runtime that is one program run for each question."""

    def prepare(self, agent: Agent, question: Question, places: Places) -> Invocation:
        """The program to start; may make what it needs below `places`.

        Raises `InvalidInput` for settings that cannot be, `CannotAsk` when the program is not there, too old
        to be contained, or not logged in.
        """
        ...

    def watcher(self) -> Watcher:
        """A fresh function that is given each line of output, and says when the program must be ended."""
        ...

    def read(self, agent: Agent, question: Question, places: Places, ended: Exit) -> Reply:
        """What the files say. Never raises: what cannot be understood is a failure of the reply."""
        ...


@runtime_checkable
class ConversingAdapter(Adapter, Protocol):
    """A runtime that is talked to over a protocol of its own, with the same deadlines and raw files."""

    async def converse(self, agent: Agent, question: Question, places: Places, tell: Tell) -> Reply: ...
