"""Warm worktrees: what is known of one without looking at it, its commit and what was written to since.

A worktree that was brought to a commit in full gets a watcher. While that can tell, the next user's commit
and the next capture cost as much as what was changed, and not as much as there is. Known to this process
alone: another one, or one that comes after a crash, looks at everything first. So does this one where
another used the worktree meanwhile: each use leaves a mark of its own in it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton.contract.tree import TreeChange
from baton.workspace.checked_out import as_checked_out
from baton.workspace.checkout import advance, check_out
from baton.workspace.create import MOUNT_POINTS
from baton.workspace.git import GitFailed
from baton.workspace.loose import write_head
from baton.workspace.mount_points import make_mount_points, take_mount_points
from baton.workspace.sparse import absent_paths
from baton.workspace.store import PrivateGit
from baton.workspace.tree_paths import TreePaths, folders_of, tree_paths
from baton.workspace.uses import last_use, mark_use
from baton.workspace.watcher import Watcher, most_folders
from baton.workspace.worktree import (
    Worktree,
    drop_links,
    intact_links,
    recorded_links,
    remove_tree,
    sweep_slot,
)

MOST = 8
"""Worktrees that are watched at once: each takes one of the system's instances."""

MOST_TOUCHED = 500
"""Paths that are told apart; after more, everything is looked at."""

MOST_BYTES = 1 << 16
"""Of these paths together, which become arguments of git commands."""

_RESULT = "index.result"

_Signature = tuple[str, int, int, int]


@dataclass
class _Warm:
    watcher: Watcher
    head: str
    """The commit of the worktree's index, and of all files that are not in `odd`."""
    signature: _Signature
    """Of that index."""
    use: str
    """The mark of the use that this is known from, or of a later one by this process."""
    odd: set[bytes] = field(default_factory=set)
    """Paths that may differ from `head`."""
    result: str | None = None
    """The commit that all files are at, while it is another than `head`: the captured one."""
    awaited: bool = False
    """Whether nobody has asked for that commit yet."""
    one_at_a_time: bool = False
    """Whether its user runs no two sandboxes there together."""


_WARM: dict[Path, _Warm] = {}
_LOCK = threading.Lock()


def enter(worktree: Worktree) -> None:
    """Begin a use of a worktree whose lock is held, before anything in it is touched.

    What other processes know of it is void from here on, and so is what this one knows if another has used
    it since. Raises `OSError`.
    """
    with _LOCK:
        warm = _WARM.get(worktree.admin)
    if warm is not None and warm.use != last_use(worktree):
        forget(worktree)
        warm = None
    use = mark_use(worktree)
    if warm is not None:
        warm.use = use


def take_up(repo: PrivateGit, worktree: Worktree, commit: str) -> None:
    """Have a worktree watched that was just brought to `commit` in full, in a use that goes on."""
    forget(worktree)
    with _LOCK:
        room = len(_WARM) < MOST
    paths = _plain_paths(repo, commit) if room else None
    use = mark_use(worktree)
    watcher = None if paths is None else Watcher.of(worktree.root, _folders(worktree, paths))
    if watcher is not None:
        _put(worktree, _Warm(watcher, commit, _signature(worktree), use))


def resume(repo: PrivateGit, worktree: Worktree, commit: str) -> bool:
    """Bring a worktree to `commit` by what was written to since it was at one, everything else in it deleted.

    False when that cannot be told: it then has to be brought there in full. Links to dependency folders are
    taken away, as by `reset_worktree`.
    """
    warm = _take(worktree)
    if warm is None:
        return False
    try:
        if _bring(repo, worktree, warm, commit):
            _put(worktree, warm)
            return True
    except (GitFailed, OSError):  # what is there is not what was known of it
        pass
    finally:
        if _WARM.get(worktree.admin) is not warm:
            warm.watcher.close()
    return False


