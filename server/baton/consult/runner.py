"""The process that a consultation is asked in. It holds the consultation's lock for life.

So a consultation outlives the patience of the client and the session that asked. The programs of the agents
run under the guard: when this process is killed, they end with it.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any

import anyio

from baton.codex.session_profile import UNBOUNDED, SessionProfile, read_session_profile
from baton.consult.adapters.protocol import Agent, Places, Question, Reply, Runtime
from baton.consult.agents import AdapterOf
from baton.consult.answer import read
from baton.consult.content import Content, work_folder
from baton.consult.identity import Host, Identity, not_somebody_else
from baton.consult.launch import Start, close_turn, raw_files, recover_consultations, start_asking
from baton.consult.prompt import envelope
from baton.consult.request import TurnRequest
from baton.consult.run import ask
from baton.contract.consult import TurnState
from baton.contract.errors import BatonError
from baton.contract.reply import ReplyFailure
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord
from baton.ledger.locks import FileLock
from baton.process.logs import set_up_logging
from baton.process.tree import become_subreaper, end_descendants
from baton.process.utf8 import go_on_in_utf8
from baton.runtime.use import hold_own_environment

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often a waiting turn looks for places of processes that died, and for a wish to cancel."""


def main() -> None:
    """Entry point. Exit status 0 when the consultation came to rest, 3 when another process has it."""
    from baton.consult.adapters import adapter_of

    go_on_in_utf8()
    arguments = sys.argv[1:]
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: python -m baton.consult.runner CONSULTATION [LOCK-HANDLE]\n")
        raise SystemExit(2)
    hold_own_environment()
    handle = int(arguments[1]) if len(arguments) == 2 else None
    raise SystemExit(run(arguments[0], handle, adapter_of))


def run(consultation_id: str, handle: int | None, adapter_of: AdapterOf, start: Start = start_asking) -> int:
    """Ask what the consultation's last round has left to ask; the exit status."""
    set_up_logging("info", "%(asctime)s %(levelname)s %(message)s")
    try:
        return anyio.run(_run, consultation_id, handle, adapter_of, start)
    except BatonError as error:
        sys.stderr.write(f"baton.consult.runner: {error.message}\n")
        return 1


async def _run(consultation_id: str, handle: int | None, adapter_of: AdapterOf, start: Start) -> int:
    become_subreaper()
    with House.open() as house:
        path = house.state.consultation_lock(consultation_id)
        lock = FileLock(path) if handle is None else FileLock.adopt(path, handle)
        if handle is None and not lock.try_acquire():
            return 3
        try:
            await _Asking(house, consultation_id, adapter_of, start).until_rest()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_descendants)
            house.ledger.maintain()
            if house.ledger.consultation(consultation_id).state.at_rest:
                lock.remove()
            lock.release()
    return 0


