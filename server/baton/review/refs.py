"""Pins the two ends of a diff to commits, and tells when they have moved since."""

from __future__ import annotations

import re
from dataclasses import dataclass

from baton.contract.errors import InvalidInput, Unsupported, WorkspaceMoved
from baton.workspace.git import Git
from baton.workspace.locate import Site

_REVISION = re.compile(r"[^\s\x00-\x1f\x7f:*?\[\\-][^\s\x00-\x1f\x7f:*?\[\\]*")


@dataclass(frozen=True)
class Pinned:
    """What a `diffRef` named when it was looked at. Commits are whole ids."""

    ref: str
    left: str | None
    """The commit that the left side names; None for a single commit."""
    right: str
    base: str | None
    """What is compared with: the left side, the merge base, the first parent; None for a first commit."""

    def shown(self) -> dict[str, str]:
        base = self.base[:12] if self.base else "(nothing before it)"
        return {"diffRef": self.ref, "from": base, "to": self.right[:12]}


def pin(git: Git, site: Site, ref: str) -> Pinned:
    """Resolve `A..B`, `A...B` or `X`.

    Raises `InvalidInput` for what is no such form or names no commit, `Unsupported` where a shallow clone
    lacks the history that the form needs.
    """
    left, dots, right = _parts(ref)
    tip = _commit(git, site, right, ref)
    if not dots:
        return Pinned(ref, None, tip, _first_parent(git, site, tip))
    start = _commit(git, site, left, ref)
    if dots == "..":
        return Pinned(ref, start, tip, start)
    found = git.theirs(["merge-base", "--", start, tip], cwd=site.root, ok=(0, 1, 128))
    base = found.stdout.decode().split()
    if found.exit_code != 0 or not base:
        raise _lacking(site, f"diffRef {ref!r}: the two sides have no common commit")
    return Pinned(ref, start, tip, base[0])


def check_unmoved(git: Git, site: Site, pinned: Pinned) -> None:
    """Raises `WorkspaceMoved` when the names lead to other commits now, or the commits are gone."""
    try:
        now = pin(git, site, pinned.ref)
    except (InvalidInput, Unsupported) as error:
        raise WorkspaceMoved(f"{error.message}; it could be read when it was planned; plan again") from None
    if now != pinned:
        moved = [
            f"{before[:12] if before else 'nothing'} is {after[:12] if after else 'nothing'} now"
            for before, after in ((pinned.base, now.base), (pinned.right, now.right), (pinned.left, now.left))
            if before != after
        ]
        raise WorkspaceMoved(
            f"diffRef {pinned.ref!r} names other commits than were planned ({'; '.join(moved)});"
            " nothing was sent; plan again"
        )


def _parts(ref: str) -> tuple[str, str, str]:
    dots = "..." if "..." in ref else ".." if ".." in ref else ""
    left, _, right = ref.partition(dots) if dots else ("", "", ref)
    # As git has it: a side that is left out is HEAD.
    sides = [side or "HEAD" for side in ((left, right) if dots else (right,))]
    if not ref.strip() or ref in ("..", "...") or any(not _REVISION.fullmatch(side) for side in sides):
        raise InvalidInput(f"diffRef: {ref!r} is none of A..B, A...B and a commit")
    if any(".." in side for side in sides):
        raise InvalidInput(f"diffRef: {ref!r} has more than two sides")
    return (sides[0] if dots else "", dots, sides[-1])


def _commit(git: Git, site: Site, name: str, ref: str) -> str:
    arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
    found = git.theirs(arguments, cwd=site.workspace, ok=(0, 1, 128))
    commit = found.stdout.decode("ascii", "replace").strip()
    if found.exit_code != 0 or not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit):
        hint = "; the clone is shallow: fetch more of its history" if site.shallow else ""
        raise InvalidInput(f"diffRef {ref!r}: {name!r} is no commit of {site.root}{hint}")
    return commit


def _first_parent(git: Git, site: Site, commit: str) -> str | None:
    header = git.theirs(["cat-file", "commit", commit], cwd=site.root).stdout.partition(b"\n\n")[0]
    parents = [line[7:].decode() for line in header.split(b"\n") if line.startswith(b"parent ")]
    if not parents:
        return None
    # A shallow clone names a parent that it does not have: without it this would look like a first commit.
    if git.theirs(["cat-file", "-e", f"{parents[0]}^{{commit}}"], cwd=site.root, ok=(0, 1, 128)).exit_code:
        raise _lacking(site, f"the parent of {commit[:12]} is not here")
    return parents[0]


def _lacking(site: Site, what: str) -> Unsupported:
    if site.shallow:
        return Unsupported(
            f"{what}: {site.root} is a shallow clone; fetch more of it (git fetch --unshallow)"
        )
    return Unsupported(f"{what} in {site.root}")
