"""Starts a program of a check: behind the check's fence, or as it is where the person allowed that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from baton.codex.sandbox import Fence, Network, SandboxedCommand, sandboxed_argv
from baton.process.child import Finished, run
from baton.verify.place import CheckPlace, CheckSandbox


@dataclass(frozen=True)
class Launch:
    """How to start a program of this check: in the sandbox, or as it is where the person allowed that."""

    place: CheckPlace
    sandbox: CheckSandbox | None
    env: Mapping[str, str]
    """The allow-listed part of the person's environment."""

    async def run(
        self,
        argv: tuple[str, ...],
        inside: Mapping[str, str],
        *,
        timeout: float,
        output: Path | None = None,
        max_output: int | None = None,
        memory_limit: int | None = None,
    ) -> Finished:
        """Run to the end; `inside` are the variables that the outer program must not see."""
        fenced = await to_thread.run_sync(self.fenced, argv, inside)
        return await run(
            fenced.argv,
            cwd=self.place.cwd,
            env=fenced.env,
            timeout=timeout,
            output=output,
            max_output=max_output,
            memory_limit=memory_limit,
        )

    def fenced(self, argv: tuple[str, ...], inside: Mapping[str, str]) -> SandboxedCommand:
        """The command line that is started, sandboxed unless the person allowed otherwise."""
        if self.sandbox is None:
            return SandboxedCommand(argv, {**self.env, **inside})
        return sandboxed_argv(
            self.sandbox.binary,
            self.sandbox.home,
            argv,
            cwd=self.place.cwd,
            env=self.env,
            inside=inside,
            fence=self._fence(self.sandbox),
            direct=self.sandbox.direct,
        )

    def _fence(self, sandbox: CheckSandbox) -> Fence:
        place = self.place
        written = (place.worktree,) if place.writable is None else place.writable
        return Fence(
            writable=(*written, place.scratch, *place.shells),
            denied=sandbox.denied if place.in_place else (*sandbox.denied, place.person_root),
            readable=(*place.shared, *place.readable),
            denied_globs=sandbox.denied_globs,
            network=Network.LOOPBACK if sandbox.loopback else Network.NONE,
        )
