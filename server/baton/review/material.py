"""The material of a review: a diff between pinned commits, files, text, or what a Baton run changed.

Only committed changes are diffed. The repository, its git directory and every object folder that it borrows
from must lie in the folders that the person allowed. One limit: git opens its directory by name after that
was checked; whoever can write in an allowed folder can swap it in that instant.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton.consult.context_material import MayRead, Piece, allowed_roots, expanded, gather
from baton.contract.consult import Material
from baton.contract.errors import InvalidInput, NotAllowed, Unsupported, WorkspaceMoved
from baton.contract.review import ReviewCall
from baton.engine.house import House
from baton.engine.results import chosen_attempts, chosen_tasks, patches
from baton.policy.review_rules import ReviewRules
from baton.review.places import Places, places_of_diff, places_of_files, unshown_files
from baton.review.refs import Pinned, check_unmoved, pin
from baton.workspace.git import Git, GitFailed
from baton.workspace.locate import Site, locate
from baton.workspace.stores import git_stores

DIFF = "diff"

SHOWN_FILES = 10

MAX_NAME = 4_096
"""Characters of a path or a name of commits."""


@dataclass(frozen=True)
class Source:
    """What material was asked for, with the ends that were found: all that is needed to make it again."""

    repository: str | None = None
    pinned: Pinned | None = None
    paths: tuple[str, ...] = ()
    context: str | None = None
    run_id: str | None = None

    def stored(self) -> dict[str, Any]:
        pinned = self.pinned
        return {
            "repository": self.repository,
            "pinned": None if pinned is None else [pinned.ref, pinned.left, pinned.right, pinned.base],
            "paths": list(self.paths),
            "context": self.context,
            "runId": self.run_id,
        }

    @classmethod
    def of(cls, stored: dict[str, Any]) -> Source:
        pinned = stored["pinned"]
        return cls(
            stored["repository"],
            None if pinned is None else Pinned(*pinned),
            tuple(stored["paths"]),
            stored["context"],
            stored["runId"],
        )


@dataclass(frozen=True)
class Gathered:
    """Material as it will be sent."""

    source: Source
    pieces: list[Piece]
    places: Places
    notes: list[str] = field(default_factory=list)

    @property
    def manifest(self) -> list[Material]:
        return [piece.record() for piece in self.pieces]

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.manifest)


@dataclass(frozen=True)
class Bounds:
    """Where material may come from."""

    house: House
    rules: ReviewRules
    workspace: Path | None
    may_read: MayRead


def ask_for(call: ReviewCall, bounds: Bounds) -> Source:
    """What a call names as material, its ends pinned. Raises `BatonError`."""
    _check_named(call)
    if call.run_id is not None and (call.diff_ref is not None or call.paths):
        raise InvalidInput("runId: a run is reviewed by itself; leave the other material out")
    if call.repository is not None and call.diff_ref is None:
        raise InvalidInput("repository: goes with diffRef")
    if call.diff_ref is None:
        if not (call.paths or call.context or call.run_id):
            raise InvalidInput("material: there is none; name a diff, paths, a run or text")
        return Source(None, None, tuple(dict.fromkeys(call.paths)), call.context, call.run_id)
    named = call.repository or (None if bounds.workspace is None else str(bounds.workspace))
    if named is None:
        raise InvalidInput("diffRef: the session has no folder; name the repository")
    git, site = _repository(Path(named), bounds)
    pinned = pin(git, site, call.diff_ref)
    return Source(str(site.workspace), pinned, tuple(dict.fromkeys(call.paths)), call.context)


def _check_named(call: ReviewCall) -> None:
    """An empty name would stand for everything, and an endless one is none."""
    named = [("diffRef", call.diff_ref), ("repository", call.repository), ("runId", call.run_id)]
    for what, name in [*named, *(("paths", path) for path in call.paths)]:
        if name is not None and not name.strip():
            raise InvalidInput(f"{what}: must not be empty")
        if name is not None and len(name) > MAX_NAME:
            raise InvalidInput(f"{what}: longer than {MAX_NAME} characters")


def gather_again(source: Source, bounds: Bounds, manifest: Sequence[Material]) -> Gathered:
    """The same material once more, for sending. Raises `WorkspaceMoved` when it is not the same any more."""
    if source.pinned is not None and source.repository is not None:
        git, site = _repository(Path(source.repository), bounds)
        check_unmoved(git, site, source.pinned)
    found = gather_material(source, bounds)
    if found.manifest != list(manifest):
        before = {piece.label: piece for piece in manifest}
        other = [piece.label for piece in found.manifest if before.get(piece.label) != piece]
        raise WorkspaceMoved(
            f"the material is not what was planned any more ({', '.join(other) or 'a part is gone'});"
            " nothing was sent; plan again"
        )
    return found


def gather_material(source: Source, bounds: Bounds) -> Gathered:
    """Read it. Raises `BatonError` for what may not be sent, is no text, or is too much."""
    most = bounds.rules.max_material_bytes
    paths = () if source.pinned is not None else source.paths
    pieces = gather(
        source.context,
        paths,
        workspace=bounds.workspace,
        roots=bounds.rules.roots,
        may_read=bounds.may_read,
        most=most,
        keys=("review.roots", "review.max_material_bytes", "paths"),
    )
    files = {piece.label: piece.text for piece in pieces[1 if source.context else 0 :]}
    places, notes = places_of_files(files), list[str]()
    room = most - sum(len(piece.text.encode("utf-8", "replace")) for piece in pieces)
    if source.pinned is not None and source.repository is not None:
        text, said = _diff(Path(source.repository), source.pinned, source.paths, bounds, room)
        pieces.append(Piece(DIFF, text))
        places, notes = places_of_diff(text), said
    if source.run_id is not None:
        made = _run_pieces(source.run_id, bounds, room)
        pieces += made
        for piece in made:
            places |= places_of_diff(piece.text)
    return Gathered(source, pieces, places, notes)


def _repository(folder: Path, bounds: Bounds) -> tuple[Git, Site]:
    """The repository, if all of it lies where material may come from."""
    allowed = allowed_roots(bounds.rules.roots, bounds.workspace, "review.roots")
    folder = Path(expanded(str(folder)))
    if not folder.is_absolute():
        raise InvalidInput(f"repository: {str(folder)!r} is not an absolute path")
    # Looked at before git is: it must not run in a folder that nobody allowed.
    _check_allowed(Path(os.path.realpath(folder)), "the folder", allowed, bounds)
    git = Git.find(bounds.house.env)
    site = locate(folder, git)
    if site.kind != "git":
        raise InvalidInput(f"diffRef: {site.workspace} is in no git repository; use paths or context")
    _check_allowed(site.root, "its top folder", allowed, bounds)
    for store in git_stores(site):
        _check_allowed(store, "its git data", allowed, bounds)
    return git, site


def _check_allowed(path: Path, what: str, allowed: Sequence[Path], bounds: Bounds) -> None:
    if not any(path.is_relative_to(root) for root in allowed):
        raise NotAllowed(f"repository: {what} {path} is in none of the folders of review.roots")
    if not bounds.may_read(path):
        raise NotAllowed(f"repository: {what} {path} may not be read in this session")


def _diff(
    repository: Path, pinned: Pinned, paths: Sequence[str], bounds: Bounds, room: int
) -> tuple[str, list[str]]:
    git, site = _repository(repository, bounds)
    base = pinned.base or _empty_tree(git, site)
    # Plumbing: no setting of the person's for looking at diffs counts, and no program of the repository's.
    arguments = [
        *("-c", "core.quotePath=false", "diff-tree", "-r", "-p", "-M", "--full-index", "--no-color"),
        *("--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "--submodule=short"),
        *("--src-prefix=a/", "--dst-prefix=b/", base, pinned.right, "--", *_below(paths, site)),
    ]
    try:
        output = git.theirs(arguments, cwd=site.root, max_output=max(room, 0))
    except GitFailed as error:
        if site.partial:
            raise Unsupported(
                f"{site.root} is a partial clone that lacks content of these commits, and nothing is fetched;"
                " fetch it yourself (git fetch --refetch), then plan again"
            ) from None
        raise Unsupported(f"the diff cannot be made: {error.message}") from None
    if output.cut:
        raise InvalidInput(
            f"diffRef {pinned.ref!r}: larger than review.max_material_bytes; limit it with paths"
        )
    text = output.stdout.decode("utf-8", "replace")
    if not text.strip():
        raise InvalidInput(f"diffRef {pinned.ref!r}: nothing differs there")
    notes = []
    if "\ufffd" in text and "\ufffd".encode() not in output.stdout:
        notes.append("bytes that are no UTF-8 are sent as U+FFFD")
    if unshown := unshown_files(text):
        shown = ", ".join(unshown[:SHOWN_FILES])
        more = f" and {len(unshown) - SHOWN_FILES} more" if len(unshown) > SHOWN_FILES else ""
        notes.append(f"not sent, binary or called so by attributes: {shown}{more}")
    if "\n-Subproject commit" in text or "\n+Subproject commit" in text:
        notes.append("a submodule moved: its commit ids are sent, its content is not")
    return text, notes


def _below(paths: Sequence[str], site: Site) -> list[str]:
    """Paths relative to the top of the repository."""
    prefix = os.fsdecode(site.prefix)
    found = []
    for path in paths:
        absolute = Path(expanded(path))
        name = os.path.normpath(absolute if absolute.is_absolute() else site.root / prefix / path)
        if not Path(name).is_relative_to(site.root):
            raise InvalidInput(f"paths: {path!r} is not in {site.root}")
        found.append(os.path.relpath(name, site.root))
    return found


def _empty_tree(git: Git, site: Site) -> str:
    return (
        git.theirs(["hash-object", "-t", "tree", "--stdin"], cwd=site.root, input=b"").stdout.decode().strip()
    )


def _run_pieces(run_id: str, bounds: Bounds, room: int) -> list[Piece]:
    run = bounds.house.ledger.run(run_id)
    if not bounds.may_read(Path(run.workspace)):
        raise NotAllowed(f"runId: {run.workspace} may not be read in this session")
    tasks = chosen_tasks(bounds.house, run, None)
    attempts = chosen_attempts(bounds.house, run, tasks, None)
    pieces = []
    for patch in patches(bounds.house, run, attempts):
        text = patch.data.decode("utf-8", "replace")
        room -= len(patch.data)
        if room < 0:
            raise InvalidInput(f"runId: what {run_id} changed is larger than review.max_material_bytes")
        if text.strip():
            pieces.append(Piece(f"{run_id}/{patch.task_id}", text))
    if not pieces:
        raise InvalidInput(f"runId: {run_id} changed nothing that is kept")
    return pieces