def settle(worktree: Worktree, *, one_at_a_time: bool = False, sandboxed: Collection[Path] = ()) -> None:
    """Say that Baton's own preparations are over: what is written from here on is somebody else's.

    `one_at_a_time`: who runs no two sandboxes there together. The folders `sandboxed`, which sandboxes will
    let be written, get their mount points first, so that no sandbox makes any; a capture takes them away.
    """
    warm = _WARM.get(worktree.admin)
    if warm is not None:
        warm.one_at_a_time = one_at_a_time
        try:
            made = _make_mount_points(worktree, sandboxed) if sandboxed else frozenset()
        except OSError:  # a folder is not what it was taken for; what was made is on record
            forget(worktree)
            return
        _settle(worktree, warm, made)


def touched(
    worktree: Worktree, sandboxed: Collection[Path], taken: Collection[bytes] | None = ()
) -> frozenset[bytes] | None:
    """Paths below the root outside which the worktree is what its index says; None when nobody can tell.

    `sandboxed` are the folders that a sandbox let be written, and nothing else; `taken` are mount points that
    were taken away just now, None when that was not to be done.
    """
    warm = _WARM.get(worktree.admin)
    if warm is None:
        return None
    told = None if taken is None else warm.watcher.told(_below(worktree, sandboxed), taken)
    if told is None or warm.signature != _signature(worktree):
        forget(worktree)
        return None
    warm.odd |= told
    few = len(warm.odd) <= MOST_TOUCHED and sum(map(len, warm.odd)) <= MOST_BYTES
    return frozenset(warm.odd) if few else None


def keep_result(
    repo: PrivateGit, worktree: Worktree, commit: str, index: Path, changed: Sequence[TreeChange]
) -> None:
    """Let the worktree be handed out as a clean checkout of the `commit` that was just captured from it.

    Only for a capture that took in all that the worktree holds; `index` is that of the commit and is taken
    over. What was touched is made as a checkout would have made it, or nothing comes of this.
    """
    warm = _WARM.get(worktree.admin)
    if warm is None:
        return
    if not tree_paths(repo, warm.head).folders <= tree_paths(repo, commit).folders:
        return  # some are empty now that a checkout would not have
    if recorded_links(worktree).keys() != intact_links(worktree):
        return  # what came in the place of one is part of the commit
    modes = {change.path: change.new_mode for change in changed}
    drop_links(worktree)
    if not all(as_checked_out(worktree.root, path, modes) for path in sorted(warm.odd, reverse=True)):
        return
    os.replace(index, worktree.admin / _RESULT)
    expected = frozenset(warm.odd)
    _settle(worktree, warm)
    top = os.fsencode(worktree.root) + b"/"
    if not any(os.path.lexists(top + path) for path in warm.odd - expected):  # by whom?
        warm.result, warm.awaited = commit, True


def index_at(worktree: Worktree, commit: str) -> Path:
    """The index of a worktree that holds `commit`."""
    warm = _WARM.get(worktree.admin)
    has_result = warm is not None and warm.result == commit
    return worktree.admin / _RESULT if has_result else worktree.index


def forget(worktree: Worktree) -> None:
    """Know nothing of a worktree any more."""
    warm = _take(worktree)
    if warm is not None:
        warm.watcher.close()


def keep_only(repo: PrivateGit) -> None:
    """Know nothing of worktrees of other repositories any more."""
    folder = repo.path / "worktrees"
    with _LOCK:
        others = [_WARM.pop(admin) for admin in list(_WARM) if admin.parent != folder]
    for warm in others:
        warm.watcher.close()


def room_at_rest(repo: PrivateGit, commit: str) -> int:
    """Worktrees at `commit` that a process may watch that has no use for them yet.

    Together they take no more of the system's watches than one worktree in use may.
    """
    paths = _plain_paths(repo, commit)
    return 0 if paths is None else most_folders() // (len(paths.folders) + 2)


def best_for(repo: PrivateGit, commit: str) -> list[str]:
    """Names of worktrees that are brought to `commit` with least to do, those at it first.

    Last come those at a captured commit that somebody will want to check.
    """
    folder = repo.path / "worktrees"
    with _LOCK:
        known = [(admin.name, one) for admin, one in _WARM.items() if admin.parent == folder]
    ranked = sorted(known, key=lambda pair: (pair[1].result != commit, pair[1].awaited))
    return [name for name, _ in ranked]


# -- bringing it there ----------------------------------------------------------------------------


