"""Which tasks of one call could change the same file while neither waits for the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from baton.contract.errors import InvalidInput
from baton.contract.task import Task
from baton.contract.tree import show_path
from baton.workspace.git import Git
from baton.workspace.locate import Site
from baton.workspace.overlap import disjoint, overlap
from baton.workspace.scope import Scope, read_scope


def refuse_overlaps(
    tasks: Sequence[Task], depends_on: Mapping[str, Sequence[str]], site: Site, git: Git
) -> None:
    """Raises `InvalidInput` for the first pair of concurrent tasks that may change the same file.

    Decided exactly for the files that exist, and on the safe side for those that do not.
    """
    before = ancestors(depends_on)
    scopes = {str(task.id): read_scope(task) for task in tasks}
    pairs = [
        (one, other)
        for one, other in combinations(scopes, 2)
        if one not in before[other] and other not in before[one]
    ]
    # Most calls are disjoint whatever exists; listing the files is for those that are not.
    pairs = [(one, other) for one, other in pairs if not disjoint(scopes[one], scopes[other])]
    if not pairs:
        return
    paths = list_files(site, git)
    for one, other in pairs:
        sample = overlap(scopes[one], scopes[other], paths)
        if sample is not None:
            raise InvalidInput(
                f"tasks.{one} and tasks.{other} may both change {show_path(sample)}: narrow their"
                " allowedFiles, let one depend on the other, or set allowOverlap"
            )


def overlapping_pairs(
    tasks: Sequence[Task], depends_on: Mapping[str, Sequence[str]], site: Site, git: Git
) -> list[tuple[str, str, str]]:
    """Every concurrent pair that may change the same file, with a sample path: for a call that allows it."""
    before = ancestors(depends_on)
    scopes: dict[str, Scope] = {str(task.id): read_scope(task) for task in tasks}
    paths = list_files(site, git)
    found = []
    for one, other in combinations(scopes, 2):
        if one in before[other] or other in before[one]:
            continue
        sample = overlap(scopes[one], scopes[other], paths)
        if sample is not None:
            found.append((one, other, show_path(sample)))
    return found


def ancestors(depends_on: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """For each task everything that ends before it begins. The graph has no cycle."""
    known: dict[str, frozenset[str]] = {}

    def of(name: str) -> frozenset[str]:
        if name not in known:
            direct = depends_on[name]
            known[name] = frozenset(direct).union(*(of(one) for one in direct))
        return known[name]

    for name in _outermost_first(depends_on):
        of(name)
    return known


def _outermost_first(depends_on: Mapping[str, Sequence[str]]) -> list[str]:
    """Names so that a task comes after all it depends on; keeps `ancestors` from recursing deeply."""
    left = {name: set(needs) for name, needs in depends_on.items()}
    order: list[str] = []
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        order += free
        for name in free:
            del left[name]
    return order


def list_files(site: Site, git: Git) -> list[bytes]:
    """Files of the workspace as git sees them; none for a plain folder, which errs on the safe side."""
    if site.kind != "git":
        return []
    listed = git.theirs(
        ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=site.workspace
    ).stdout
    return sorted(set(listed.split(b"\0")) - {b""})
