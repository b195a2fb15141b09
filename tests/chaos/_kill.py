"""One kill: a real run, a SIGKILL at a random step of it, recovery, and the same end as without the kill."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import ClassVar

from baton.contract.states import Integration, RunState, Verdict
from baton.engine.recover import recover_all
from baton.engine.service import Service
from baton.ledger.locks import is_held
from baton.ledger.records import RunRecord
from baton.ledger.store import Ledger
from baton.process.environment import RUN_MARKER
from baton.process.tree import processes_with_marker
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import Step, shell
from baton.simulate.workers import report
from baton.workspace.git import Git
from baton.workspace.journal import Journal, Mark
from baton.workspace.journal_place import journals
from baton.workspace.locate import locate
from baton.workspace.pool import reserved_by
from baton.workspace.reopen import reopen
from chaos._machine import Files, Machine, control_run, end_session, read_files, wait_run

PROJECT = {
    "src/shared.txt": "first\n" + "middle\n" * 8 + "last\n",
    "src/keep.txt": "stays\n",
    "docs/guide.md": "the guide\n",
    "notes.txt": "notes\n",
    "check.sh": "sleep 0.1\ngrep -q worker src/shared.txt\n",
}

TARGETS = ("session", "runner", "guard", "app-server", "check")

MOMENTS: dict[str, Sequence[str]] = {
    "session": (
        *("run.admitted", "run.snapshot", "attempt.isolated", "attempt.working", "attempt.captured"),
        *("attempt.judged", "integration.merged", "journal"),
    ),
    "runner": (
        *("run.admitted", "run.running", "run.snapshot", "attempt.planned", "attempt.isolated"),
        *("attempt.working", "attempt.working", "attempt.captured", "check", "attempt.verified"),
        *("attempt.judged", "task.done", "run.integrating", "integration.merged", "journal", "journal"),
        *("journal", "integration.applied"),
    ),
    "guard": ("attempt.working", "attempt.captured"),
    "app-server": ("attempt.working",),
    "check": ("attempt.captured", "integration.merged"),
}
"""When a target may be killed: an event of the run, or the appearance of the apply journal."""

DEADLINE = 60.0


@dataclass
class Outcome:
    """What one kill did, and everything that is not as it must be afterwards."""

    number: int
    target: str
    moment: str
    killed: str = "nothing"
    state: RunState | None = None
    """The state of rest after recovery."""
    lost: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    """Why the run did not come to the same end."""
    seconds: float = 0.0
    log: str = ""
    """What the runner printed last."""

    @property
    def interrupted(self) -> bool:
        return self.state is RunState.INTERRUPTED

    @property
    def clean(self) -> bool:
        return not (self.lost or self.orphans or self.stuck)

    def __str__(self) -> str:
        told = f"{self.number}: {self.killed} killed at {self.moment}, {self.state}, {self.seconds:.1f} s: "
        return told + ("; ".join([*self.lost, *self.orphans, *self.stuck]) or "as it must be")


class Kill:
    """One kill in one workspace, which may have seen others before."""

    PROJECT: ClassVar[Mapping[str, str]] = PROJECT

    def __init__(
        self,
        machine: Machine,
        model: ScriptedModel,
        workspace: Path,
        number: int,
        seed: str,
        targets: Sequence[str] = TARGETS,
    ) -> None:
        self.machine, self.model, self.workspace = machine, model, workspace
        self.random = random.Random(f"{seed}-{number}")
        target = self.random.choice(targets)
        self.outcome = Outcome(number, target, self.random.choice(MOMENTS[target]))
        self.number = number
        self.objective = f"<kill {number} {seed}>"
        self.edits: Files = {}

    def run(self) -> Outcome:
        began = time.monotonic()
        old = self.prepare()
        sees_check_of_merge = (self.outcome.target, self.outcome.moment) == ("check", "integration.merged")
        if early := sees_check_of_merge or self.random.random() < 0.4:
            # The result then has to be merged, and verified again, on a workspace that has moved.
            self._person_meanwhile()
        session = self.session = self.machine.session(self.call())
        try:
            with self.machine.service() as watching:
                run_id = self._run_id(watching.house.ledger, session.is_alive)
                self._await_moment(watching.house.ledger, run_id)
                if not early:
                    self._person_meanwhile()
                self._strike(run_id, session)
        finally:
            if self.outcome.killed in ("session", "runner"):
                end_session(session)
        try:
            self._afterwards(run_id, old)
        finally:
            self.outcome.log = (self.machine.state / "logs" / f"{run_id}.log").read_text()[-6000:]
        session.join(DEADLINE)
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    # -- the run -----------------------------------------------------------------------------------

    def call(self) -> dict[str, object]:
        task = {
            "objective": self.objective,
            "allowedFiles": ["src/"],
            "verificationCommands": ["sh check.sh"],
        }
        return {"tasks": [task], "workspace": str(self.workspace), "waitSeconds": 60}

    def work(self, request: Request) -> Step:
        """Stateless, so that a turn that is cut anywhere is done again: write, then report."""
        positions = [at for at, item in enumerate(request.items) if item.get("role") == "user"]
        turn = request.items[positions[-1] :] if positions else request.items
        if any(str(item.get("type", "")).endswith("_call_output") for item in turn):
            return report(summary="Written.", checks=["sh check.sh"])
        folder = f"src/k{self.number}"
        lines = [
            f"sed -i 's/^first.*/first worker {self.number}/' src/shared.txt",
            f"unlink src/old{self.number}.txt",
            f"mkdir -p {folder}",
            f"for i in $(seq {self.files}); do echo {self.number} > {folder}/f$i.txt; done",
        ]
        return shell("; ".join(lines))

    @property
    def files(self) -> int:
        return 60 if self.outcome.moment == "journal" else 3

    def expected(self, old: Files) -> Files:
        """The workspace when everything has landed."""
        new = dict(old)
        mode, text = old["src/shared.txt"]
        lines = text.split(b"\n")
        lines[0] = b"first worker %d" % self.number
        new["src/shared.txt"] = (mode, b"\n".join(lines))
        del new[f"src/old{self.number}.txt"]
        for number in range(1, self.files + 1):
            new[f"src/k{self.number}/f{number}.txt"] = (0o100644, b"%d\n" % self.number)
        return new

    # -- the person --------------------------------------------------------------------------------

    def prepare(self) -> Files:
        """Make the workspace ready; what it then holds."""
        (self.workspace / f"src/old{self.number}.txt").write_text("of the person's, to be deleted\n")
        (self.workspace / "docs" / "draft.md").write_text(f"draft {self.number}\n")
        self.model.on(self.objective, *[self.work] * 40)
        return read_files(self.workspace)

    def _person_meanwhile(self) -> None:
        new = self.workspace / "notes.new"
        new.write_text(f"notes {self.number}\n")
        new.rename(self.workspace / "notes.txt")
        (self.workspace / f"mine{self.number}.txt").write_text("mine\n")
        for name in ("notes.txt", f"mine{self.number}.txt"):
            path = self.workspace / name
            self.edits[name] = (path.stat().st_mode, path.read_bytes())

    # -- the kill ----------------------------------------------------------------------------------

    def _run_id(self, ledger: Ledger, alive: Callable[[], bool]) -> str:
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            for run in ledger.runs(10):
                if any(task.contract.objective == self.objective for task in ledger.tasks(run.run_id)):
                    return run.run_id
            if not alive():
                raise AssertionError(f"the session ended without a run, exit {self.session.exitcode}")
            time.sleep(0.005)
        raise AssertionError("the session made no run")

    def _await_moment(self, ledger: Ledger, run_id: str) -> None:
        moment, seen = self.outcome.moment, 0
        apply = self.workspace / ".git" / "baton" / "apply"
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            if moment == "journal" and any(path.name.startswith(run_id) for path in _entries(apply)):
                time.sleep(self.random.uniform(0, 0.03))
                return
            for event in ledger.events(run_id, after=seen):
                seen = event.seq
                if event.kind == moment:
                    time.sleep(self.random.choice((0, self.random.uniform(0, 0.25))))
                    return
            if ledger.run(run_id).state.at_rest:
                return
            time.sleep(0.001)

    def _strike(self, run_id: str, session: BaseProcess) -> None:
        until = time.monotonic() + 0.5
        while True:
            pids = parts_of(run_id)[self.outcome.target]
            if self.outcome.target == "session" and session.is_alive() and session.pid:
                pids = [session.pid]
            if pids or time.monotonic() > until:
                break
        if not pids:
            # What was meant is over, or not there yet: then the runner.
            self.outcome.target, pids = "runner", parts_of(run_id)["runner"]
        for pid in self.random.sample(pids, 1) if pids else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.outcome.killed = self.outcome.target

    # -- afterwards --------------------------------------------------------------------------------

    def _afterwards(self, run_id: str, old: Files) -> None:
        if self.outcome.killed == "runner":
            _until(lambda: not parts_of(run_id)["runner"])
        with self.machine.service() as service:
            if self.outcome.killed == "runner":
                # A process that is dying has no environment any more, but may still have its lock.
                _until(lambda: not is_held(service.house.state.run_lock(run_id)))
            takes_over = self.random.random() < 0.5
            if self.outcome.killed != "runner" and (self.outcome.killed != "session" or takes_over):
                wait_run(service, run_id)
            recover_all(service.house)
            ledger = service.house.ledger
            _until(lambda: ledger.run(run_id).state.at_rest)
            self._until_runner_ended(service, run_id)
            run = ledger.run(run_id)
            self.outcome.state = run.state
            self.look(service, run, old)
            self.resume(service, run_id, old)

    def resume(self, service: Service, run_id: str, old: Files) -> None:
        """Bring the run to its end; whatever is then not as it would have been goes into the outcome."""
        ledger = service.house.ledger
        self.to_the_end(service, run_id)
        run = ledger.run(run_id)
        self.look(service, run, old)
        workspace = self.state_of_workspace(old)
        if run.state is not RunState.DONE or workspace != "new":
            self.outcome.stuck.append(f"it ended {run.state} ({run.note}) with the {workspace} workspace")
        for task in ledger.tasks(run_id):
            if (task.verdict, task.outcome.integration) != (Verdict.VERIFIED, Integration.APPLIED):
                self.outcome.stuck.append(f"{task.task_id} is {task.verdict}: {task.reasons} {task.outcome}")

    def to_the_end(self, service: Service, run_id: str) -> None:
        for _ in range(3):
            state = service.house.ledger.run(run_id).state
            if state is RunState.DONE:
                return
            action = "integrate" if state is RunState.HELD else "resume"
            tasks = [task.task_id for task in service.house.ledger.tasks(run_id)]
            control_run(service, run_id, action, tasks if action == "integrate" else None)
            wait_run(service, run_id)
            self._until_runner_ended(service, run_id)

    @staticmethod
    def _until_runner_ended(service: Service, run_id: str) -> None:
        """It lets the lock go as the last thing it does."""
        _until(lambda: not is_held(service.house.state.run_lock(run_id)))
        _until(lambda: not parts_of(run_id)["runner"])

    def state_of_workspace(self, old: Files) -> str:
        now = read_files(self.workspace)
        for name, wanted in (("old", old), ("new", self.expected(old))):
            if now == {**wanted, **self.edits}:
                return name
        return "half-done"

    def look(self, service: Service, run: RunRecord, old: Files) -> None:
        """Everything that must hold whenever a run is at rest."""
        lost, orphans = self.outcome.lost, self.outcome.orphans
        now = read_files(self.workspace)
        lost += [
            f"{name} of the person's" for name, content in self.edits.items() if now.get(name) != content
        ]
        if self.state_of_workspace(old) == "half-done":
            lost.append("the workspace is between old and new")
        house = service.house
        git = Git.find(self.machine.env)
        repo = reopen(house.state, run.repo_key, git)
        for attempt in house.ledger.attempts(run.run_id):
            ref = f"refs/runs/{run.run_id}/tasks/{attempt.task_id}/{attempt.attempt}"
            if attempt.commit is not None and (repo is None or repo.resolve(ref) != attempt.commit):
                lost.append(f"captured work of attempt {attempt.attempt}")
            if attempt.step in ("isolated", "working") and attempt.commit is None:
                lost.append(f"attempt {attempt.attempt} was not captured")
        orphans += [f"process {process.pid}" for process in processes_with_marker(RUN_MARKER, run.run_id)]
        orphans += [f"{p.kind} still recorded" for p in house.ledger.processes(run.run_id)]
        orphans += [f"ticket {t.ticket}" for t in house.ledger.tickets() if t.run_id == run.run_id]
        if is_held(house.state.run_lock(run.run_id)):
            orphans.append("the run lock is held")
        if (house.state.scratch / run.run_id).exists():
            orphans.append("its scratch folder")
        orphans += self._journals() + self._git_leftovers(service, run)

    def _journals(self) -> list[str]:
        site = locate(self.workspace, Git.find(self.machine.env))
        return [
            f"journal {folder.name} is open"
            for folder in journals(site.root, site.common_dir)
            if Journal(folder, lambda name: None).read()[1] not in (Mark.CLOSED, Mark.UNDONE)
        ]

    def _git_leftovers(self, service: Service, run: RunRecord) -> list[str]:
        repo = reopen(service.house.state, run.repo_key, Git.find(self.machine.env))
        if repo is None:
            return []
        found = []
        for name in repo.list_worktrees():
            worktree = repo.open_worktree(name)
            if worktree is None:
                continue
            owner = reserved_by(worktree)
            if owner is not None:
                found.append(f"worktree {name} is reserved for {owner}")
        listed = repo.run(["worktree", "prune", "--dry-run", "--verbose"])
        found += [line.decode() for line in (listed.stdout + listed.stderr).splitlines()]
        flocks = {"snapshot.lock", "worktrees.lock"}
        found += [
            f"{path} in the private repository"
            for path in repo.path.rglob("*.lock")
            if path.name not in flocks
        ]
        git = self.workspace / ".git"
        found += [f"{path}" for path in git.rglob("*.lock") if path.name != "baton.lock"]
        return found


def parts_of(run_id: str) -> dict[str, list[int]]:
    """The living processes of a run, by what they are."""
    parts: dict[str, list[int]] = {name: [] for name in TARGETS}
    for process in processes_with_marker(RUN_MARKER, run_id):
        try:
            argv = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"/process/" in part and b"/guard." in part for part in argv):
            parts["guard"].append(process.pid)
        elif b"baton.engine.runner" in argv:
            parts["runner"].append(process.pid)
        elif b"app-server" in argv:
            parts["app-server"].append(process.pid)
        elif any(b"check.sh" in part for part in argv):
            parts["check"].append(process.pid)
    return parts


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE
    while not true():
        if time.monotonic() > until:
            raise AssertionError("it did not come to rest in time")
        time.sleep(0.01)


__all__ = ["MOMENTS", "PROJECT", "TARGETS", "Kill", "Outcome", "parts_of"]