def _bring(repo: PrivateGit, worktree: Worktree, warm: _Warm, commit: str) -> bool:
    taken = take_mount_points(worktree.root, worktree.admin)
    if taken is None:
        return False
    told = warm.watcher.told((b"",), taken, one_at_a_time=warm.one_at_a_time)
    warm.one_at_a_time = False
    if told is None or warm.signature != _signature(worktree) or _plain_paths(repo, commit) is None:
        return False
    if warm.result != commit or told:
        warm.result = None
    warm.awaited = False
    warm.odd |= told
    if len(warm.odd) > MOST_TOUCHED:
        return False
    drop_links(worktree)
    sweep_slot(worktree)
    if warm.result is None:
        _restore(repo, worktree, warm)
        if commit != warm.head:
            if not advance(repo, worktree, warm.head, commit):
                _git(repo, worktree, ["read-tree", "--reset", "-u", warm.head, commit])
            write_head(worktree.admin, commit)
            warm.head, warm.signature = commit, _signature(worktree)
    worktree.cwd.mkdir(parents=True, exist_ok=True)
    settled = warm.watcher.settle()
    if settled is None:
        return False
    if warm.result is None:
        warm.odd.clear()
    return True


def _restore(repo: PrivateGit, worktree: Worktree, warm: _Warm) -> None:
    paths = tree_paths(repo, warm.head)
    top = os.fsencode(worktree.root) + b"/"
    for path in sorted(warm.odd):
        if path not in paths.folders:
            remove_tree(Path(os.fsdecode(top + path)))
        elif os.path.islink(top + path) or not os.path.isdir(top + path):
            raise NotADirectoryError(path)
    files = sorted(paths.files & warm.odd)
    if files and not check_out(repo, worktree.root, warm.head, files):
        _git(repo, worktree, ["checkout-index", "--force", "-q", "-z", "--stdin"], b"\0".join(files) + b"\0")


# -- keeping it -----------------------------------------------------------------------------------


def _settle(worktree: Worktree, warm: _Warm, made: Collection[bytes] = ()) -> None:
    done = warm.watcher.settle()
    if done is None:
        forget(worktree)
    else:
        warm.odd |= done.difference(made)


def _make_mount_points(worktree: Worktree, sandboxed: Collection[Path]) -> frozenset[bytes]:
    if worktree.slot in sandboxed:
        for name in MOUNT_POINTS:  # swept with all else that lies there
            (worktree.slot / name).mkdir(exist_ok=True)
    folders = {folder.rstrip(b"/") for folder in _below(worktree, sandboxed)}
    return make_mount_points(worktree.root, worktree.admin, folders)


def _take(worktree: Worktree) -> _Warm | None:
    with _LOCK:
        return _WARM.pop(worktree.admin, None)


def _put(worktree: Worktree, warm: _Warm) -> None:
    with _LOCK:
        _WARM[worktree.admin] = warm


def _signature(worktree: Worktree) -> _Signature:
    found = os.stat(worktree.index)
    return worktree.head, found.st_ino, found.st_size, found.st_mtime_ns


def _plain_paths(repo: PrivateGit, commit: str) -> TreePaths | None:
    """The paths of a commit, None when there is more to it than its files: submodules, a sparse checkout."""
    if absent_paths(repo, commit):
        return None
    paths = tree_paths(repo, commit)
    return None if paths.submodules else paths


def _folders(worktree: Worktree, paths: TreePaths) -> frozenset[bytes]:
    """All that there are: the workspace has its folder also where nothing in it is tracked."""
    cwd = os.fsencode(worktree.cwd.relative_to(worktree.root))
    return paths.folders | (frozenset() if cwd == b"." else folders_of([cwd + b"/."]))


def _below(worktree: Worktree, folders: Iterable[Path]) -> set[bytes]:
    found = set()
    for folder in folders:
        with contextlib.suppress(ValueError):
            inside = os.fsencode(folder.relative_to(worktree.root))
            found.add(b"" if inside == b"." else inside + b"/")
    return found


def _git(repo: PrivateGit, worktree: Worktree, args: list[str], input: bytes | None = None) -> None:
    repo.run(args, git_dir=worktree.admin, work_tree=worktree.root, index=worktree.index, input=input)
