"""Records a workspace's state at one moment as a commit in the private repository, without touching it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.errors import Busy, Unsupported
from baton.contract.tree import Snapshot, show_path
from baton.workspace.git import GitFailed
from baton.workspace.index import Entry, update_index
from baton.workspace.intake import check_bytes, check_count, describe, too_many
from baton.workspace.listing import (
    EXECUTABLE,
    GITLINK,
    Listing,
    behind_links,
    parse_dirty,
    parse_entries,
    parse_listing,
)
from baton.workspace.locate import read_head
from baton.workspace.pin import pin_head
from baton.workspace.sparse import record_absent
from baton.workspace.store import PrivateGit

ATTEMPTS = 3
"""How often a snapshot starts over because files changed while they were read."""

_NO_PIN = "the repository cannot be written: the snapshot is a full copy without its history"

_LIST = ("ls-files", "-z", "-c", "-o", "--exclude-standard")


def take_snapshot(repo: PrivateGit, ref: str, run_id: str | None = None) -> Snapshot:
    """The workspace as it is now, named by `ref`.

    With `run_id` the person's HEAD is pinned first (`refs/baton/pin/<run_id>`), so that nothing borrowed
    from their repository can be collected; a later snapshot of the same run copies what it needs beyond
    that pin. Raises `InvalidInput` when there is more than the limits allow, `Unsupported` for a file that
    cannot be read, `Busy` when another process keeps the private repository for minutes, or the workspace
    does not hold still.
    """
    with repo.lock("snapshot"):
        for attempt in range(ATTEMPTS):
            try:
                return _Snapshot(repo, run_id).take(ref)
            except GitFailed as error:
                _start_over(repo, error, last=attempt == ATTEMPTS - 1)
    raise AssertionError("the last attempt returns or raises")


def _start_over(repo: PrivateGit, error: GitFailed, *, last: bool) -> None:
    """Forget the stat cache, which may be what is wrong; give up with a reason on the last attempt."""
    files = _Files(repo)
    for path in (files.index, files.listing, files.last, Path(f"{files.index}.lock")):
        path.unlink(missing_ok=True)
    if not last:
        return
    unreadable = _first_unreadable(repo)
    if unreadable is not None:
        raise Unsupported(
            f"{show_path(unreadable)} in {repo.site.root} cannot be read; make it readable or ignore it"
        )
    if b"object" in error.stderr and repo.site.partial:
        raise Unsupported(f"objects of the partial clone at {repo.site.root} are missing: {error.message}")
    raise Busy(f"files in {repo.site.root} change while they are read; try again ({error.message})")


def _first_unreadable(repo: PrivateGit) -> bytes | None:
    top = os.fsencode(repo.site.root) + b"/"
    for path in _list_workspace(repo)[1].disk:
        full = top + path
        if os.path.lexists(full) and not os.path.islink(full) and not os.access(full, os.R_OK):
            return path
    return None


class _Files:
    """The stat cache of a workspace and what it was made from."""

    def __init__(self, repo: PrivateGit) -> None:
        folder = repo.path / "indexes"
        self.index = folder / "snapshot"
        self.listing = folder / "snapshot.listing"
        """Digest of the listing that the index agrees with."""
        self.last = folder / "snapshot.last"
        """The last snapshot, to be handed out again when nothing has changed."""


@dataclass
class _Snapshot:
    repo: PrivateGit
    run_id: str | None

    def take(self, ref: str) -> Snapshot:
        repo, files = self.repo, _Files(self.repo)
        head = read_head(repo.git, repo.site.root) if repo.site.kind == "git" else None
        pinned = head
        if self.run_id is not None and head is not None:
            pinned = pin_head(repo, self.run_id, head)
        if not files.index.exists():
            _prime(repo, files.index, head)
        with ThreadPoolExecutor(max_workers=1) as pool:
            listed = pool.submit(_list_workspace, repo)
            dirty = parse_dirty(_diff_files(repo, files.index))
            raw, listing = listed.result()
        check_count(repo, listing)
        self._bring_index_up_to_date(files, raw, listing, dirty)
        # It may write the index anew, and then looks which files could have changed unseen since.
        written = repo.run(["write-tree", "--missing-ok"], index=files.index, work_tree=repo.site.root)
        tree = written.stdout.decode().strip()
        commit = self._commit(files, tree, head, pinned, listing)
        repo.set_ref(ref, commit)
        return Snapshot(
            commit=commit,
            tree=tree,
            head=head,
            submodules=tuple(listing.submodules),
            nested=tuple(listing.nested),
            notes=(*describe(listing), *([_NO_PIN] if head and not pinned else [])),
        )

    def _bring_index_up_to_date(
        self, files: _Files, raw: bytes, listing: Listing, dirty: dict[bytes, int]
    ) -> None:
        repo = self.repo
        fixed = {**listing.absent, **listing.submodules}
        changed = [path for path in dirty if path in listing.disk]
        shape = b"\0".join((*listing.absent, b"", *listing.submodules))
        digest = hashlib.sha256(raw + shape).digest()
        same_paths = files.listing.exists() and files.listing.read_bytes() == digest
        if same_paths and not changed and not (dirty.keys() - listing.absent.keys()):
            return
        files.listing.unlink(missing_ok=True)
        if same_paths and _are_other_contents(dirty, listing):
            check_bytes(repo, changed)
            self._read(files, [], changed, listing)
            if self._are_there(changed):
                files.listing.write_bytes(digest)
            return
        ours = parse_entries(repo.run(["ls-files", "-s", "-z"], index=files.index).stdout)
        gone = behind_links(repo.site.root, listing.disk)
        wanted = listing.disk.keys() - gone
        entries: list[Entry] = [(0, repo.zero, path) for path in ours.keys() - wanted - fixed.keys()]
        entries += [(mode, oid, path) for path, (mode, oid) in fixed.items() if ours.get(path) != (mode, oid)]
        pointers = {path for path in wanted if path in ours and ours[path][0] == GITLINK}
        fresh = sorted((wanted - ours.keys()) | wanted.intersection(changed) | pointers)
        check_bytes(repo, fresh)
        # Tracked before untracked: a folder in a tracked file's place is entered after the file is gone.
        fresh.sort(key=lambda path: (listing.disk[path] == 0, path))
        self._read(files, entries, fresh, listing)
        if not gone and self._are_there(fresh):
            # A listed path that is not on disk may come back unannounced: then look again next time.
            files.listing.write_bytes(digest)

    def _read(self, files: _Files, entries: list[Entry], disk: list[bytes], listing: Listing) -> None:
        repo = self.repo
        update_index(repo, files.index, repo.site.root, entries, disk, file_mode=repo.site.file_mode)
        if not repo.site.file_mode:
            _take_modes_from_their_index(repo, files.index, listing)

    def _are_there(self, paths: list[bytes]) -> bool:
        top = os.fsencode(self.repo.site.root) + b"/"
        return all(os.path.lexists(top + path) for path in paths)

    def _commit(
        self, files: _Files, tree: str, head: str | None, pinned: str | None, listing: Listing
    ) -> str:
        repo = self.repo
        fingerprint = {"tree": tree, "head": head, "pinned": pinned, "shallow": repo.site.shallow}
        last = _load(files.last)
        if last is not None and last.get("of") == fingerprint and repo.resolve(last["commit"]):
            return str(last["commit"])
        parent = _keep(repo, tree, head, pinned, listing)
        commit = repo.commit_tree(tree, [parent] if parent else [], "Workspace as it was on disk\n")
        record_absent(repo, commit, listing.absent)
        files.last.write_text(json.dumps({"of": fingerprint, "commit": commit}))
        return commit


def _are_other_contents(dirty: dict[bytes, int], listing: Listing) -> bool:
    """Whether all that differs from our index is the content or mode of files and links that are there.

    What is gone, or reached through a link that took a folder's place, git tells with mode 0.
    """
    return all(
        mode not in (0, GITLINK) and path in listing.disk
        for path, mode in dirty.items()
        if path not in listing.absent
    )


def _keep(repo: PrivateGit, tree: str, head: str | None, pinned: str | None, listing: Listing) -> str | None:
    """Make the snapshot independent of all but the pinned commit; returns the parent it may have."""
    basis = _readable_tree(repo, pinned)
    lost = set(repo.keep(tree, basis))
    if repo.site.partial:
        lost.update(_not_there(repo, tree))
    expendable = {oid for _, oid in listing.absent.values()}
    if lost - expendable:
        # The index believed in objects that are gone: read everything from disk again.
        raise GitFailed("objects of the snapshot are missing", 1, b"missing object")
    if head is None or basis is None:
        return None
    if head != pinned and pinned is not None:
        repo.copy_commits(head, pinned)
    return head


def _not_there(repo: PrivateGit, tree: str) -> list[str]:
    listed = repo.run(["ls-tree", "-r", "-z", "--format=%(objecttype) %(objectname)", tree]).stdout
    blobs = {line[5:].decode() for line in listed.split(b"\0") if line.startswith(b"blob ")}
    return repo.missing(sorted(blobs), borrow=True)


def _readable_tree(repo: PrivateGit, commit: str | None) -> str | None:
    """The commit's tree when all its folders are there (a treeless clone may lack them)."""
    if commit is None:
        return None
    found = repo.run(["rev-parse", "--verify", "--quiet", commit + "^{tree}"], ok=(0, 1, 128))
    if found.exit_code != 0:
        return None
    tree = found.stdout.decode().strip()
    if repo.site.partial and repo.run(["ls-tree", "-r", "-d", tree], ok=(0, 1, 128)).exit_code != 0:
        return None
    return tree


