"""A person's machine in small: a home, the scripted model behind the real Codex, and Baton's service."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import jsonschema
import tomlkit
from anyio.from_thread import BlockingPortal, start_blocking_portal

from baton.contract.base import parse
from baton.contract.calls import ContinueCall, ControlCall, ExploreCall, InspectCall, WaitCall
from baton.contract.evidence import AttemptResult
from baton.contract.session import Session
from baton.contract.task import BatchCall, TaskCall
from baton.engine.house import House
from baton.engine.private import open_repository
from baton.engine.service import Service
from baton.ledger.locks import FileLock
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord
from baton.simulate.home import simulated_provider, write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import Step
from baton.tools.catalogue import tool_specs

OUTPUTS = {spec.name: spec.output for spec in tool_specs()}

PASSED_ON = ("PATH", "LANG", "LC_ALL")

DEADLINE = 120.0
"""Seconds after which a call that does not answer fails the test."""

NO_LADDER = "[escalation]\nmax_steps = 0\nmax_waits = 0\n"
"""One attempt is what a test wants, unless it says otherwise: nothing is tried again at another effort."""

IMPATIENT = {"request_max_retries": 0, "stream_max_retries": 0}
"""Makes Codex give up at once, only to save time."""


class Workspace:
    """A folder of the person's, with or without git."""

    def __init__(self, path: Path, env: Mapping[str, str]) -> None:
        self.path = path
        self._env = dict(env)

    def git(self, *arguments: str) -> str:
        """What git prints, as the person would run it there."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=self._env, check=True, capture_output=True
        )
        return done.stdout.decode("utf-8", "surrogateescape")

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def read(self, path: str) -> str:
        return (self.path / path).read_text()

    def contents(self) -> dict[str, tuple[int, bytes]]:
        """Every path but git's own, with its mode and content (of a link: where it leads)."""
        return dict(_contents(self.path))

    def repository(self) -> dict[str, bytes]:
        """What of the repository a run must leave alone: index, HEAD, config, and every ref but the pin."""
        common = self.path / ".git"
        files = {name: (common / name).read_bytes() for name in ("index", "HEAD", "config")}
        refs = [line for line in self.git("show-ref").splitlines() if " refs/baton/pin/" not in line]
        stashes = self.git("stash", "list")
        return {**files, "refs": "\n".join(refs).encode(), "stash": stashes.encode()}


