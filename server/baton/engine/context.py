"""One run at work: the record, the rooms it uses, and the things all of its tasks share."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from baton.codex.appserver import AppServer
from baton.codex.events import Notification
from baton.codex.faults import NoAnswer, ThreadRefused
from baton.codex.no_git import without_git
from baton.codex.session_profile import SessionProfile
from baton.codex.turn import Deadlines
from baton.contract.evidence import TurnFailure
from baton.contract.session import Session
from baton.contract.states import FailureClass
from baton.contract.tree import Snapshot
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.machine import Machine, bounds_of
from baton.engine.plan import RunPlan
from baton.engine.progress import worth_noting
from baton.engine.servers import Servers
from baton.engine.stop import Stop
from baton.ledger.records import ArtifactRef, NewEvent, ProcessRecord, RunRecord
from baton.policy.load import recorded_policy
from baton.policy.model import Policy
from baton.process.tree import boot_id, start_time
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import Site, locate
from baton.workspace.repository import PrivateRepository


@dataclass
class RunContext:
    """Everything the steps of one run work with. Made by `open_run`; close it when the run rests."""

    house: House
    run: RunRecord
    plan: RunPlan
    policy: Policy
    site: Site
    repo: PrivateRepository
    machine: Machine
    session: SessionProfile
    stop: Stop
    scratch: Path
    """Where this run keeps what it needs only while it works."""
    base: Snapshot | None = None
    servers: Servers = field(init=False)
    began: float = field(default_factory=time.time)
    """When this runner took the run up, seconds since 1970."""

    def __post_init__(self) -> None:
        self.servers = Servers(self._start_server, self.policy.concurrency.max_threads_per_server)

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def note(
        self, kind: str, task_id: str | None = None, attempt: int | None = None, **data: JsonValue
    ) -> None:
        """Append an event to the run's record: something to be told, on disk with the next thing done."""
        self.house.ledger.append_event(
            self.run_id, kind, task_id=task_id, attempt=attempt, data=data, durable=False
        )

    def event(
        self, kind: str, task_id: str | None = None, attempt: int | None = None, **data: JsonValue
    ) -> NewEvent:
        """An event to be written together with the change it tells of."""
        return NewEvent(kind=kind, task_id=task_id, attempt=attempt, data=data)

    def ref(self, *parts: str | int) -> str:
        """A ref of this run in the private repository."""
        return "/".join(["refs/runs", self.run_id, *map(str, parts)])

    def keep(self, name: str, data: bytes, task_id: str | None = None, attempt: int | None = None) -> str:
        """Keep bytes as an artifact of this run; its id."""
        artifact = self.house.artifacts.put_bytes(data)
        self.house.ledger.refer_to_artifact(
            ArtifactRef(
                run_id=self.run_id,
                name=name,
                artifact=artifact,
                task_id=task_id,
                attempt=attempt,
                size=len(data),
            )
        )
        return artifact

    def progress(self, task_id: str, attempt: int, event: Notification) -> None:
        """Keep what a person wants to see of a worker's event."""
        noted = worth_noting(event)
        if noted is not None:
            kind, data = noted
            self.note(kind, task_id, attempt, **data)

    def deadlines(self, task_seconds: int) -> Deadlines:
        """Deadlines of a turn of a task that may take `task_seconds`."""
        limits = self.policy.deadlines
        # The run's own deadline is no turn's: it stops whatever is at work, and nothing is tried again.
        return Deadlines(
            start=limits.start_seconds,
            idle=limits.idle_seconds,
            turn=min(limits.turn_seconds, float(task_seconds)),
        )

    async def _start_server(self) -> AppServer:
        try:
            server = await AppServer.start(
                self.machine.binary.path,
                self.machine.home.path,
                without_git(
                    self.machine.server_environment(self.house, self.run_id), self.scratch / "no-git"
                ),
                stderr=self.scratch / "app-server.log",
                cwd=self.scratch,
                disabled_servers=self.machine.home.foreign_servers,
                timeout=self.policy.deadlines.start_seconds,
            )
        except NoAnswer as late:
            failure = TurnFailure(failure_class=FailureClass.START_TIMEOUT, message=late.message)
            raise ThreadRefused(failure) from late
        self.record_process("app-server", server.pid)
        return server

    def record_process(self, kind: str, pid: int) -> None:
        """Write down a child, so that the next start can end it should we die."""
        self.house.ledger.record_process(
            ProcessRecord(
                run_id=self.run_id, kind=kind, pid=pid, start_time=start_time(pid) or 0, boot_id=boot_id()
            )
        )

    async def close(self) -> None:
        """End the children of this run and remove its scratch folder."""
        await self.servers.close()
        await blocking(shutil.rmtree, self.scratch, ignore_errors=True)


async def open_run(house: House, run_id: str, stop: Stop) -> RunContext:
    """Open the rooms that a recorded run needs, under the policy it was admitted with.

    Raises `BatonError` when the workspace, Codex or the state folder are not as they must be.
    """
    run = house.ledger.run(run_id)
    policy = recorded_policy(run.policy)
    session = Session.model_validate(run.session)
    git = Git.find()
    site = await blocking(locate, Path(run.workspace), git)
    limits = Limits(
        plain_folder_files=policy.limits.plain_folder_files,
        plain_folder_bytes=policy.limits.plain_folder_bytes,
        kept_bytes=policy.limits.kept_bytes,
    )
    repo = await blocking(PrivateRepository.open, house.state, site, limits, git)
    scratch = house.state.scratch / run_id
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    return RunContext(
        house=house,
        run=run,
        plan=RunPlan.model_validate(run.options),
        policy=policy,
        site=site,
        repo=repo,
        machine=await Machine.open(house, session.launcher),
        session=bounds_of(session, house.env),
        stop=stop,
        scratch=scratch,
    )