def _prime(repo: PrivateGit, index: Path, head: str | None) -> None:
    """Start the stat cache from HEAD, so that only what differs from it is written as new objects."""
    tree = _readable_tree(repo, head)
    if tree is None:
        repo.run(["read-tree", "--empty"], index=index)
        return
    repo.run(["read-tree", tree], index=index)
    if repo.site.partial:
        _drop_missing_blobs(repo, index, tree)
    # Compares bytes without writing objects; exit code 1 means that some files differ.
    refresh = ["update-index", "-q", "--really-refresh"]
    repo.run(refresh, index=index, work_tree=repo.site.root, ok=(0, 1))


def _drop_missing_blobs(repo: PrivateGit, index: Path, tree: str) -> None:
    lost = set(_not_there(repo, tree))
    entries = parse_entries(repo.run(["ls-files", "-s", "-z"], index=index).stdout)
    gone: list[Entry] = [(0, repo.zero, path) for path, (_, oid) in entries.items() if oid in lost]
    update_index(repo, index, repo.site.root, gone, [])


def _list_workspace(repo: PrivateGit) -> tuple[bytes, Listing]:
    root = repo.site.root
    own = _state_left_out(repo)
    if repo.site.kind == "git":
        raw = repo.git.theirs([*_LIST, *own, "-t", "-v", "-s"], cwd=root).stdout
        return raw, parse_listing(raw, root)
    empty = repo.path / "indexes" / "none"
    limit = repo.limits.plain_folder_files * 200
    out = repo.run([*_LIST, *own, "-t"], index=empty, work_tree=root, max_output=limit)
    if out.cut:
        raise too_many(repo, repo.limits.plain_folder_files)
    return out.stdout, parse_listing(out.stdout, root)