class Sim:
    """The machine. Use it as a context manager; one may serve many tests with their own workspaces."""

    def __init__(self, root: Path, codex: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.codex_home = self.home / ".codex"
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env |= {
            "HOME": str(self.home),
            "CODEX_HOME": str(self.codex_home),
            "BATON_STATE": str(root / "state"),
            "BATON_CODEX_BIN": str(codex),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.env[f"GIT_{who}_NAME"], self.env[f"GIT_{who}_EMAIL"] = (
                "Test Person",
                "person@example.invalid",
            )
        self.model = ScriptedModel()
        self._services: list[Service] = []

    def __enter__(self) -> Self:
        self.home.mkdir(parents=True)
        self.model.__enter__()
        write_simulated_home(self.codex_home, self.model.port)
        self.provider(self.model.port)
        self._policy_file.parent.mkdir()
        self._policy_file.write_text(NO_LADDER)
        self._portal_context = start_blocking_portal()
        self.portal: BlockingPortal = self._portal_context.__enter__()
        self.service = self.new_service()
        return self

    def __exit__(self, *_: object) -> None:
        # First the model, so that no worker waits for it; then the sessions, so that runners end.
        self.model.__exit__(None, None, None)
        self.end_runs()
        for service in self._services:
            service.close()
        self._portal_context.__exit__(None, None, None)

    # -- surroundings ------------------------------------------------------------------------------

    def new_service(self) -> Service:
        """Another session on the same machine."""
        service = Service(House.open(self.env))
        self._services.append(service)
        return service

    def provider(self, port: int) -> None:
        """Point Codex at a port."""
        config = {
            "model": "gpt-5.6-luna",
            "model_provider": "sim",
            "model_providers": {"sim": simulated_provider(port) | IMPATIENT},
        }
        (self.codex_home / "config.toml").write_text(tomlkit.dumps(config))

    @contextmanager
    def policy(self, text: str) -> Iterator[None]:
        """The person's own policy file, for as long as the block lasts."""
        self._policy_file.write_text(text if "[escalation]" in text else text + "\n" + NO_LADDER)
        try:
            yield
        finally:
            self._policy_file.write_text(NO_LADDER)

    @property
    def _policy_file(self) -> Path:
        return self.codex_home / "baton" / "policy.toml"

    def workspace(
        self,
        name: str,
        files: Mapping[str, str | bytes] | None = None,
        *,
        git: bool = True,
        commit: bool = True,
    ) -> Workspace:
        """A new workspace with these files, committed unless told otherwise."""
        path = self.root / "work" / name
        path.mkdir(parents=True)
        made = Workspace(path, self.env)
        for file, content in (files or {}).items():
            made.write(file, content)
        if git:
            made.git("init", "-q", "-b", "main")
            if commit:
                made.git("add", "-A")
                made.git("commit", "-q", "--allow-empty", "-m", "start")
        return made

    # -- calls -------------------------------------------------------------------------------------

    def script(self, marker: str, *steps: Step) -> str:
        """Workers whose objective is `marker` follow these steps; returns the objective."""
        objective = f"<{marker}>"
        self.model.on(objective, *steps)
        return objective

    def start(self, arguments: Mapping[str, Any], session: Session | None = None) -> Future[dict[str, Any]]:
        """`delegate_task` or, with `tasks`, `delegate_tasks`; the answer comes later."""
        if "tasks" in arguments:
            batch = parse(BatchCall, arguments, "delegate_tasks")
            return self._soon(
                "delegate_tasks", lambda: self.service.delegate_tasks(batch, session or Session())
            )
        call = parse(TaskCall, arguments, "delegate_task")
        return self._soon("delegate_task", lambda: self.service.delegate_task(call, session or Session()))

    def delegate(self, arguments: Mapping[str, Any], session: Session | None = None) -> dict[str, Any]:
        return self.start(arguments, session).result(DEADLINE)

    def explore(self, arguments: Mapping[str, Any], session: Session | None = None) -> dict[str, Any]:
        call = parse(ExploreCall, arguments, "explore")
        return self._soon("explore", lambda: self.service.explore(call, session or Session())).result(
            DEADLINE
        )

    def go_on(self, run_id: str, message: str, session: Session | None = None, **more: Any) -> dict[str, Any]:
        arguments = {"runId": run_id, "message": message, **more}
        call = parse(ContinueCall, arguments, "continue_task")
        return self._soon(
            "continue_task", lambda: self.service.continue_task(call, session or Session())
        ).result(DEADLINE)

    def wait(self, run_id: str, seconds: int = 100, session: Session | None = None) -> dict[str, Any]:
        call = WaitCall(run_id=run_id, wait_seconds=seconds)
        return self._soon("wait_run", lambda: self.service.wait_run(call, session or Session())).result(
            DEADLINE
        )

    def inspect(self, run_id: str, what: str = "summary", **more: Any) -> dict[str, Any]:
        call = parse(InspectCall, {"runId": run_id, "what": what, **more}, "inspect_run")
        return self._soon("inspect_run", lambda: self.service.inspect_run(call, Session())).result(DEADLINE)

    def control(
        self, run_id: str, action: str, tasks: Sequence[str] = (), session: Session | None = None
    ) -> dict[str, Any]:
        call = parse(ControlCall, {"runId": run_id, "action": action, "tasks": [*tasks]}, "control_run")
        return self._soon("control_run", lambda: self.service.control_run(call, session or Session())).result(
            DEADLINE
        )

    def _soon(
        self, tool: str, call: Callable[[], Coroutine[Any, Any, dict[str, Any]]]
    ) -> Future[dict[str, Any]]:
        async def answer() -> dict[str, Any]:
            answered = await call()
            _check_shape(tool, answered)
            return answered

        return self.portal.start_task_soon(answer)

    # -- the record --------------------------------------------------------------------------------

    def run(self, run_id: str) -> RunRecord:
        return self.service.house.ledger.run(run_id)

    def task(self, run_id: str, task_id: str = "t1") -> TaskRecord:
        return self.service.house.ledger.task(run_id, task_id)

    def attempts(self, run_id: str, task_id: str = "t1") -> list[AttemptRecord]:
        return self.service.house.ledger.attempts(run_id, task_id)

    def result(self, run_id: str, task_id: str = "t1") -> AttemptResult:
        result = self.task(run_id, task_id).result
        assert result is not None, f"task {task_id} has no result"
        return result

    def only_run(self, objective: str) -> str:
        """The run that has a task with this objective, waiting for it to be recorded."""
        ledger = self.service.house.ledger
        version = ledger.data_version()
        while True:
            for run in ledger.runs(limit=200):
                if any(task.contract.objective == objective for task in ledger.tasks(run.run_id)):
                    return run.run_id
            moved = ledger.wait_for_change(version, 30.0)
            assert moved != version, f"no run for {objective}"
            version = moved

    def kept(self, run_id: str, path: str, task_id: str = "t1") -> bytes:
        """A file of a task's kept tree, fetched as the person would from the private repository."""
        ref = self.task(run_id, task_id).kept
        assert ref is not None, "nothing is kept"
        repository = open_repository(self.service.house, self.run(run_id)).path
        done = subprocess.run(
            ["git", "-C", str(repository), "show", f"{ref}:{path}"],
            env=self.env,
            check=True,
            capture_output=True,
        )
        return done.stdout

    def end_runs(self) -> None:
        """Have every run that is still at work end; all runners are gone afterwards."""
        house = self.service.house
        for run in house.ledger.unfinished_runs():
            self.control(run.run_id, "cancel")
        for run in house.ledger.runs(limit=1000):
            with FileLock(house.state.run_lock(run.run_id), timeout=30.0):
                pass


def _check_shape(tool: str, answered: Mapping[str, Any]) -> None:
    """Every answer is what the tool's declaration says; a summary and a result in full have more."""
    jsonschema.validate(answered, OUTPUTS[tool])
    if tool != "inspect_run" and "threadId" not in answered:
        assert set(answered) <= set(OUTPUTS[tool]["properties"]), tool


def _contents(root: Path) -> Iterator[tuple[str, tuple[int, bytes]]]:
    for folder, names, files in os.walk(root):
        if ".git" in names and Path(folder) == root:
            names.remove(".git")
        links = [name for name in names if Path(folder, name).is_symlink()]
        for name in [*files, *links]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            yield os.fsdecode(os.path.relpath(path, root)), (mode, data)
