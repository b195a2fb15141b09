"""Records what a worktree holds when its worker has ended, whatever the worker did and with whatever tool."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.tree import Capture, show_path
from baton.contract.wording import many
from baton.workspace import warm
from baton.workspace.aside import keep_aside
from baton.workspace.beyond import note_beyond
from baton.workspace.changes import changes_inside, without_folders
from baton.workspace.git import GitFailed
from baton.workspace.index import Entry, update_index
from baton.workspace.listing import EXECUTABLE, GITLINK, LINK, PLAIN, parse_dirty, parse_entries
from baton.workspace.loose import blob_id
from baton.workspace.mount_points import take_mount_points
from baton.workspace.scan import Scan, scan_paths, scan_worktree
from baton.workspace.sparse import absent_paths, inherit_absent
from baton.workspace.store import PrivateGit, new_objects
from baton.workspace.submodules import submodule_paths
from baton.workspace.tree_edit import EditedTree, edit_tree
from baton.workspace.tree_links import leaving_links
from baton.workspace.tree_objects import TreeEntry
from baton.workspace.tree_paths import note_changed, tree_paths
from baton.workspace.worktree import Worktree, intact_links, pointer_text


def capture_worktree(
    repo: PrivateGit,
    worktree: Worktree,
    base: str,
    ref: str,
    aside: Path,
    sandboxed: Collection[Path] | None = None,
) -> Capture:
    """Record the worktree as a commit on `base`, named by `ref`; the worktree's index stays as it was.

    `sandboxed` are the folders that a sandbox let the worker write, when it kept the worker from everything
    else: then a worktree that has a watcher is not looked at where that has seen nothing.

    Folders that Baton linked or copied in are left out while they are what Baton made. Ignored and nested
    content goes to `aside`, which is emptied first, up to the limit. Special files are listed and removed
    from the worktree, because git would wait for ever on some of them. Only call it when no process of the
    worker is left.
    """
    taken = take_mount_points(worktree.root, worktree.admin)
    only = None if sandboxed is None else warm.touched(worktree, sandboxed, taken)
    if sandboxed is None:
        warm.forget(worktree)
    return _Capturing(repo, worktree, base, aside, only).record(ref)


@dataclass
class _Found:
    """What the capture takes in, and what it only lists."""

    disk: list[bytes] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    nested: set[bytes] = field(default_factory=set)
    over_limit: str | None = None
    dropped: list[bytes] = field(default_factory=list)
    unread: list[bytes] = field(default_factory=list)
    """What cannot be opened by its path, which is too long."""


class _Capturing:
    def __init__(
        self, repo: PrivateGit, worktree: Worktree, base: str, aside: Path, only: frozenset[bytes] | None
    ) -> None:
        self.repo = repo
        self.worktree = worktree
        self.base = base
        self.aside = aside
        self.only = None if only is None else sorted(only)
        """The paths to look at; None: everything."""
        self.top = os.fsencode(worktree.root) + b"/"
        self.links = intact_links(worktree)

    def record(self, ref: str) -> Capture:
        repo, worktree = self.repo, self.worktree
        known = tree_paths(repo, worktree.head)
        if self.only is None:
            scan = scan_worktree(worktree.root, self.links, repo.limits.walked_entries, known)
        else:
            scan = scan_paths(worktree.root, self.only, self.links, known)
        # Where all paths on disk are tracked ones, there is nothing that git could list as anything else.
        ignored = [] if scan.all_known else self._ignored()
        with tempfile.TemporaryDirectory(prefix="capture-", dir=repo.path / "indexes") as folder:
            index = Path(folder) / "index"
            # With its time stamp: git tells by it which files may have changed unseen since.
            shutil.copy2(worktree.index, index)
            found = self._look(index, scan)
            self._take_in(index, found)
            edited = self._edited(found)
            if edited is None:
                tree = repo.run(["write-tree", "--missing-ok"], index=index).stdout.decode().strip()
                edited = EditedTree(tree, repo.raw_changes(repo.tree_of(self.base), tree))
            return self._record(ref, edited, index, found, scan, ignored)

    def _record(
        self, ref: str, edited: EditedTree, index: Path, found: _Found, scan: Scan, ignored: list[bytes]
    ) -> Capture:
        repo, worktree = self.repo, self.worktree
        base_tree, tree, raw = repo.tree_of(self.base), edited.tree, edited.raw
        # What the worker wrote may equal an object of the person's that nothing holds: own it.
        repo.keep(tree, base_tree, raw)
        commit = repo.commit_tree(tree, [self.base], "Worktree as its worker left it\n")
        inherit_absent(repo, commit, self.base)
        repo.set_ref(ref, commit)
        changed = without_folders(raw)
        note_changed(repo, self.base, commit, changed)
        note_beyond(repo, commit, self.base, new_objects(raw) | ({tree} if raw else set()))
        changes = changes_inside(repo, self.base, commit, changed)
        kept = keep_aside(
            worktree.root, sorted({*ignored, *found.nested}), self.aside, repo.limits, leave_out=self.links
        )
        limit = repo.limits.listed_paths
        capture = Capture(
            commit=commit,
            tree=tree,
            changes=changes,
            ignored=tuple(ignored[:limit]),
            nested=tuple(sorted(found.nested)[:limit]),
            leaving_links=leaving_links(repo, self.base, commit, changes),
            outside=tuple(one.path for one in changed if not one.path.startswith(repo.site.prefix)),
            unsupported=tuple([*scan.special, *scan.unread, *found.unread, *found.dropped][:limit]),
            aside=self.aside if kept.anything else None,
            aside_cut=kept.cut,
            over_limit=scan.over_limit or found.over_limit,
        )
        if self.only is not None and not (ignored or found.nested or capture.unsupported):
            warm.keep_result(repo, worktree, commit, index, changed)
        return capture

    # -- looking ----------------------------------------------------------------------------------

    def _git(self, args: list[str | bytes], index: Path) -> bytes:
        worktree = self.worktree
        return self.repo.run(args, git_dir=worktree.admin, work_tree=worktree.root, index=index).stdout

    def _ignored(self) -> list[bytes]:
        """Ignored paths by the worktree's rules as the worker left them; whole folders end in a slash."""
        listed = self._git(
            ["ls-files", "-z", "-o", "-i", "--exclude-standard", "--directory", *self._where()],
            self.worktree.index,
        )
        return [path for path in listed.split(b"\0") if path and path.rstrip(b"/") not in self.links]

    def _untracked(self, index: Path) -> list[bytes]:
        return self._git(["ls-files", "-z", "-o", "--exclude-standard", *self._where()], index).split(b"\0")

    def _look(self, index: Path, scan: Scan) -> _Found:
        found = _Found(nested=set(scan.git_entries))
        if not self._pointer_intact():
            found.nested.add(b".git")
        dirty = self._dirty(index)
        tracked = self._tracked(index)
        for path, mode in dirty.items():
            if mode == GITLINK:
                # A repository where a file was: the file is gone, the repository is listed.
                found.nested.add(path)
                found.nested.discard(path + b"/.git")
            if mode in (0, GITLINK):
                found.entries.append((0, self.repo.zero, path))
            elif path not in self.links:
                found.disk.append(path)
        for path in absent_paths(self.repo, self.base):
            if path in tracked and os.path.lexists(self.top + path):
                # Taken out first, because git takes a file marked as absent for deleted when it is there.
                found.entries.append((0, self.repo.zero, path))
                found.disk.append(path)
        for path, (mode, _) in tracked.items():
            if mode == GITLINK and path not in self.links:
                self._look_at_submodule(path, found)
        for path in [] if scan.all_known else self._untracked(index):
            if path.endswith(b"/"):
                found.nested.add(path[:-1])
                # Named as a whole, not by its git directory.
                found.nested.discard(path + b".git")
            elif path and path not in self.links:
                found.disk.append(path)
        self._bound(found)
        return found

    def _dirty(self, index: Path) -> dict[bytes, int]:
        told = self._told()
        if told is not None:
            return told
        command = ["diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all"]
        return parse_dirty(self._git([*command, *self._where()], index))

    def _told(self) -> dict[bytes, int] | None:
        """The tracked ones of the paths to look at, changed or not, with modes; None: git has to look."""
        if self.only is None:
            return None
        files = tree_paths(self.repo, self.worktree.head).files
        told = {path: _mode(self.top + path) for path in self.only if path in files}
        return None if any(mode is None for mode in told.values()) else {p: m or 0 for p, m in told.items()}

    def _where(self) -> list[bytes]:
        """Arguments that have git look at what there is to look at and no further."""
        return [] if self.only is None else [b"--", *self.only]

    def _tracked(self, index: Path) -> dict[bytes, tuple[int, str]]:
        """The entries of the index, where some of them are of a kind that needs a closer look; else none."""
        if not absent_paths(self.repo, self.base) and not submodule_paths(self.repo, self.worktree.head):
            return {}
        return parse_entries(self._git(["ls-files", "-s", "-z"], index))

    def _look_at_submodule(self, path: bytes, found: _Found) -> None:
        """Git does not look into a submodule's folder, nor at what was put in its place."""
        full = self.top + path
        if os.path.isdir(full) and not os.path.islink(full):
            with os.scandir(full) as entries:
                if next(entries, None) is not None:
                    found.nested.add(path)
        elif os.path.lexists(full):
            found.disk.append(path)

    def _pointer_intact(self) -> bool:
        pointer = self.worktree.root / ".git"
        try:
            return not pointer.is_symlink() and pointer.read_bytes() == pointer_text(self.worktree)
        except OSError:
            return False

    def _bound(self, found: _Found) -> None:
        """Leave out what is beyond the limits, and say so: such a tree is a violation by itself."""
        limits = self.repo.limits
        count = total = 0
        kept = []
        for path in found.disk:
            size = 0
            try:
                size = os.lstat(self.top + path).st_size
            except OSError as error:
                if error.errno == errno.ENAMETOOLONG:
                    found.unread.append(path)
                    continue
            if count + 1 > limits.captured_files or total + size > limits.captured_bytes:
                found.dropped.append(path)
                continue
            count, total = count + 1, total + size
            kept.append(path)
        if found.dropped:
            found.over_limit = (
                f"the worker made more than {limits.captured_files} files or "
                f"{limits.captured_bytes // 2**20} MiB: "
                f"{many(len(found.dropped), 'path is', 'paths are')} not captured, "
                f"{show_path(found.dropped[0])} first"
            )
        found.disk = kept

    # -- taking in --------------------------------------------------------------------------------

    def _take_in(self, index: Path, found: _Found) -> None:
        root, admin = self.worktree.root, self.worktree.admin
        try:
            update_index(self.repo, index, root, found.entries, found.disk, git_dir=admin)
        except GitFailed:
            self._make_readable(found.disk)
            update_index(self.repo, index, root, found.entries, found.disk, git_dir=admin)

    def _edited(self, found: _Found) -> EditedTree | None:
        """The tree, made of the few paths that were taken in; None where that is left to git."""
        repo = self.repo
        if self.only is None or self.base != self.worktree.head or any(mode for mode, _, _ in found.entries):
            return None
        entries: dict[bytes, TreeEntry | None] = {path: None for _, _, path in found.entries}
        for path in found.disk:
            mode = _mode(self.top + path)
            if mode is None:
                return None
            try:
                oid = blob_id(self.top + path, repo.site.object_format) if mode else None
            except OSError:
                return None
            entries[path] = None if oid is None else TreeEntry(mode, oid)
        if any(entry is not None and repo.loose(entry.oid) is None for entry in entries.values()):
            return None
        return edit_tree(repo, repo.tree_of(self.base), entries)

    def _make_readable(self, paths: Iterable[bytes]) -> None:
        for path in paths:
            full = self.top + path
            with contextlib.suppress(OSError):
                if not os.path.islink(full) and not os.access(full, os.R_OK):
                    os.chmod(full, os.lstat(full).st_mode | 0o400)


def _mode(path: bytes) -> int | None:
    """What git's mode for a path on disk is, 0 when there is none.

    None for what is neither file nor link, or cannot be looked at by its path, which is too long for one.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError:
        return None
    if stat.S_ISLNK(mode):
        return LINK
    if not stat.S_ISREG(mode):
        return None
    return EXECUTABLE if mode & stat.S_IXUSR else PLAIN
