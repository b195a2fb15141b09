"""The seam between the pool and whatever carries out one attempt at a job.

Everything above it (queue, throttle, writers, evidence, the ledger) is the same for every back end. A back
end starts one attempt, streams what happens to a file, and says how it ended; it neither retries nor judges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

from baton.codex.turn import Deadlines
from baton.contract.evidence import Route, TurnFailure, Usage
from baton.pool.jobs import Job

RESUME_TEXT = (
    "Your previous turn on this job was cut off before it ended. Look at what is already done, go on from"
    " there, and end with the final answer that the job asks for. The job, once more:\n\n"
)


@dataclass(frozen=True)
class Assignment:
    """One attempt at one job, as a back end is given it."""

    job: Job
    attempt: int
    """From 1, over all invocations."""
    thread_id: str | None
    """The thread of an attempt that was cut, to go on in where the back end can; None: a new one."""
    run_id: str | None
    """The run that an earlier attempt of an isolated job began; None: a new one."""
    deadlines: Deadlines
    log: Path
    """Where the stream of events goes, JSON lines; the folder is there."""
    scratch: Path
    """A folder of the attempt's own, not made yet; removed afterwards by the back end."""
    halt: anyio.Event
    """Set when the attempt is to end early; its outcome is then `interrupted`."""
    on_thread: Callable[[str], None]
    """To be called with the thread's id before any work is given out."""
    on_run: Callable[[str], None]
    """To be called with the id of the run that does the work of an isolated job."""
    on_answer: Callable[[], None]
    """To be called at the first sign that the model answers; more often does no harm."""

    @property
    def text(self) -> str:
        """What the worker is told in a new thread."""
        return self.job.prompt

    @property
    def resume_text(self) -> str:
        """What the worker is told in the thread of an attempt that was cut."""
        return RESUME_TEXT + self.job.prompt


@dataclass(frozen=True)
class AttemptOutcome:
    """How an attempt ended. What the worker claims is for others to check."""

    completed: bool = False
    """The turn came to its own end and, where there is a process, that exited with 0."""
    began: bool = True
    """False when it is sure that no work was given out."""
    interrupted: bool = False
    """It was ended because of `halt`."""
    resumed: bool = False
    message: str | None = None
    """The worker's final message."""
    thread_id: str | None = None
    run_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    failure: TurnFailure | None = None
    refusal: str | None = None
    """Why a completed attempt does not count all the same, as far as the back end itself can tell."""
    route: Route | None = None
    attested: bool = False
    """Whether `route` is what Codex reports as effective; else it is what was asked for."""
    notices: tuple[str, ...] = ()


class Backend(Protocol):
    """Carries out attempts, several at once. Between `start` and `close`; one event loop."""

    @property
    def name(self) -> str:
        """As the ledger names it."""
        ...

    @property
    def jitter_seconds(self) -> float:
        """Starts are spread over so many seconds, so that no wave falls on one service at once."""
        ...

    @property
    def warms_up(self) -> bool:
        """Whether one attempt is to be answered before others start beside it."""
        ...

    async def start(self) -> None:
        """Make ready. Raises `BatonError` when nothing could be carried out."""
        ...

    async def run(self, assignment: Assignment) -> AttemptOutcome:
        """Carry out one attempt to its end.

        Never raises for what happens to the attempt. Nothing that it started is left running when it
        returns or is cancelled.
        """
        ...

    async def close(self) -> None:
        """End whatever runs. May be called again."""
        ...
