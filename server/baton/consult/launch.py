"""Starts the process that asks, and finds what one that died has left."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path

from baton.consult.content import Content, remove_held, work_folder
from baton.contract.consult import TurnState
from baton.contract.errors import NotFound, StateUnavailable
from baton.engine.house import House
from baton.engine.spawn import spawn
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord
from baton.ledger.locks import FileLock

log = logging.getLogger(__name__)

Start = Callable[[House, str, FileLock], None]
"""Starts the process that asks for a consultation, and hands its held lock over."""

MAX_STARTS = 3
"""A process that dies before it has asked is started again, this often at most."""

FRESH_SECONDS = 600.0
"""What waited for longer than this when it is found is not asked any more: nobody expects it."""


def start_asking(house: House, consultation_id: str, lock: FileLock) -> None:
    """Start the process; it outlives this one. Raises `StateUnavailable`; our hold ends in any case."""
    output = house.state.root / "logs" / f"{consultation_id}.log"
    try:
        output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        argv = [sys.executable, "-m", "baton.consult.runner", consultation_id, str(lock.handle())]
        spawn(house, argv, output, consultation_id, lock.handle())
    except OSError as error:
        raise StateUnavailable(
            f"the process that asks for {consultation_id} cannot be started: {error}"
        ) from None
    finally:
        # Our own handle; the process's copy keeps the lock.
        lock.release()


def recover_consultations(house: House, start: Start = start_asking) -> list[str]:
    """Bring consultations whose process died to rest, or have what was not sent yet asked; their ids.

    What was being asked is interrupted, its raw output kept: nothing that may have been paid for is asked
    twice by itself.
    """
    remove_held(house)
    recovered = []
    for consultation in house.ledger.consultations(-1, open_only=True):
        lock = FileLock(house.state.consultation_lock(consultation.consultation_id))
        if not lock.try_acquire():
            continue
        try:
            if _recover(house, consultation.consultation_id):
                start(house, consultation.consultation_id, lock)
            recovered.append(consultation.consultation_id)
        except StateUnavailable as error:
            log.error("%s: %s", consultation.consultation_id, error.message)
        finally:
            lock.release()
    return recovered


def _recover(house: House, consultation_id: str) -> bool:
    """Whether something is left that may be asked. The caller holds the consultation's lock."""
    try:
        consultation = house.ledger.consultation(consultation_id)
    except NotFound:
        return False
    if consultation.state.at_rest:
        return False
    turns = []
    for turn in house.ledger.consult_turns(consultation_id):
        if turn.state.at_rest:
            Content(house, consultation).drop_raw(raw_files(house, turn))
        else:
            turns.append(turn)
    for turn in turns:
        if turn.state is TurnState.ASKING:
            close_turn(
                house,
                consultation,
                turn,
                TurnState.INTERRUPTED,
                "the process that asked was ended; what the agent's program had written is kept",
            )
    queued = [turn for turn in turns if turn.state is TurnState.QUEUED]
    if consultation.cancel_asked is None and queued:
        fresh = time.time() - max(turn.queued_at for turn in queued) < FRESH_SECONDS
        if fresh and house.ledger.count_consult_start(consultation_id) < MAX_STARTS:
            return True
    for turn in queued:
        state = TurnState.INTERRUPTED if consultation.cancel_asked is None else TurnState.CANCELLED
        close_turn(house, consultation, turn, state, "nothing was sent")
    house.ledger.settle_consultation(consultation_id)
    return False


def close_turn(
    house: House, consultation: ConsultationRecord, turn: ConsultTurnRecord, state: TurnState, detail: str
) -> None:
    """End a turn that has no answer, keeping what its program wrote."""
    content, files = Content(house, consultation), raw_files(house, turn)
    raw = content.put_raw(turn.number, files)
    house.ledger.end_consult_turn(turn.turn, raw, state=state, detail=detail)
    content.drop_raw(files)


def raw_files(house: House, turn: ConsultTurnRecord) -> dict[str, Path]:
    """Where the program of a turn writes to."""
    folder = work_folder(house, turn.consultation_id)
    return {name: folder / f"{turn.number}.{name}" for name in ("stdout", "stderr")}