def _state_left_out(repo: PrivateGit) -> list[str]:
    """Options that keep Baton's own state out, where it lies inside the repository or folder."""
    state = repo.worktrees.parent
    if not state.is_relative_to(repo.site.root):
        return []
    return ["-x", "/" + re.sub(r"([\\*?\[\] ])", r"\\\1", str(state.relative_to(repo.site.root))) + "/"]


def _diff_files(repo: PrivateGit, index: Path) -> bytes:
    command = ["diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all"]
    return repo.run(command, index=index, work_tree=repo.site.root).stdout


def _take_modes_from_their_index(repo: PrivateGit, index: Path, listing: Listing) -> None:
    ours = parse_entries(repo.run(["ls-files", "-s", "-z"], index=index).stdout)
    wrong: list[Entry] = []
    for path, (mode, oid) in ours.items():
        theirs = listing.disk.get(path, 0)
        if theirs and stat.S_ISREG(mode) and stat.S_ISREG(theirs) and mode != theirs:
            wrong.append((EXECUTABLE if theirs == EXECUTABLE else 0o100644, oid, path))
    update_index(repo, index, repo.site.root, wrong, [])


def _load(path: Path) -> dict[str, Any] | None:
    try:
        loaded = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return loaded if isinstance(loaded, dict) else None
