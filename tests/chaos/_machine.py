"""A person's machine for chaos: a Codex home, the scripted model, workspaces, sessions as processes.

Everything of Baton's is real; only the model is scripted.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import anyio
import tomlkit

from baton.contract.base import parse
from baton.contract.calls import ControlCall, WaitCall
from baton.contract.session import Session
from baton.contract.task import BatchCall
from baton.engine.house import House
from baton.engine.service import Service
from baton.simulate.home import simulated_provider
from baton.simulate.model_server import ScriptedModel

PASSED_ON = ("PATH", "LANG", "LC_ALL")

POLICY = """\
[deadlines]
owner_grace_seconds = 0.5
"""

CONFIG = {"request_max_retries": 0, "stream_max_retries": 0}
"""Codex gives up at once on what the scripted model refuses, only to save time."""

Files = dict[str, tuple[int, bytes]]
"""Path to mode and content (of a link: where it leads)."""


class Machine:
    """A home with a policy and a scripted provider. Several may share a state folder or a workspace."""

    def __init__(self, root: Path, port: int, codex: Path, *, state: Path | None = None) -> None:
        self.root = root
        self.state = state or root / "state"
        home = root / "home" / ".codex"
        (home / "baton").mkdir(parents=True)
        (home / "baton" / "policy.toml").write_text(POLICY)
        providers = {"sim": simulated_provider(port) | CONFIG}
        config = {"model": "gpt-5.6-luna", "model_provider": "sim", "model_providers": providers}
        (home / "config.toml").write_text(tomlkit.dumps(config))
        self.env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self.env |= {
            "HOME": str(root / "home"),
            "CODEX_HOME": str(home),
            "BATON_STATE": str(self.state),
            "BATON_CODEX_BIN": str(codex),
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.env[f"GIT_{who}_NAME"], self.env[f"GIT_{who}_EMAIL"] = (
                "Test Person",
                "person@example.invalid",
            )

    @contextlib.contextmanager
    def service(self) -> Iterator[Service]:
        """A new session in this process."""
        service = Service(House.open(self.env))
        try:
            yield service
        finally:
            service.close()

    def workspace(self, path: Path, files: Mapping[str, str]) -> Path:
        """A new repository with these files committed."""
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        for args in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            self.git(path, *args)
        return path

    def git(self, where: Path, *args: str, ok: bool = True) -> str:
        """A git command as the person types it."""
        done = subprocess.run(
            ["git", *args],
            cwd=where,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if ok and done.returncode != 0:
            raise AssertionError(f"git {' '.join(args)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode("utf-8", "surrogateescape")

    def session(self, arguments: Mapping[str, Any], terminal: str | None = None) -> BaseProcess:
        """`delegate_tasks` with these arguments, in a process of its own: what a Codex session starts.

        `terminal` names a terminal that it then belongs to.
        """
        process = process_context().Process(
            target=_be_session, args=(self.env, dict(arguments), terminal), daemon=True
        )
        process.start()
        return process


def end_session(session: BaseProcess) -> None:
    """SIGKILL, unless it has ended: its number may belong to somebody else by now."""
    if session.is_alive():
        session.kill()


def wait_run(service: Service, run_id: str, seconds: int = 60) -> dict[str, Any]:
    """`wait_run` from a session of this process."""
    return anyio.run(service.wait_run, WaitCall(run_id=run_id, wait_seconds=seconds), Session())


def control_run(service: Service, run_id: str, action: str, tasks: list[str] | None = None) -> dict[str, Any]:
    """`control_run` from a session of this process."""
    call = parse(ControlCall, {"runId": run_id, "action": action, "tasks": tasks or []}, "control_run")
    return anyio.run(service.control_run, call, Session())


@contextlib.contextmanager
def throw_away_folder(prefix: str) -> Iterator[Path]:
    """A folder outside the system's temporary one, where Codex will not keep a home; removed afterwards."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parent = cache / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.realpath(tempfile.mkdtemp(dir=parent, prefix=prefix)))
    try:
        yield root
    finally:
        for folder, _, _ in os.walk(root):
            with contextlib.suppress(OSError):
                Path(folder).chmod(0o700)
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def one_machine(codex: Path) -> Iterator[tuple[Machine, ScriptedModel]]:
    """A throw-away machine and its model."""
    with throw_away_folder("k-") as root, ScriptedModel() as model:
        yield Machine(root, model.port, codex), model


def read_files(root: Path) -> Files:
    """Everything in a folder but git's own."""
    found: Files = {}
    for folder, names, files in os.walk(root):
        if Path(folder) == root and ".git" in names:
            names.remove(".git")
        links = [name for name in names if Path(folder, name).is_symlink()]
        for name in [*files, *links]:
            path = Path(folder, name)
            data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[os.path.relpath(path, root)] = (path.lstat().st_mode, data)
    return found


def process_context() -> multiprocessing.context.ForkServerContext:
    """Makes processes that start without threads of ours, and fast: the engine is loaded once for all."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chaos._machine"])
    return context


def _be_session(env: Mapping[str, str], arguments: Mapping[str, Any], terminal: str | None) -> None:
    os.setsid()
    # Whoever started the tests may be deaf to it (nohup), and everybody below them.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if terminal is not None:
        os.open(terminal, os.O_RDWR)  # becomes the session's own by being opened
    os.environ.clear()
    os.environ.update(env)
    call = parse(BatchCall, arguments, "delegate_tasks")

    async def delegate() -> None:
        service = Service(House.open(env))
        try:
            await service.delegate_tasks(call, Session())
        finally:
            service.close()

    anyio.run(delegate)
