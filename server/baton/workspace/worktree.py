"""Worktrees of the private repository: made, brought back to a commit for the next use, removed.

Git commands get the administrative folder and the work tree by name; what a worker wrote into the
worktree's `.git` is never read.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import InvalidInput, StateUnavailable
from baton.workspace.create import MOUNT_POINTS
from baton.workspace.git import GitFailed
from baton.workspace.loose import write_head
from baton.workspace.mount_points import take_mount_points
from baton.workspace.sparse import absent_paths
from baton.workspace.store import PrivateGit
from baton.workspace.tree_paths import TreePaths, tree_paths

SCRATCH = "scratch"
"""Its name in a worktree's slot."""

_LINKS = "baton-links"


@dataclass(frozen=True)
class Worktree:
    """A detached checkout of the whole repository."""

    name: str
    root: Path
    cwd: Path
    """The workspace inside it."""
    admin: Path
    """Its git directory, inside the private repository and out of a worker's reach."""

    @property
    def slot(self) -> Path:
        """The folder that holds this worktree and nothing else of ours: a sandbox can open it by itself."""
        return self.root.parent

    @property
    def scratch(self) -> Path:
        """Where whoever uses it may keep what goes with it, beside the checkout; swept by the next reset."""
        return self.slot / SCRATCH

    @property
    def head(self) -> str:
        """The commit it was last brought to."""
        return (self.admin / "HEAD").read_text().strip()

    @property
    def index(self) -> Path:
        return self.admin / "index"


def add_worktree(repo: PrivateGit, name: str, commit: str) -> Worktree:
    """Make a worktree that holds `commit`, or bring an existing one of that name to it.

    Registration is serialised between processes; the checkout itself is not.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name):
        raise InvalidInput(f"{name!r} cannot name a worktree; letters, digits, '-' and '_' can")
    worktree = _named(repo, name)
    with repo.lock("worktrees"):
        _sweep(repo.path.parent, {repo.path.name, *MOUNT_POINTS})
        used = _registered(worktree)
        if not used:
            _register(repo, worktree, commit)
    if used:
        try:
            reset_worktree(repo, worktree, commit)
            return worktree
        except (GitFailed, OSError):  # a damaged index, most likely: nothing in there is worth mending
            with repo.lock("worktrees"):
                _register(repo, worktree, commit)
    _restore_pointer(worktree)
    _read_tree(repo, worktree, commit)
    _write_files(repo, worktree)
    return worktree


def open_worktree(repo: PrivateGit, name: str) -> Worktree | None:
    """A worktree that was made before, None when there is none."""
    worktree = _named(repo, name)
    return worktree if _registered(worktree) else None


def list_worktrees(repo: PrivateGit) -> tuple[str, ...]:
    """Names of the worktrees that are registered."""
    folder = repo.path / "worktrees"
    return tuple(sorted(entry.name for entry in folder.iterdir())) if folder.is_dir() else ()


def reset_worktree(repo: PrivateGit, worktree: Worktree, commit: str) -> None:
    """Bring a worktree to `commit` and remove all else, ignored and nested content included.

    Links to dependency folders are taken away first, so nothing behind them can be touched; link again.
    """
    drop_links(worktree)
    take_mount_points(worktree.root, worktree.admin)
    sweep_slot(worktree)
    _restore_pointer(worktree)
    (worktree.admin / "index.lock").unlink(missing_ok=True)
    absent = absent_paths(repo, commit)
    if absent or absent_paths(repo, worktree.head):
        make_walkable(worktree.root)
        _read_tree(repo, worktree, commit)
        for path in absent:
            remove_tree(worktree.root / os.fsdecode(path))
        _clean(repo, worktree)
        _write_files(repo, worktree)
        return
    paths = tree_paths(repo, commit)
    if paths.submodules:
        make_walkable(worktree.root)
    else:
        _keep_only(worktree.root, paths)
    # One look at the files for both, where no flag of the index stands in the way.
    _run(repo, worktree, ["read-tree", "--reset", "-u", commit])
    write_head(worktree.admin, commit)
    if paths.submodules:
        _clean(repo, worktree)
    worktree.cwd.mkdir(parents=True, exist_ok=True)


def remove_worktree(repo: PrivateGit, worktree: Worktree) -> None:
    """Delete a worktree and its registration; does nothing when it is gone."""
    with repo.lock("worktrees"):
        _forget(worktree)


def record_links(worktree: Worktree, links: Mapping[bytes, bytes]) -> None:
    """Remember the folders that Baton brought in: path to the link's text, empty for a copy."""
    pairs = (path + b"\0" + text for path, text in links.items())
    (worktree.admin / _LINKS).write_bytes(b"\0".join(pairs))


def recorded_links(worktree: Worktree) -> dict[bytes, bytes]:
    """The folders that Baton brought in: path below the root, and the link's text (empty for a copy)."""
    try:
        data = (worktree.admin / _LINKS).read_bytes()
    except FileNotFoundError:
        return {}
    fields = data.split(b"\0")
    return dict(zip(fields[:-1:2], fields[1::2], strict=True))


def intact_links(worktree: Worktree) -> frozenset[bytes]:
    """Those of them that are still what Baton made."""
    top = os.fsencode(worktree.root) + b"/"
    return frozenset(
        path for path, text in recorded_links(worktree).items() if _link_text(top + path) == text
    )


def _link_text(path: bytes) -> bytes | None:
    """A link's text, empty for a folder, None for anything else."""
    if os.path.islink(path):
        return os.readlink(path)
    return b"" if os.path.isdir(path) else None


