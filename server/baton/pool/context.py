"""What all attempts of one pool share: the house, the Codex of this machine, policy, and a place to work."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from baton.codex.appserver import AppServer
from baton.engine.blocking import blocking
from baton.engine.house import House
from baton.engine.machine import Machine
from baton.ledger.pool_records import PoolProcessRecord
from baton.policy.model import Policy
from baton.pool.made import MadeFolders
from baton.process.tree import boot_id, start_time


@dataclass
class PoolContext:
    """Made by `open_context`; close it when nothing works any more."""

    house: House
    pool_id: str
    machine: Machine
    scratch: Path
    """Where the pool keeps what it needs only while it works."""
    made: MadeFolders
    """The folders made in people's directories."""
    _policies: dict[Path, Policy] = field(default_factory=dict)

    def policy(self, workdir: Path) -> Policy:
        """The policy in force for jobs in a directory. Raises `InvalidInput`."""
        found = self._policies.get(workdir)
        if found is None:
            found = self._policies[workdir] = self.house.policy(workdir)
        return found

    async def start_server(self, timeout: float) -> AppServer:
        """A fresh app-server, written down so that the next start can end it. Raises `CodexFailure`."""
        server = await AppServer.start(
            self.machine.binary.path,
            self.machine.home.path,
            self.machine.server_environment(self.house, self.pool_id),
            stderr=self.scratch / "app-server.log",
            cwd=self.scratch,
            disabled_servers=self.machine.home.foreign_servers,
            timeout=timeout,
        )
        self.record_process("app-server", server.pid)
        return server

    def record_process(self, kind: str, pid: int) -> int:
        """Write down a child; its id in the ledger."""
        return self.house.ledger.record_pool_process(
            PoolProcessRecord(
                pool_id=self.pool_id, kind=kind, pid=pid, start_time=start_time(pid) or 0, boot_id=boot_id()
            )
        )

    async def close(self) -> None:
        """Remove what was only for the work."""
        await blocking(shutil.rmtree, self.scratch, ignore_errors=True)


async def open_context(house: House, pool_id: str) -> PoolContext:
    """Find Codex and look at its sandbox. Raises `Unsupported` or `InvalidInput`."""
    scratch = house.state.scratch / pool_id
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    machine = await Machine.open(house, None)
    return PoolContext(house, pool_id, machine, scratch, MadeFolders(scratch))
