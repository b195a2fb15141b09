"""A worker's thread: started or resumed inside its boundary, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import anyio

from baton.codex.appserver import AppServer
from baton.codex.boundary import boundary_fault, deviates, reported_route
from baton.codex.bubblewrap import with_bubblewrap
from baton.codex.events import Notification, ThreadEvents
from baton.codex.failures import classify
from baton.codex.faults import NoAnswer, RequestRefused, ServerDied, ThreadRefused
from baton.codex.settings import ThreadSettings
from baton.codex.tokens import Tally
from baton.codex.turn import Deadlines, TurnOutcome, TurnRecord, TurnStatus
from baton.contract.errors import CodexFailure
from baton.contract.evidence import Route, TurnFailure
from baton.contract.states import FailureClass
from baton.process.tree import processes_with_marker

START_SECONDS = 60.0
INTERRUPT_SECONDS = 5.0
"""How long an interrupted turn has to end."""

CLEAN_SECONDS = 10.0

THREAD_MARKER = "CODEX_THREAD_ID"
"""Variable that Codex gives to every command of a thread."""

OnEvent = Callable[[Notification], None]


async def start_thread(
    server: AppServer, settings: ThreadSettings, *, timeout: float = START_SECONDS
) -> WorkerThread:
    """Start a thread and check that it is inside the boundary asked for.

    Raises `ThreadRefused` when it is not (`scope_not_enforced`), has another model (`route_mismatch`), is not
    there in time (`start_timeout`) or Codex refuses the settings; no work has been given out then. Raises
    `ServerDied` as every request does.
    """
    return await _open(server, None, settings, timeout)


async def resume_thread(
    server: AppServer, thread_id: str, settings: ThreadSettings, *, timeout: float = START_SECONDS
) -> WorkerThread:
    """Resume a thread, with all settings given and checked again: Codex keeps none of the boundary."""
    return await _open(server, thread_id, settings, timeout)


class WorkerThread:
    """One worker. Runs one turn at a time; `interrupt` and `steer` may be called meanwhile."""

    def __init__(
        self,
        server: AppServer,
        thread_id: str,
        settings: ThreadSettings,
        route: Route,
        *,
        resumed: bool = False,
    ) -> None:
        self.id = thread_id
        self.route = route
        """The route as Codex reports it, kept up to date by every turn."""
        self.settings = settings
        self._server = server
        self._turn_id: str | None = None
        self._tokens = Tally() if resumed else Tally.of_new_thread()
        self._broken = False
        """Whether its last turn failed."""

    async def run_turn(
        self,
        text: str,
        *,
        effort: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        deadlines: Deadlines | None = None,
        on_event: OnEvent | None = None,
    ) -> TurnOutcome:
        """Give the worker `text` and wait for the end of the turn, at most as long as the deadlines say.

        Never raises for what happens to the turn: a failed one, a deadline, a crash of the server are
        outcomes. A deadline interrupts the turn, but not its commands: `clean_terminals` ends those. When the
        caller is cancelled, or `on_event` raises, the turn is interrupted first. `on_event` is called for
        every event but fragments, and must not block.
        """
        events = self._server.events(self.id)
        record = TurnRecord(tokens=Tally(self._tokens))
        for event in events.drain():
            record.take(event)
        try:
            params = self._turn_params(text, effort, output_schema)
            await self._run(params, events, record, deadlines or Deadlines(), on_event)
        except ServerDied as death:
            record.failure = TurnFailure(failure_class=FailureClass.CRASH, message=death.message)
            record.status = TurnStatus.FAILED
        except (RequestRefused, NoAnswer) as fault:
            record.failure = _request_failure(fault)
            record.status = TurnStatus.FAILED
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.interrupt()
            raise
        finally:
            self._turn_id = None
            self._tokens = record.tokens
            self._broken = record.status is TurnStatus.FAILED
        self._update_route(record)
        return record.outcome()

    async def interrupt(self) -> bool:
        """Ask the running turn to end; False when there is none or Codex does not answer in time."""
        if self._turn_id is None:
            return False
        params = {"threadId": self.id, "turnId": self._turn_id}
        try:
            await self._server.request("turn/interrupt", params, INTERRUPT_SECONDS)
        except CodexFailure:
            return False
        return True

    async def steer(self, text: str) -> bool:
        """Add input to the running turn; False when there is none any more."""
        if self._turn_id is None:
            return False
        params = {"threadId": self.id, "expectedTurnId": self._turn_id, "input": _input(text)}
        try:
            await self._server.request("turn/steer", params)
        except RequestRefused:
            return False
        return True

    async def clean_terminals(self) -> tuple[int, ...]:
        """End every command that the thread left running, before its work is captured.

        Returns the process ids that could not be ended within a few seconds, empty when all is well. Raises
        `CodexFailure` when the server does not do it: then end the server itself, which ends them too.
        """
        await self._server.request("thread/backgroundTerminals/clean", {"threadId": self.id}, CLEAN_SECONDS)
        left = await self._commands()
        with anyio.move_on_after(CLEAN_SECONDS):
            while left:
                await anyio.sleep(0.02)
                left = await self._commands()
        return left

    async def _commands(self) -> tuple[int, ...]:
        """Processes of this thread's commands. Codex does not tell their ids, but marks them.

        Each command is the first process of its own namespace: no child, marked or not, outlives it.
        """
        found = await anyio.to_thread.run_sync(processes_with_marker, THREAD_MARKER, self.id)
        return tuple(process.pid for process in found)

    async def forget(self) -> None:
        """Have the server unload the thread; its rollout stays and it can be resumed.

        A thread whose turn failed is not unloaded for want of subscribers, and would keep its old sandbox
        when it is resumed with a new one: it is put into the archive and taken out again.
        """
        named = {"threadId": self.id}
        try:
            await self._server.request("thread/unsubscribe", named)
            if self._broken:
                await self._server.request("thread/archive", named)
                await self._server.request("thread/unarchive", named)
        except CodexFailure:
            return
        finally:
            self._server.forget(self.id)

    async def _run(
        self,
        params: dict[str, Any],
        events: ThreadEvents,
        record: TurnRecord,
        deadlines: Deadlines,
        on_event: OnEvent | None,
    ) -> None:
        begun = anyio.current_time()
        # Not to be cancelled half-way: a turn whose id we do not know could not be interrupted.
        with anyio.CancelScope(shield=True):
            answered = await self._server.request(
                "turn/start", params, min(deadlines.start, deadlines.turn, START_SECONDS)
            )
        turn = answered.get("turn")
        record.turn_id = self._turn_id = str(turn.get("id")) if isinstance(turn, dict) else None
        while record.status is None:
            until, which = deadlines.next(begun, events.last_activity)
            if anyio.current_time() >= until:
                await self._give_up(events, record)
                record.failure = deadlines.failure(which)
                record.status = TurnStatus.INTERRUPTED
                return
            event = await events.next(until)
            if event is not None:
                record.take(event)
                if on_event is not None:
                    on_event(event)

    async def _give_up(self, events: ThreadEvents, record: TurnRecord) -> None:
        """Interrupt, and take in what still comes, above all the tokens spent."""
        await self.interrupt()
        until = anyio.current_time() + INTERRUPT_SECONDS
        while record.status is None and anyio.current_time() < until:
            event = await events.next(until)
            if event is not None:
                record.take(event)

    def _turn_params(
        self, text: str, effort: str | None, output_schema: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        params: dict[str, Any] = {"threadId": self.id, "input": _input(text)}
        effort = effort or self.settings.effort
        if effort is not None:
            params["effort"] = effort
            self.route = self.route.model_copy(update={"asked_effort": effort})
        if output_schema is not None:
            params["outputSchema"] = dict(output_schema)
        return params

    def _update_route(self, record: TurnRecord) -> None:
        route = self.route.model_copy(
            update={
                "model": record.model or self.route.model,
                "effort": record.effort or self.route.effort,
                "server_claimed": record.claimed or self.route.server_claimed,
            }
        )
        self.route = route.model_copy(update={"deviates": deviates(route)})


async def _open(
    server: AppServer, resumed: str | None, settings: ThreadSettings, timeout: float
) -> WorkerThread:
    try:
        with anyio.fail_after(timeout):
            params = (await _led(server, settings)).params(await _skills(server, settings))
            if resumed is None:
                if settings.ephemeral:
                    params |= {"ephemeral": True}
                answered = await server.request("thread/start", params, timeout)
            else:
                params |= {"threadId": resumed, "excludeTurns": True}
                answered = await server.request("thread/resume", params, timeout)
    except TimeoutError:
        late = NoAnswer(f"Codex did not start the worker within {timeout:g} s")
        raise ThreadRefused(_request_failure(late)) from None
    except (RequestRefused, NoAnswer) as fault:
        raise ThreadRefused(_request_failure(fault)) from fault
    fault_found = boundary_fault(answered, settings)
    thread = answered.get("thread")
    thread_id = thread.get("id") if isinstance(thread, dict) else None
    if fault_found is not None or not isinstance(thread_id, str):
        why = fault_found or "Codex named no thread"
        failure = TurnFailure(failure_class=FailureClass.SCOPE_NOT_ENFORCED, message=why)
        raise ThreadRefused(failure)
    route = reported_route(answered, settings)
    if route.model not in (None, settings.model):
        why = f"Codex started the worker on {route.model} instead of {settings.model}"
        raise ThreadRefused(TurnFailure(failure_class=FailureClass.ROUTE_MISMATCH, message=why))
    return WorkerThread(server, thread_id, settings, route, resumed=resumed is not None)


async def _led(server: AppServer, settings: ThreadSettings) -> ThreadSettings:
    """With a PATH by which Codex finds a usable bubblewrap: it looks on the one of each command."""
    led = await anyio.to_thread.run_sync(with_bubblewrap, settings.environment, server.binary)
    return replace(settings, environment=led)


async def _skills(server: AppServer, settings: ThreadSettings) -> tuple[str, ...]:
    """Names of all skills that Codex would find for this worker, so that they can be switched off."""
    answered = await server.request("skills/list", {"cwds": [str(settings.cwd)], "forceReload": True})
    names = {skill.get("name") for entry in _tables(answered, "data") for skill in _tables(entry, "skills")}
    return tuple(sorted(name for name in names if isinstance(name, str)))


def _request_failure(fault: RequestRefused | NoAnswer) -> TurnFailure:
    if isinstance(fault, NoAnswer):
        return TurnFailure(failure_class=FailureClass.START_TIMEOUT, message=fault.message)
    found = classify({"message": fault.text})
    return found.model_copy(update={"message": fault.message})


def _input(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = table.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
