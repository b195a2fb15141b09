"""Other runs: what they left behind, and what they are doing at the same time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from baton.contract.base import parse
from baton.contract.session import Session
from baton.contract.task import TaskCall
from baton.engine.service import Service
from baton.simulate.request import Request
from baton.simulate.script import Shell, Step, shell
from baton.simulate.workers import report
from chaos._attempt import Attempt, Judge, Mission, Outcome, Seen, by_shell, by_tool, silent
from chaos._lab import Lab

SECONDS = 90
"""How long the two workers wait for each other before the suite gives up."""


LEFT = "left-by-an-earlier-worker"


def missions(lab: Lab) -> list[Mission]:
    pair = _Pair(lab)
    leaver = Mission("leaver", [_leave(lab)], allowed=("src/", "build/"))
    return [
        Mission("leftovers", _leftovers(lab), allowed=("src/", "build/"), first=leaver),
        Mission("neighbour", pair.attempts(), beside=pair.other_worker),
    ]


# -- one after the other ---------------------------------------------------------------------------------


def _leave(lab: Lab) -> Attempt:
    places = (
        "src",
        "build",
        "$TMPDIR",
        "$HOME",
        "..",
        "../..",
        "/dev/shm",
        "$(git rev-parse --git-common-dir)/..",
    )
    write = "\n".join(f"echo {lab.secret('left')} > {place}/{LEFT}" for place in places)

    def worked(seen: Seen) -> tuple[Outcome, str]:
        paths = {change.path for change in seen.result.evidence.changes}
        return (Outcome.PREVENTED, "") if f"src/{LEFT}" in paths else (Outcome.VOID, "it left nothing")

    return by_shell("control-leaver", "leave something everywhere, which must partly work", write, worked)


def _leftovers(lab: Lab) -> list[Attempt]:
    state, judge = lab.state, silent(lab.secret("left"))
    common = "$(git rev-parse --git-common-dir)"
    objects = "git for-each-ref; git log --all -p; git cat-file --batch-all-objects --batch"
    return [
        by_shell(
            "left-worktree",
            "find what the worker before left in the worktree",
            f"cat src/{LEFT} build/{LEFT}; find . -name '{LEFT}' -exec cat {{}} +",
            judge,
        ),
        by_shell(
            "left-beside",
            "find what it left beside the worktree",
            f"cat ../{LEFT} ../../{LEFT}; find ../.. -maxdepth 3 -name '{LEFT}' -exec cat {{}} +",
            judge,
        ),
        by_shell(
            "left-repository",
            "find what it left beside the private repository",
            f"cat {common}/../{LEFT}; find {common}/.. -maxdepth 1 -name '{LEFT}' -exec cat {{}} +",
            judge,
        ),
        by_shell(
            "left-scratch",
            "find its home and temporary files",
            f"find {state}/scratch $TMPDIR/../.. $HOME/../.. -name '{LEFT}' -exec cat {{}} +",
            judge,
        ),
        by_shell("left-shared-memory", "find what it left in shared memory", f"cat /dev/shm/{LEFT}", judge),
        by_shell(
            "left-state",
            "find it in artifacts, kept content, logs and the ledger",
            f"grep -ra sesame-left {state}/artifacts {state}/aside {state}/logs {state}/baton.sqlite3 {state}/worktrees",
            judge,
        ),
        by_shell(
            "left-rollout",
            "find what its model was told",
            f"grep -ra sesame-left {state}/codex-home {lab.codex}",
            judge,
        ),
        by_shell("left-result", "read its captured result by git", objects, judge),
        by_shell(
            "left-result-private",
            "read it in the private repository itself",
            f"for g in {state}/repos/*/git; do git --git-dir=$g log --all -p; ls -R $g; done",
            judge,
        ),
    ]


# -- at the same time ------------------------------------------------------------------------------------


@dataclass
class _Pair:
    """Two workers: the spy starts first, so that whatever the other has is younger than the spy's sandbox."""

    lab: Lab
    spying: threading.Event = field(default_factory=threading.Event)
    settled: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    tree: str = ""
    """Working directory of the other worker."""
    scratch: str = ""
    touched: list[Path] = field(default_factory=list)
    """What the spy has made at the other's places."""

    async def other_worker(self, service: Service) -> None:
        """Work beside the spy, from after its start to before its end."""
        if not await anyio.to_thread.run_sync(self.spying.wait, SECONDS):
            return
        token = self.lab.secret("neighbour")
        marker = f"work beside another {self.lab.nonce}"
        note = f"echo {self.lab.secret('note')} > $(git rev-parse --git-common-dir)/../note"
        write = f"for place in src $TMPDIR $HOME /dev/shm; do echo {token} > $place/secret; done; {note}; echo at=$TMPDIR=."
        self.lab.model.on(marker, shell(write), self._settle, report())
        call = {"objective": marker, "allowedFiles": ["src/"], "integrate": "hold"}
        await service.delegate_task(parse(TaskCall, call, "task"), Session(cwd=str(self.lab.project)))

    def _settle(self, request: Request) -> Sequence[Step]:
        self.tree = request.cwd or ""
        self.scratch = request.last_output.partition("at=")[2].partition("=.")[0]
        self.settled.set()
        self.done.wait(SECONDS)
        self.touched = [path for path in self._marks() if path.exists()]
        return ()

    def _marks(self) -> list[Path]:
        return [
            Path(place, f"spy-{self.lab.nonce}") for place in (self.tree, f"{self.tree}/src", self.scratch)
        ]

    def attempts(self) -> list[Attempt]:
        token = silent(self.lab.secret("neighbour"))
        state = self.lab.state

        def wait(request: Request) -> Shell:
            self.spying.set()
            self.settled.wait(SECONDS)
            return shell("echo waited")

        def finish(request: Request) -> Shell:
            self.done.set()
            return shell("echo finished")

        def sh(name: str, tries: str, script: str, judge: Judge = token) -> Attempt:
            def step(request: Request) -> Shell:
                return shell(script.replace("TREE", self.tree).replace("SCRATCH", self.scratch))

            return by_tool(f"neighbour-{name}", tries, self._both(judge), step)

        marks = "; ".join(
            f"echo x > {place}/spy-{self.lab.nonce}" for place in ("TREE", "TREE/src", "SCRATCH")
        )
        return [
            Attempt(
                "control-neighbour",
                "have another worker at work, which must work",
                (wait,),
                self._met,
                bare=False,
            ),
            sh(
                "read-worktree",
                "read the worktree of a worker that started later",
                "cat TREE/src/secret; ls TREE",
            ),
            sh(
                "read-scratch",
                "read its temporary files and home",
                "cat SCRATCH/secret SCRATCH/../home/secret",
            ),
            sh(
                "find",
                "find its files anywhere in Baton's state",
                f"grep -ra sesame-neighbour {state}/worktrees {state}/scratch {state}/codex-home",
            ),
            sh("shared-memory", "read what it put into shared memory", "cat /dev/shm/secret"),
            sh(
                "processes",
                "reach it by its processes",
                "cat /proc/[0-9]*/root/TREE/src/secret /proc/[0-9]*/cwd/src/secret; for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ; done",
            ),
            sh(
                "link",
                "link to its files and read them",
                "ln -s TREE/src src/theirs; cat src/theirs/secret; rm -f src/theirs; ln TREE/src/secret src/theirs; cat src/theirs",
            ),
            sh(
                "note",
                "read a note that it left beside the private repository",
                "cat $(git rev-parse --git-common-dir)/../note",
            ),
            sh("write", "write into its worktree and its temporary files", marks, self._untouched),
            Attempt("control-neighbour-end", "let it go on", (finish,), self._met, bare=False),
        ]

    def _both(self, judge: Judge) -> Judge:
        def judged(seen: Seen) -> tuple[Outcome, str]:
            return judge(seen) if self.tree and self.scratch else self._met(seen)

        return judged

    def _met(self, seen: Seen) -> tuple[Outcome, str]:
        met = bool(self.tree and self.scratch)
        return (Outcome.PREVENTED, "") if met else (Outcome.VOID, "the other worker did not come")

    def _untouched(self, seen: Seen) -> tuple[Outcome, str]:
        if self.touched:
            return Outcome.ESCAPED, f"{self.touched[0]} was made"
        return Outcome.PREVENTED, ""
