"""A person edits, saves, commits, stashes, amends, switches, collects garbage while results are brought in.

Usage: scripts/python.sh tests/chaos/edits.py [--rounds N] [--seed S] [--real N] [--json] [--show]

Each round is one interleaving. Most have a scripted result integrated by the real engine, with the person's
actions at random points of it: before and after each snapshot and merge, at single steps of the apply, or
beside it in a thread. One in `--real` goes the whole way with the real Codex CLI. The last line is one JSON
object; exit status 0 means that no edit was lost, nothing came half and no journal was left open.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "server"))

import anyio

from baton.contract.session import Session
from baton.contract.states import Integration
from baton.contract.task import TaskCall
from baton.engine import integrate as engine
from baton.engine.house import House
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import shell
from baton.simulate.workers import report
from baton.workspace.apply import apply
from baton.workspace.git import Git
from baton.workspace.journal import Journal, Mark
from baton.workspace.journal_place import journals
from baton.workspace.locate import locate
from baton.workspace.repository import PrivateRepository
from chaos._machine import Machine, one_machine
from chaos._person import Person
from chaos._scripted import land, with_result
from real_codex import real_codex

ROUNDS_PER_WORKSPACE = 8

LINES = [f"line {number}" for number in range(14)]

FILES = {f"src/{name}.txt": "\n".join(LINES) + "\n" for name in "abcdef"} | {"src/sub/g.txt": "g\n"}


@dataclass
class Round:
    """What one interleaving was, and what came of it."""

    number: int
    mode: str
    did: list[str] = field(default_factory=list)
    outcome: str = ""
    lost: list[str] = field(default_factory=list)
    halves: list[str] = field(default_factory=list)
    open_journals: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    backups: list[str] = field(default_factory=list)
    """Where in the journals' backups a lost edit lies; it counts as lost all the same."""

    @property
    def clean(self) -> bool:
        return not (self.lost or self.halves or self.open_journals or self.broken)