class _Asking:
    """The last round of one consultation at work."""

    def __init__(self, house: House, consultation_id: str, adapter_of: AdapterOf, start: Start) -> None:
        self._house = house
        self._consultation = house.ledger.consultation(consultation_id)
        self._content = Content(house, self._consultation)
        self._adapter_of = adapter_of
        self._start = start
        self._work = anyio.CancelScope()
        self._stopped: tuple[TurnState, str] | None = None

    async def until_rest(self) -> None:
        consultation = self._consultation
        if consultation.state.at_rest:
            return
        open_turns = self._open_turns()
        for turn in open_turns:
            if turn.state is TurnState.ASKING:
                why = "an earlier process that asked was ended; what the agent's program had written is kept"
                close_turn(self._house, consultation, turn, TurnState.INTERRUPTED, why)
        work_folder(self._house, consultation.consultation_id).mkdir(mode=0o700, parents=True, exist_ok=True)
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(self._signals)
            watchers.start_soon(self._cancels)
            with self._work:
                async with anyio.create_task_group() as tasks:
                    for turn in open_turns:
                        if turn.state is TurnState.QUEUED:
                            tasks.start_soon(self._turn, turn)
            watchers.cancel_scope.cancel()
        self._close_rest()
        self._house.ledger.settle_consultation(consultation.consultation_id)

    def _open_turns(self) -> list[ConsultTurnRecord]:
        turns = self._house.ledger.consult_turns(self._consultation.consultation_id)
        return [turn for turn in turns if not turn.state.at_rest]

    def _close_rest(self) -> None:
        state, why = self._stopped or (TurnState.INTERRUPTED, "it was not asked to the end")
        for turn in self._open_turns():
            detail = why if turn.state is TurnState.ASKING else f"{why}; nothing was sent"
            close_turn(self._house, self._consultation, turn, state, detail)

    async def _turn(self, turn: ConsultTurnRecord) -> None:
        request = TurnRequest.model_validate(turn.request)
        await self._place(turn, request.max_parallel)
        try:
            reply, schema = await self._ask(turn, request)
        except BatonError as error:
            reply, schema = Reply(failure=ReplyFailure.OTHER, detail=error.message), None
        except Exception as error:
            log.exception("turn %s of %s", turn.number, turn.consultation_id)
            fault = f"asking failed: {type(error).__name__}: {error}"
            reply, schema = Reply(failure=ReplyFailure.OTHER, detail=fault), None
        with anyio.CancelScope(shield=True):
            await blocking(self._record, turn, reply, schema)

    async def _place(self, turn: ConsultTurnRecord, limit: int) -> None:
        """Wait for a place among the agents at work on this machine."""
        ledger = self._house.ledger
        version = ledger.data_version()
        while not ledger.start_consult_turn(turn.turn, limit):
            version = await ledger.changed(version, LOOK_SECONDS)
            await blocking(recover_consultations, self._house, self._start)

    async def _ask(
        self, turn: ConsultTurnRecord, request: TurnRequest
    ) -> tuple[Reply, dict[str, Any] | None]:
        text = await blocking(self._content.read, turn.number, "prompt")
        schema: dict[str, Any] | None = None
        if request.has_schema:
            schema = json.loads(await blocking(self._content.read, turn.number, "schema"))
        scratch = work_folder(self._house, turn.consultation_id) / request.seat
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        raw = raw_files(self._house, turn)
        agent = Agent(
            id=turn.agent,
            runtime=Runtime(turn.runtime),
            command=request.command,
            model=turn.asked_model,
            effort=turn.asked_effort,
            web_search=request.web_search,
            extra=request.settings,
            env_names=tuple(request.pass_names),
        )
        question = Question(
            prompt=text.decode("utf-8", "replace"),
            cwd=scratch if request.folder is None else Path(request.folder),
            timeout_seconds=request.timeout_seconds,
            idle_seconds=request.idle_seconds,
            answer_schema=envelope(schema),
            web=request.web,
            session=_bounds(request, self._house),
            resume=request.resume,
            # A program that remembers keeps the text.
            keep_session=self._consultation.keeps_text,
            max_cost=request.max_cost,
        )
        places = Places(self._house, scratch, raw["stdout"], raw["stderr"])
        return await ask(self._adapter_of(agent.runtime), agent, question, places), schema

    def _record(self, turn: ConsultTurnRecord, reply: Reply, schema: dict[str, Any] | None) -> None:
        # What was paid for is safe before anything is made of it.
        files = raw_files(self._house, turn)
        raw = self._content.put_raw(turn.number, files)
        self._house.ledger.refer_to_consult_artifacts(raw)
        found = read(reply, schema)
        self._house.ledger.end_consult_turn(
            turn.turn,
            state=TurnState.ANSWERED if found.failure is None else TurnState.FAILED,
            answer=self._content.put_answer(turn.number, found.answer),
            failure=found.failure,
            detail=found.detail,
            model=reply.model,
            attested=reply.attested,
            usage=reply.usage,
            cost=reply.cost,
            session_id=reply.session_id,
            retry_after=reply.retry_after,
            required_action=reply.required_action,
            notices=route_notices(self._consultation, turn, reply),
        )
        self._content.drop_raw(files)

    async def _cancels(self) -> None:
        ledger = self._house.ledger
        version = ledger.data_version()
        while ledger.consultation(self._consultation.consultation_id).cancel_asked is None:
            version = await ledger.changed(version, LOOK_SECONDS)
        self._stop(TurnState.CANCELLED, "cancelled")

    async def _signals(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
            async for number in received:
                name = signal.Signals(number).name
                self._stop(TurnState.INTERRUPTED, f"the process that asks was told to stop ({name})")

    def _stop(self, state: TurnState, why: str) -> None:
        self._stopped = self._stopped or (state, why)
        self._work.cancel()


def _bounds(request: TurnRequest, house: House) -> SessionProfile:
    """What bounds the agent's reading: the session's profile, where there is a folder to read at all."""
    if request.folder is None or request.session is None:
        return UNBOUNDED
    return read_session_profile(request.session, house.env)


def route_notices(consultation: ConsultationRecord, turn: ConsultTurnRecord, reply: Reply) -> list[str]:
    """What is worth knowing of who answered, where it is not who was asked."""
    if reply.model is None:
        return []
    notices = []
    if turn.asked_model is not None and reply.model != turn.asked_model:
        notices.append(f"asked for {turn.asked_model}, the program names {reply.model}")
    models = consultation.host.get("models")
    host = Host(
        str(consultation.host.get("runtime")), tuple(map(str, models)) if isinstance(models, list) else ()
    )
    if host.models and not_somebody_else(Identity(turn.runtime, reply.model), host) is not None:
        notices.append(f"{reply.model} is not provably another model than the session's own")
    return notices


if __name__ == "__main__":
    main()
