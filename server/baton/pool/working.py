"""One job at work: an attempt from being taken off the queue until the ledger says what it came to."""

from __future__ import annotations

import random
from functools import partial

import anyio
from pydantic import JsonValue

from baton.contract.errors import BatonError
from baton.ledger.base import now as wall_clock
from baton.ledger.pool_records import UNSUCCESSFUL, JobState
from baton.pool.afterwards import Afterwards, afterwards, skipped
from baton.pool.attempt import Attempted, Plan, carry, deadlines_of, first_record, refused
from baton.pool.backend import Assignment, Backend
from baton.pool.backends import make_isolated
from baton.pool.events import PoolEvent
from baton.pool.invocation import Invocation
from baton.pool.pauses import note_limit
from baton.pool.queue import Entry


class Workers:
    """Carries out attempts, several at once. To be closed."""

    def __init__(self, inv: Invocation) -> None:
        self._inv = inv
        self._isolated: Backend | None = None

    async def close(self) -> None:
        """End whatever runs."""
        for backend in (self._inv.backend, self._isolated):
            if backend is not None:
                await backend.close()

    async def work(self, entry: Entry) -> None:
        """Make one attempt at a job that the caller has put among those that run; it leaves them at the end.

        What goes wrong with the job is recorded; what goes wrong with Baton's own surroundings is the fault
        of the whole invocation.
        """
        inv = self._inv
        try:
            await self._attempt(entry)
        except BatonError as fault:
            inv.fault = inv.fault or fault
        finally:
            inv.running.discard(entry)
            if entry.takes_directory:
                inv.directories.give_back(entry)
                inv.queue.unblock(entry.job.workdir)
            inv.change()

    async def _attempt(self, entry: Entry) -> None:
        inv, job = self._inv, entry.job
        backend = self._backend_for(entry)
        entry.halt = anyio.Event()
        if backend.jitter_seconds and len(inv.running) > 1:
            with anyio.move_on_after(random.random() * backend.jitter_seconds):
                await entry.halt.wait()
        if inv.stopping:
            inv.queue.add(entry)
            return
        plan = Plan(job, entry.position, entry.attempts + 1, entry.thread_id, entry.run_id)
        record = first_record(inv.pool_id, plan, backend)
        await inv.recorder.record(
            partial(inv.ledger.begin_pool_attempt, record),
            prepare=partial(self._prepare_log, record.log) if inv.ctx is not None else None,
            durable=job.writes,
        )
        before = (entry.touched, entry.named)
        entry.attempts, entry.touched, entry.named = plan.attempt, True, False
        inv.tell(PoolEvent("job.started", job.id, plan.attempt))
        refusal = inv.directories.refusal(entry)
        if refusal is None:
            done = await carry(backend, self._assignment(entry, plan, record.log), record, inv.ctx)
        else:
            done = refused(record, refusal)
        if not done.began:
            entry.touched, entry.named = before
        await self._settle(entry, done)

    def _backend_for(self, entry: Entry) -> Backend:
        inv = self._inv
        if not entry.job.isolate or inv.ctx is None:
            return inv.backend
        if self._isolated is None:
            self._isolated = make_isolated(inv.ctx)
        return self._isolated

    def _prepare_log(self, log: str | None) -> None:
        assert log is not None
        (self._inv.house.state.root / log).parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _assignment(self, entry: Entry, plan: Plan, log: str | None) -> Assignment:
        inv, job = self._inv, entry.job
        assert entry.halt is not None and log is not None
        named = (inv.pool_id, job.id, plan.attempt)
        return Assignment(
            job=job,
            attempt=plan.attempt,
            thread_id=plan.thread_id,
            run_id=plan.run_id,
            deadlines=deadlines_of(job, inv.settings, inv.seconds_left),
            log=inv.house.state.root / log,
            scratch=inv.house.state.scratch / inv.pool_id / f"{entry.position}-{plan.attempt}",
            halt=entry.halt,
            on_thread=lambda thread: inv.note(partial(inv.ledger.name_pool_thread, *named, thread)),
            on_run=lambda run: inv.note(partial(inv.ledger.name_pool_run, *named, run)),
            on_answer=self._answered,
        )

    def _answered(self) -> None:
        if self._inv.throttle.answered():
            self._inv.change()

    async def _settle(self, entry: Entry, done: Attempted) -> None:
        """Decide what the attempt means for its job and the pool, and record all of it at once."""
        inv, record, settings = self._inv, done.record, self._inv.settings
        inv.throttle.spent(record.usage.total_tokens if record.usage else None)
        if done.trouble is not None:
            inv.throttle.failed(done.trouble, done.failure)
            note_limit(inv, entry.job.route.model, done)
        elif not done.halted:
            inv.throttle.succeeded()
        after = afterwards(entry, done, retries=settings.retries, backoff_seconds=settings.backoff_seconds)
        lost: dict[str, dict[str, object]] = {}
        if after.state in UNSUCCESSFUL:
            lost = {each.job.id: skipped(name) for each, name in inv.queue.lost(entry.job.id)}

        def write() -> None:
            inv.ledger.end_pool_attempt(record, after.fields)
            inv.ledger.settle_pool_jobs(inv.pool_id, lost)

        keep = None if done.message is None else partial(self._keep, done.message)
        await inv.recorder.record(write, prepare=keep)
        entry.halt = None
        if after.state is JobState.QUEUED:
            self._again(entry, done, after)
        else:
            self._rests(entry, done, after, lost)

    def _again(self, entry: Entry, done: Attempted, after: Afterwards) -> None:
        """Queue it for its next try, a little dispersed."""
        entry.tries += after.retries
        entry.waits += after.waits
        entry.thread_id = done.record.thread_id if after.fields["thread_id"] is not None else None
        entry.run_id = done.record.run_id if after.fields["run_id"] is not None else None
        self._inv.queue.add_at(entry, wall_clock() + after.again_in * (1.0 + 0.25 * random.random()))
        said = _said(done) | {"why": done.record.message, "seconds": after.again_in}
        self._inv.tell(PoolEvent("job.retry", entry.job.id, entry.attempts, said))

    def _rests(
        self, entry: Entry, done: Attempted, after: Afterwards, lost: dict[str, dict[str, object]]
    ) -> None:
        inv = self._inv
        if after.state is JobState.SUCCEEDED:
            inv.queue.succeeded(entry.job.id)
        said = _said(done) | {"state": after.state.value}
        inv.tell(PoolEvent("job.ended", entry.job.id, entry.attempts, said))
        for job_id, fields in lost.items():
            data: dict[str, JsonValue] = {"state": JobState.SKIPPED.value, "reason": str(fields["reason"])}
            inv.tell(PoolEvent("job.ended", job_id, None, data))

    def _keep(self, message: bytes) -> None:
        self._inv.house.artifacts.put_bytes(message)


def _said(done: Attempted) -> dict[str, JsonValue]:
    return {"reason": done.record.message, "class": done.record.failure_class}