class Work:
    """What the worker of a round changes: the middle of some files, new files, perhaps a file less."""

    def __init__(self, root: Path, chance: random.Random, number: int) -> None:
        present = sorted(path.relative_to(root).as_posix() for path in (root / "src").rglob("?.txt"))
        self.edited = chance.sample(present, min(len(present), chance.randint(1, 4)))
        self.token = f"worker-{number}."
        self.added = [f"src/sub/w{number}-{count}.txt" for count in range(chance.randint(1, 3))]
        rest = [path for path in present if path not in self.edited]
        self.removed = chance.choice(rest) if len(rest) > 2 and chance.random() < 0.3 else None

    def do(self, root: Path) -> None:
        for path, text in self.texts(root).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        if self.removed is not None:
            (root / self.removed).unlink()

    def texts(self, root: Path) -> dict[str, str]:
        """The files as the worker leaves them."""
        texts = dict.fromkeys(self.added, self.token + "\n")
        for path in self.edited:
            lines = (root / path).read_text().splitlines()
            middle = next((at for at, line in enumerate(lines) if line.startswith("line 7")), len(lines) // 2)
            lines[middle : middle + 1] = [f"line 7 {self.token}"]
            texts[path] = "\n".join(lines) + "\n"
        return texts

    @property
    def script(self) -> str:
        """The same as a shell script, for a worker that sees the files as they are when it comes to them."""
        line = f"0,/^line 7/s/^line 7.*/line 7 {self.token}/"
        edits = [f"[ ! -f {path} ] || sed -i '{line}' {path}" for path in self.edited]
        return "; ".join(
            ["mkdir -p src/sub", *edits, *(f"echo {self.token} > {path}" for path in self.added)]
        )

    def halves(self, root: Path, integration: Integration | None, person: Person) -> list[str]:
        """Files that show the opposite of what became of the result; what the person changed is theirs."""
        landed = integration is Integration.APPLIED
        wrong = []
        for path in (*self.edited, *self.added):
            if path in person.tokens or path in person.deleted:
                continue
            there = (root / path).is_file() and self.token in (root / path).read_text()
            if there != landed:
                wrong.append(
                    f"{path}: result {integration}, but its change is {'' if there else 'not '}there"
                )
        return wrong


class Points:
    """Lets the person act at chosen points of an integration."""

    def __init__(self, person: Person, chance: random.Random) -> None:
        self.person, self.chance = person, chance
        self.steps = sorted(chance.choices(range(45), k=chance.randint(1, 3)))
        self._at = 0

    def between(self) -> None:
        if self.chance.random() < 0.25:
            self.person.act()

    def step(self, _: str) -> None:
        """One step of an apply, the journal's own included."""
        while self.steps and self.steps[0] <= self._at:
            self.steps.pop(0)
            self.person.act()
        self._at += 1

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        snapshot, merge = PrivateRepository.snapshot, PrivateRepository.merge

        def around(call: Callable[..., Any]) -> Callable[..., Any]:
            def called(*args: Any, **kwargs: Any) -> Any:
                self.between()
                answer = call(*args, **kwargs)
                self.between()
                return answer

            return called

        def stepping(*args: Any, **kwargs: Any) -> Any:
            return apply(*args, **kwargs, step=self.step)

        with (
            mock.patch.object(PrivateRepository, "snapshot", around(snapshot)),
            mock.patch.object(PrivateRepository, "merge", around(merge)),
            mock.patch.object(engine, "apply", around(stepping)),
        ):
            yield


class Edits:
    """Rounds on one machine."""

    def __init__(self, machine: Machine, model: ScriptedModel, seed: str, real: int) -> None:
        self.machine, self.model, self.seed, self.real = machine, model, seed, real
        self.workspace = machine.root

    def round(self, number: int) -> Round:
        chance = random.Random(f"{self.seed}-{number}")
        if number % ROUNDS_PER_WORKSPACE == 1:
            self.workspace = self.machine.workspace(self.machine.root / "work" / f"w{number}", FILES)
        mode = (
            "real"
            if self.real and number % self.real == 0
            else chance.choice(("steps", "steps", "steps", "beside"))
        )
        found = Round(number, mode)
        person = Person(self.workspace, self.machine.env, chance, f"p{number}")
        for _ in range(chance.randint(0, 2)):
            person.act()
        if not list((self.workspace / "src").rglob("?.txt")):
            self.machine.workspace(self.workspace, FILES) if not self.workspace.exists() else self._restore()
        work = Work(self.workspace, chance, number)
        # The worker sees these edits: when it deletes the file, they go on purpose.
        seen = set(person.tokens.get(str(work.removed), ()))
        if mode == "real":
            integration = self._real(work, person, chance)
        else:
            integration = self._scripted(work, person, chance, mode)
        found.outcome = str(integration)
        if mode == "steps" and not person.used_git:
            found.halves = work.halves(self.workspace, integration, person)
        if integration is Integration.APPLIED and mode != "real" and seen:
            person.tokens[str(work.removed)] -= seen
        found.did, found.lost = person.did, person.lost()
        self._look(found)
        return found

    def _restore(self) -> None:
        for path, text in FILES.items():
            (self.workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / path).write_text(text)

    def _scripted(self, work: Work, person: Person, chance: random.Random, mode: str) -> Integration:
        with House.open(self.machine.env) as house:
            ctx = with_result(house, self.workspace, work.do)
            for _ in range(chance.randint(0, 1)):
                person.act()
            if mode == "beside":
                with _beside(person, chance):
                    done = anyio.run(land, ctx)
            else:
                with Points(person, chance).watched():
                    done = anyio.run(land, ctx)
            commit = ctx.repo.resolve(ctx.ref("tasks", "t1", 1))
            # Every object of the result is there, whatever the person collected.
            ctx.repo.run(["rev-list", "--objects", "--quiet", str(commit)])
            return done

    def _real(self, work: Work, person: Person, chance: random.Random) -> Integration | None:
        objective = f"<edits {person.name}>"
        self.model.on(objective, shell(work.script), report(summary="Written."))
        call = TaskCall(
            objective=objective,
            allowed_files=["src/"],
            verification_commands=["test -d src"],
            workspace=str(self.workspace),
            wait_seconds=100,
        )
        with self.machine.service() as service, _beside(person, chance, pause=0.4):
            answer = anyio.run(service.delegate_task, call, Session())
            return service.house.ledger.task(str(answer["runId"]), "t1").outcome.integration

    def _look(self, found: Round) -> None:
        site = locate(self.workspace, Git.find(self.machine.env))
        found.open_journals = [
            str(folder)
            for folder in journals(site.root, site.common_dir)
            if Journal(folder, lambda name: None).read()[1] not in (Mark.CLOSED, Mark.UNDONE)
        ]
        slots = [slot for folder in journals(site.root, site.common_dir) for slot in folder.glob("slots/*")]
        for edit in found.lost:
            token = edit.partition(" in ")[0].encode()
            found.backups += [
                str(slot) for slot in slots if slot.is_file() and token in slot.read_bytes().split()
            ]
        for command in (("fsck", "--no-dangling", "--no-progress"), ("status", "--porcelain")):
            try:
                self.machine.git(self.workspace, *command)
            except AssertionError as error:
                found.broken.append(str(error))


@contextlib.contextmanager
def _beside(person: Person, chance: random.Random, pause: float = 0.05) -> Iterator[None]:
    """The person goes on working in a thread of their own."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(chance.uniform(0, pause)):
            person.act()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--seed", default="1")
    parser.add_argument(
        "--real", type=int, default=25, help="every N-th round with the real Codex; 0 for none"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--show", action="store_true", help="a line for every round, not only for bad ones")
    options = parser.parse_args()
    began = time.monotonic()
    rounds = []
    with one_machine(real_codex()) as (machine, model):
        edits = Edits(machine, model, options.seed, options.real)
        for number in range(1, options.rounds + 1):
            found = edits.round(number)
            rounds.append(found)
            if options.show or not found.clean:
                print(found, flush=True)
    figures = summary(rounds) | {"seconds": round(time.monotonic() - began, 1)}
    if options.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")
    sys.exit(0 if all(found.clean for found in rounds) else 1)


def summary(rounds: list[Round]) -> dict[str, object]:
    """The figures of a run of this script."""
    return {
        "rounds": len(rounds),
        "lost": sum(bool(found.lost) for found in rounds),
        "halves": sum(bool(found.halves) for found in rounds),
        "openJournals": sum(bool(found.open_journals) for found in rounds),
        "broken": sum(bool(found.broken) for found in rounds),
        "modes": dict(Counter(found.mode for found in rounds)),
        "outcomes": dict(Counter(found.outcome for found in rounds)),
        "actions": dict(Counter(name for found in rounds for name in found.did)),
    }


if __name__ == "__main__":
    main()