def pointer_text(worktree: Worktree) -> bytes:
    """What the worktree's `.git` file must say: it leads beside it, never into the private repository."""
    return b"gitdir: ../git\n"


def remove_tree(path: Path) -> None:
    """Delete whatever is at a path without following links; folders that forbid it are opened first."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    make_walkable(path)
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise StateUnavailable(f"cannot delete {path}: {error.strerror}") from None


def drop_links(worktree: Worktree) -> None:
    """Take away the folders that Baton brought in."""
    links = recorded_links(worktree)
    for link in links:
        remove_tree(worktree.root / os.fsdecode(link))
    if links:
        record_links(worktree, {})


def sweep_slot(worktree: Worktree) -> None:
    """Remove all that lies beside a worktree."""
    _sweep(worktree.slot, {worktree.root.name})


def _sweep(folder: Path, keep: Set[str]) -> None:
    """Remove what workers left in a folder that their sandbox opens for the sake of one entry.

    A repository that another process is just making has a name of its own, which starts with a dot.
    """
    made = tuple(f".{name}." for name in keep)
    with os.scandir(folder) as entries:
        found = [entry.name for entry in entries]
    for name in found:
        if name not in keep and not name.startswith(made):
            remove_tree(folder / name)


def make_walkable(folder: Path) -> None:
    """Let the owner read and change every folder below; remove pipes, sockets and devices.

    A worker may have left both: git cannot enter the first and does not clean the second.
    """
    pending = [os.fsencode(folder)]
    while pending:
        at = pending.pop()
        with contextlib.suppress(OSError):
            if os.lstat(at).st_mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(at, 0o700)
        with contextlib.suppress(OSError), os.scandir(at) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                    os.unlink(entry.path)


def _keep_only(root: Path, paths: TreePaths) -> None:
    """Delete what is at no path of a tree, folders that hold none included, and special files anywhere.

    What stays may still be something else than the tree has there. The worktree's own `.git` stays as well.
    """
    top = os.fsencode(root) + b"/"
    pending = [b""]
    while pending:
        folder = pending.pop()
        if os.lstat(top + folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(top + folder, 0o700)
        with os.scandir(top + folder) as entries:
            for entry in list(entries):
                path = folder + entry.name
                if path == b".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if path in paths.folders:
                        pending.append(path + b"/")
                    else:
                        remove_tree(Path(os.fsdecode(entry.path)))
                elif path not in paths.files or not (entry.is_symlink() or _is_usable(entry)):
                    os.unlink(entry.path)


def _is_usable(entry: os.DirEntry[bytes]) -> bool:
    """Whether it is a file with one name and such permissions as its owner has in a checkout.

    Git minds one bit of them, and no other name by which the file may still be written to.
    """
    facts = entry.stat(follow_symlinks=False)
    wanted = stat.S_IRUSR | stat.S_IWUSR
    has_them = facts.st_mode & (wanted | stat.S_ISUID | stat.S_ISGID) == wanted
    return stat.S_ISREG(facts.st_mode) and has_them and facts.st_nlink == 1


def _named(repo: PrivateGit, name: str) -> Worktree:
    root = repo.worktrees / name / name  # git names what it keeps of a worktree by the last part
    cwd = root / os.fsdecode(repo.site.prefix) if repo.site.prefix else root
    return Worktree(name=name, root=root, cwd=cwd, admin=repo.path / "worktrees" / name)


def _register(repo: PrivateGit, worktree: Worktree, commit: str) -> None:
    _forget(worktree)
    worktree.slot.mkdir(parents=True, exist_ok=True, mode=0o700)
    repo.run(["worktree", "add", "--force", "--detach", "--no-checkout", str(worktree.root), commit])


def _registered(worktree: Worktree) -> bool:
    try:
        at = (worktree.admin / "gitdir").read_bytes()
    except OSError:
        return False
    return at == _gitdir_text(worktree) and worktree.root.is_dir()


def _gitdir_text(worktree: Worktree) -> bytes:
    return os.fsencode(worktree.root / ".git") + b"\n"


def _forget(worktree: Worktree) -> None:
    remove_tree(worktree.slot)
    remove_tree(worktree.admin)


def _restore_pointer(worktree: Worktree) -> None:
    pointer = worktree.root / ".git"
    if pointer.is_symlink() or not pointer.is_file() or pointer.read_bytes() != pointer_text(worktree):
        remove_tree(pointer)
        pointer.write_bytes(pointer_text(worktree))


def _read_tree(repo: PrivateGit, worktree: Worktree, commit: str) -> None:
    # With the files at hand: git then marks those that may have changed unseen since the last index.
    _run(repo, worktree, ["read-tree", "--reset", commit])
    absent = absent_paths(repo, commit)
    before = absent_paths(repo, worktree.head)
    write_head(worktree.admin, commit)
    # The flag outlives a change of commit, so it has to be taken back as well.
    for flag, paths in (("--no-skip-worktree", before - absent), ("--skip-worktree", absent)):
        if paths:
            given = b"\0".join(sorted(paths)) + b"\0"
            _run(repo, worktree, ["update-index", "-z", flag, "--stdin"], given)


def _clean(repo: PrivateGit, worktree: Worktree) -> None:
    _run(repo, worktree, ["clean", "-ffdxq"])


def _write_files(repo: PrivateGit, worktree: Worktree) -> None:
    _run(repo, worktree, ["checkout-index", "--all", "--force", "--index", "-q"])
    worktree.cwd.mkdir(parents=True, exist_ok=True)


def _run(repo: PrivateGit, worktree: Worktree, args: list[str], input: bytes | None = None) -> None:
    repo.run(args, git_dir=worktree.admin, work_tree=worktree.root, index=worktree.index, input=input)
