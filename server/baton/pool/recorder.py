"""Group commit: facts that several jobs want recorded at the same time share one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import anyio

from baton.engine.blocking import blocking
from baton.ledger.store import Ledger

log = logging.getLogger(__name__)


@dataclass
class _Fact:
    write: Callable[[], None]
    prepare: Callable[[], None] | None
    durable: bool
    awaited: bool = True
    done: anyio.Event = field(default_factory=anyio.Event)
    fault: Exception | None = None


class Recorder:
    """Writes facts to the ledger, those that came together in one transaction.

    `run` must be at work while `record` is called.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: list[_Fact] = []
        self._wake = anyio.Event()
        self._ended = False

    async def record(
        self, write: Callable[[], None], *, prepare: Callable[[], None] | None = None, durable: bool = True
    ) -> None:
        """Have `write` called inside a transaction; returns when that is committed, on disk if `durable`.

        `prepare` is called before, outside any transaction, for what is slow. Both run in another thread.
        Raises what they or the commit raised; a fault of one fact undoes that fact alone. Once asked for, the
        fact is written also when the caller is cancelled.
        """
        if self._ended:
            raise RuntimeError("nobody writes any more")
        fact = _Fact(write, prepare, durable)
        self._waiting.append(fact)
        self._wake.set()
        with anyio.CancelScope(shield=True):
            await fact.done.wait()
        if fact.fault is not None:
            raise fact.fault

    def soon(self, write: Callable[[], None]) -> None:
        """Have `write` called with the next facts; nobody waits for it, and its fault is logged."""
        if not self._ended:
            self._waiting.append(_Fact(write, None, durable=False, awaited=False))
            self._wake.set()

    async def run(self) -> None:
        """Write what comes, until cancelled; what was asked for before is written first."""
        try:
            while True:
                await self._wake.wait()
                self._wake = anyio.Event()
                await self._write()
        finally:
            with anyio.CancelScope(shield=True):
                while self._waiting:
                    await self._write()
            self._ended = True

    async def _write(self) -> None:
        facts, self._waiting = self._waiting, []
        if facts:
            try:
                await blocking(self._commit, facts)
            except Exception as fault:
                for fact in facts:
                    fact.fault = fact.fault or fault
            for fact in facts:
                if fact.fault is not None and not fact.awaited:
                    log.warning("something could not be recorded: %s", fact.fault)
                fact.done.set()

    def _commit(self, facts: list[_Fact]) -> None:
        for fact in facts:
            if fact.prepare is not None:
                _try(fact, fact.prepare)
        ready = [fact for fact in facts if fact.fault is None]
        if not ready:
            return
        with self._ledger.transaction(durable=any(fact.durable for fact in ready)):
            for fact in ready:
                _try(fact, partial(self._alone, fact))

    def _alone(self, fact: _Fact) -> None:
        with self._ledger.transaction():
            fact.write()


def _try(fact: _Fact, call: Callable[[], None]) -> None:
    try:
        call()
    except Exception as fault:
        fact.fault = fault
