"""What the doors call: delegate, wait, inspect, control. The same for the MCP server and the command line."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from baton.contract.calls import ContinueCall, ControlCall, ExploreCall, InspectCall, WaitCall
from baton.contract.errors import BatonError
from baton.contract.session import Session
from baton.contract.task import BatchCall, CallOptions, Task, TaskCall
from baton.engine.admission import Admitted, admit, record
from baton.engine.ahead import ahead_of
from baton.engine.blocking import blocking
from baton.engine.continuation import continue_task
from baton.engine.dry_run import dry_run
from baton.engine.explore import exploration
from baton.engine.house import House
from baton.engine.interest import join
from baton.engine.launch import start_runner
from baton.engine.look import attempt_counts, look
from baton.engine.owner import Ownership
from baton.engine.plan import Exploring
from baton.engine.present import present_run
from baton.engine.recover import recover_all
from baton.engine.spare import SpareRunner
from baton.engine.steer import steer
from baton.ledger.locks import FileLock

RECOVERY_INTERVAL = 30.0
"""Seconds between two looks for runs whose runner died."""


class Service:
    """One session's door to the engine. It owns the runs it waits for until it is closed or dies."""

    def __init__(self, house: House | None = None, *, keeps_spare: bool = False) -> None:
        """Open the house that the environment names, unless one is given. Raises `StateUnavailable`.

        With `keeps_spare` a runner is kept ready once a run has ended, for a session that may have more.
        """
        self.house = house or House.open()
        self.spare = SpareRunner(self.house) if keeps_spare else None
        self.ownership = Ownership(self.house.state)
        self._recovered_at: float | None = None
        self._not_recovered: dict[str, str] = {}
        """Runs that nobody works on and that could not be recovered when it was last tried, with the note."""

    def close(self) -> None:
        """Give up what this session owns; runs that nobody else owns stop and are kept."""
        self.ownership.close()
        if self.spare is not None:
            self.spare.close()
        self.house.close()

    async def delegate_task(self, call: TaskCall, session: Session) -> dict[str, Any]:
        """Run one task; its result, or where it is after `waitSeconds`.

        Raises `BatonError` when the call is refused; nothing has been created then.
        """
        given = {name: getattr(call, name) for name in call.model_fields_set}
        task = Task(**{name: value for name, value in given.items() if name in Task.model_fields})
        options = {name: value for name, value in given.items() if name in CallOptions.model_fields}
        return await self.delegate_tasks(BatchCall(tasks=[task], **options), session)

    async def delegate_tasks(self, call: BatchCall, session: Session) -> dict[str, Any]:
        """Run several tasks as one run; the same answers."""
        return await self._delegate(call, session)

    async def explore(self, call: ExploreCall, session: Session) -> dict[str, Any]:
        """Have a question answered from the files, every citation checked; the same answers."""
        batch, exploring = exploration(call)
        return await self._delegate(batch, session, exploring)

    async def _delegate(
        self, call: BatchCall, session: Session, exploring: Exploring | None = None
    ) -> dict[str, Any]:
        await self._recover()
        admitted = await admit(self.house, call, session, exploring)
        if call.dry_run:
            return dry_run(admitted)
        run_id = await blocking(self._begin, admitted)
        return await self._wait(run_id, call.wait_seconds)

    async def continue_task(self, call: ContinueCall, session: Session) -> dict[str, Any]:
        """One more turn for a task at rest, in its thread; its result, or where it is after `waitSeconds`."""
        await self._recover()
        resting = self.house.ledger.run(call.run_id).state.at_rest
        if resting:
            self.ownership.take(call.run_id)
        try:
            await blocking(continue_task, self.house, call, session)
        except BaseException:
            if resting:
                self.ownership.drop(call.run_id)
            raise
        return await self._wait(call.run_id, call.wait_seconds)

    async def wait_run(self, call: WaitCall, session: Session) -> dict[str, Any]:
        """Wait until the run rests or `waitSeconds` are over. Who waits owns the run."""
        await self._recover()
        if not self.house.ledger.run(call.run_id).state.at_rest:
            join(self.house, call.run_id, session)
        return await self._wait(call.run_id, call.wait_seconds)

    async def inspect_run(self, call: InspectCall, session: Session) -> dict[str, Any]:
        """Any evidence of a run."""
        await self._recover()
        return await blocking(look, self.house, call)

    async def control_run(self, call: ControlCall, session: Session) -> dict[str, Any]:
        """Steer a run, then tell where it is."""
        rested = self.house.ledger.run(call.run_id).state.at_rest
        self.ownership.take(call.run_id)
        did = await blocking(steer, self.house, call, session)
        if not (rested and self.house.ledger.run(call.run_id).state.at_rest):
            join(self.house, call.run_id, session)
        return {"did": did, **self._shown(call.run_id)}

    def _begin(self, admitted: Admitted) -> str:
        run_id = admitted.run.run_id
        # Owned and locked before it exists, so that nobody takes it for one whose runner died.
        self.ownership.take(run_id)
        lock = FileLock(self.house.state.run_lock(run_id))
        lock.acquire(timeout=5.0)
        try:
            record(self.house, admitted)
        except BaseException:
            lock.release()
            self.ownership.drop(run_id)
            raise
        start_runner(self.house, run_id, lock, self.spare)
        return run_id

    def _prepare(self, spare: SpareRunner, run_id: str) -> None:
        ahead = None
        with contextlib.suppress(BatonError, ValueError):  # such as a record that a later Baton wrote
            ahead = ahead_of(self.house, run_id)
        spare.prepare(ahead)

    async def _wait(self, run_id: str, seconds: float) -> dict[str, Any]:
        ledger = self.house.ledger
        self.ownership.take(run_id)
        until = time.monotonic() + seconds
        version = ledger.data_version()
        while not ledger.run(run_id).state.at_rest:
            left = until - time.monotonic()
            if left <= 0:
                break
            version = await ledger.changed(version, min(left, 2.0))
            # A runner that was killed changes nothing in the ledger; its lock is free.
            await self._recover(every=2.0)
            if run_id in self._not_recovered:
                break  # there is nothing to wait for until a person has mended what the note says
        if ledger.run(run_id).state.at_rest:
            self.ownership.drop(run_id)
            if self.spare is not None:
                await blocking(self._prepare, self.spare, run_id)
        return self._shown(run_id)

    def _shown(self, run_id: str) -> dict[str, Any]:
        ledger = self.house.ledger
        run = ledger.run(run_id)
        if run_id in self._not_recovered and not run.state.at_rest:
            run = run.model_copy(update={"note": self._not_recovered[run_id]})
        return present_run(run, ledger.tasks(run_id), attempt_counts(self.house, run_id))

    async def _recover(self, every: float = RECOVERY_INTERVAL) -> None:
        now = time.monotonic()
        if self._recovered_at is None or now - self._recovered_at >= every:
            self._recovered_at = now
            failed: dict[str, str] = {}
            await blocking(recover_all, self.house, failed)
            self._not_recovered = failed
