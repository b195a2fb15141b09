"""The scripted model: a local Responses server whose answers are written down beforehand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from baton.simulate.answer import TokenUsage
from baton.simulate.request import Request
from baton.simulate.script import Action, Drop, Fail, FailStream, Step, fail
from baton.simulate.serving import Serving
from baton.simulate.wire import Handler


@dataclass
class _Thread:
    steps: list[Step]
    requests: int = 0
    cursor: int = 0
    repeated: int = 0
    turn_id: str = ""
    completed: int = 0


@dataclass(frozen=True)
class _Rule:
    marker: str
    steps: tuple[Step, ...]


class ScriptedModel(Serving):
    """A Responses server on 127.0.0.1 and a free port, open while it is used as a context manager.

    Every Codex thread is bound to a script at its first request: that of the first `on` whose marker stands
    in the text of the input, else the fallback. A request for which no step is left gets HTTP 400 and is
    listed in `surprises`. All methods may be called from any thread.
    """

    def __init__(self, usage: TokenUsage | None = None) -> None:
        super().__init__()
        self.usage = usage or TokenUsage()
        self._rules: list[_Rule] = []
        self._fallback: tuple[Step, ...] = ()
        self._threads: dict[str, _Thread] = {}
        self._requests: list[Request] = []
        self._surprises: list[str] = []
        self._changed = threading.Condition()

    def on(self, marker: str, *steps: Step) -> None:
        """Threads whose first input contains `marker` follow these steps."""
        with self._changed:
            self._rules.append(_Rule(marker, steps))

    def fallback(self, *steps: Step) -> None:
        """Threads without any marker follow these steps."""
        with self._changed:
            self._fallback = steps

    @property
    def url(self) -> str:
        """Base URL for a provider's `base_url`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every model request so far, oldest first."""
        with self._changed:
            return tuple(self._requests)

    @property
    def surprises(self) -> tuple[str, ...]:
        """What was asked and not scripted, and steps that could not be answered."""
        with self._changed:
            return tuple(self._surprises)

    def requests_of(self, thread_id: str) -> tuple[Request, ...]:
        return tuple(request for request in self.requests if request.thread_id == thread_id)

    def answers_of(self, thread_id: str) -> int:
        """How many answers of this thread were completed: each reported `usage` once."""
        with self._changed:
            thread = self._threads.get(thread_id)
            return thread.completed if thread else 0

    def wait_for(self, wanted: Callable[[Request], bool], timeout: float = 30.0) -> Request:
        """The first request, past or coming, that satisfies `wanted`. TimeoutError after `timeout` s."""
        found: list[Request] = []

        def look() -> bool:
            found.extend(request for request in self._requests if wanted(request))
            return bool(found)

        with self._changed:
            if not self._changed.wait_for(look, timeout):
                raise TimeoutError(f"no such model request within {timeout:g} s")
        return found[0]

    def handler(self) -> type[Handler]:
        return Handler.bound_to(self)

    # What the HTTP handler uses.

    def record(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> Request:
        """Note a request and bind its thread to a script if it is new."""
        draft = Request(path, headers, body, 0)
        with self._changed:
            thread = self._threads.get(draft.thread_id)
            if thread is None:
                thread = self._threads[draft.thread_id] = _Thread(list(self._script_for(draft)))
            request = Request(path, headers, body, thread.requests)
            thread.requests += 1
            self._requests.append(request)
            self._changed.notify_all()
        return request

    def next_action(self, request: Request) -> Action:
        """The step that answers this request; functions among the steps are called here, outside any lock."""
        while True:
            with self._changed:
                thread = self._threads[request.thread_id]
                step = self._take(thread, request.turn_id)
            if step is None:
                return self._unscripted(request)
            if not callable(step):
                return step
            made = step(request)
            with self._changed:
                fresh = list(made) if isinstance(made, Sequence) else [made]
                thread.steps[thread.cursor : thread.cursor] = fresh

    def completed(self, request: Request) -> None:
        with self._changed:
            self._threads[request.thread_id].completed += 1
            self._changed.notify_all()

    def surprise(self, what: str) -> None:
        with self._changed:
            self._surprises.append(what)

    def _script_for(self, request: Request) -> tuple[Step, ...]:
        for rule in self._rules:
            if rule.marker in request.text:
                return rule.steps
        return self._fallback

    @staticmethod
    def _take(thread: _Thread, turn_id: str) -> Step | None:
        """Advance the thread's script. A failing step is taken again by retries within the turn."""
        if thread.repeated:
            step = thread.steps[thread.cursor]
            times = step.times if isinstance(step, Fail | FailStream | Drop) else 1
            if turn_id == thread.turn_id and (times is None or thread.repeated < times):
                thread.repeated += 1
                return step
            thread.cursor += 1
            thread.repeated = 0
        if thread.cursor >= len(thread.steps):
            return None
        step = thread.steps[thread.cursor]
        thread.turn_id = turn_id
        if isinstance(step, Fail | FailStream | Drop):
            thread.repeated = 1
        else:
            thread.cursor += 1
        return step

    def _unscripted(self, request: Request) -> Action:
        what = f"request {request.number} of thread {request.thread_id or '?'}: no step is scripted"
        self.surprise(what)
        return fail(400, {"error": {"message": what, "type": "invalid_request_error"}})
