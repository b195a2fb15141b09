"""Makes sure that a check runs on the checked-out tree and not, by some back way, on the person's own.

Ways back are: absolute paths in the command, editable installs and stale copies in a Python environment, and
links of a package workspace in `node_modules`. Each is turned towards the checkout where that can be done;
where it cannot, the check is not run, because it would prove nothing. In the sandbox the person's tree cannot
be read anyway: a way back that nobody found makes a check fail there, never pass.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from baton.process.child import Finished
from baton.verify.origin_node import turn_workspace_links
from baton.verify.origin_python import ASK, ask_arguments, python_of, read_answer, redirect, tree_modules
from baton.verify.place import CheckPlace
from baton.verify.program import Program

ASK_SECONDS = 30.0


class Runner(Protocol):
    """Starts a program the way the check itself is started."""

    async def run(self, argv: tuple[str, ...], inside: Mapping[str, str], *, timeout: float) -> Finished: ...


@dataclass(frozen=True)
class Moved:
    """A command whose paths lead into the checkout."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """What a check needs to run on the checkout, or why it cannot."""

    variables: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    refused: str | None = None


def move_arguments(argv: Sequence[str], environment: Mapping[str, str], place: CheckPlace) -> Moved:
    """Turn paths of the person's tree, in arguments and assignments, into those of the checkout. Pure."""
    theirs = re.compile(rf"(?<![\w.@/-]){re.escape(str(place.person_root))}(?=/|$|[\s:;,'\")\]])")
    ours = str(place.worktree)

    def moved(text: str) -> str:
        return theirs.sub(lambda _: ours, text)

    words = tuple(moved(word) for word in argv)
    values = {name: moved(value) for name, value in environment.items()}
    same = words == tuple(argv) and values == dict(environment)
    note = f"paths in {place.person_root} were turned into those of the checked tree"
    return Moved(words, values, () if same else (note,))


async def settle_origin(
    program: Program, place: CheckPlace, inside: Mapping[str, str], runner: Runner
) -> Origin:
    """Turn what would lead to the person's tree towards the checkout, and see that it worked.

    May replace a linked `node_modules` in the checkout by a folder of links. Raises nothing of its own: an
    interpreter that does not answer is none whose modules could be told, which a note says.
    """
    node = turn_workspace_links(place)
    if node.refused is not None:
        return Origin(refused=node.refused)
    python = python_of(program, inside.get("PATH", ""))
    modules = tree_modules(place.cwd, place.worktree) if python is not None else ()
    if python is None or not modules:
        return Origin(notes=node.notes)
    question = (str(python), "-c", ASK, *ask_arguments(modules))
    first = read_answer(await runner.run(question, inside, timeout=ASK_SECONDS))
    if first is None:
        return Origin(notes=(*node.notes, f"{python} did not say where it takes modules from"))
    wanted = redirect(first, modules, place)
    if not wanted:
        return Origin(notes=node.notes)
    roots = dict.fromkeys(str(module.root) for module in wanted)
    given = inside.get("PYTHONPATH")
    variables = {"PYTHONPATH": os.pathsep.join([*roots, *([given] if given else [])])}
    second = read_answer(await runner.run(question, {**inside, **variables}, timeout=ASK_SECONDS))
    names = ", ".join(module.name for module in wanted)
    astray = [module.name for module in wanted if second is None or not second.on_tree(module, place)]
    if astray:
        where = f"{python} takes {', '.join(astray)} from outside the checked tree"
        return Origin(refused=f"{where}, and PYTHONPATH does not change it")
    return Origin(
        variables, (*node.notes, f"{names} was installed from elsewhere: PYTHONPATH leads to the tree")
    )
