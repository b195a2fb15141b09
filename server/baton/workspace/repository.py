"""One workspace's private repository: the door to snapshots, worktrees, captures, merges and results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from baton.contract.tree import Capture, Merge, Snapshot, TreeChange
from baton.ledger.state import StateFolder
from baton.workspace import capture, changes, collect, dependencies, merge, pin, snapshot, sparse, worktree
from baton.workspace.create import create
from baton.workspace.git import Git
from baton.workspace.limits import Limits
from baton.workspace.locate import Site
from baton.workspace.store import PrivateGit
from baton.workspace.submodules import submodule_paths
from baton.workspace.worktree import Worktree


@dataclass(frozen=True)
class PrivateRepository(PrivateGit):
    """A bare repository in the state folder that holds a workspace's snapshots and results as bytes on disk.

    In the person's repository only a pin per run is ever written. All methods block; all are safe to call
    from several threads and processes, one at a time per worktree.
    """

    @classmethod
    def open(
        cls, state: StateFolder, site: Site, limits: Limits | None = None, git: Git | None = None
    ) -> PrivateRepository:
        """Open the workspace's repository, made when absent.

        Raises `Unsupported` for a git that is too old, `StateUnavailable` when it cannot be made.
        """
        git = git or Git.find()
        path = state.repos / site.key / "git"
        create(git, site, path)
        return cls(git=git, site=site, path=path, worktrees=state.worktrees, limits=limits or Limits())

    # -- the person's state -----------------------------------------------------------------------

    def snapshot(self, ref: str, run_id: str | None = None) -> Snapshot:
        """See `take_snapshot`: with `run_id` the person's HEAD is pinned before anything is borrowed."""
        return snapshot.take_snapshot(self, ref, run_id)

    def pin(self, run_id: str, taken: Snapshot) -> bool:
        """Pin a snapshot's HEAD for a run that has no pin yet; False when there is nothing to pin or no way.

        `snapshot` with a run id does it before it borrows anything, and copies everything where it cannot.
        """
        return taken.head is not None and pin.pin_head(self, run_id, taken.head) is not None

    def unpin(self, run_id: str) -> None:
        """Remove a run's pin from the person's repository."""
        pin.unpin(self, run_id)

    def absent(self, commit: str) -> frozenset[bytes]:
        """Paths of a commit that are not on disk because the person's checkout is sparse."""
        return sparse.absent_paths(self, commit)

    def submodules(self, commit: str) -> tuple[bytes, ...]:
        """Submodules of a commit, relative to the repository's root."""
        return submodule_paths(self, commit)

    # -- worktrees --------------------------------------------------------------------------------

    def add_worktree(self, name: str, commit: str) -> Worktree:
        """Make a worktree, or bring the one of that name to `commit`."""
        return worktree.add_worktree(self, name, commit)

    def open_worktree(self, name: str) -> Worktree | None:
        """A worktree made earlier, None when there is none."""
        return worktree.open_worktree(self, name)

    def list_worktrees(self) -> tuple[str, ...]:
        """Names of all worktrees."""
        return worktree.list_worktrees(self)

    def reset_worktree(self, tree: Worktree, commit: str) -> None:
        """Bring a worktree to `commit`, everything else in it deleted, links included."""
        worktree.reset_worktree(self, tree, commit)

    def remove_worktree(self, tree: Worktree) -> None:
        """Delete a worktree and its registration."""
        worktree.remove_worktree(self, tree)

    def link_dependencies(
        self, tree: Worktree, folders: Sequence[str], mode: Literal["link", "copy", "none"]
    ) -> tuple[Path, ...]:
        """Link or copy the person's dependency folders in; returns what was made."""
        return dependencies.link_dependencies(self, tree, folders, mode)

    def link_submodules(self, tree: Worktree, paths: Sequence[bytes]) -> tuple[Path, ...]:
        """Let these submodules of the worktree lead to the person's checkouts."""
        return dependencies.link_submodules(self, tree, paths)

    # -- results ----------------------------------------------------------------------------------

    def capture(
        self,
        tree: Worktree,
        base: Snapshot | str,
        ref: str,
        aside: Path,
        sandboxed: Collection[Path] | None = None,
    ) -> Capture:
        """Record what the worktree holds; see `capture_worktree`."""
        commit = base if isinstance(base, str) else base.commit
        return capture.capture_worktree(self, tree, commit, ref, aside, sandboxed)

    def changes(self, old: str, new: str) -> tuple[TreeChange, ...]:
        """What differs between two trees or commits inside the workspace."""
        return changes.changes_between(self, old, new)

    def outside(self, old: str, new: str) -> tuple[bytes, ...]:
        """What differs outside the workspace, relative to the repository's root."""
        return changes.outside_between(self, old, new)

    def merge(self, base: str, ours: str, theirs: str, message: str, ref: str) -> Merge:
        """Carry what `theirs` changed since `base` over to `ours`."""
        return merge.merge_commits(self, base, ours, theirs, message, ref)

    def diff(self, old: str, new: str, paths: Sequence[bytes] = (), *, binary: bool = False) -> bytes:
        """A unified diff inside the workspace, bounded."""
        return changes.diff(self, old, new, paths, binary=binary)

    def read_file(self, commit: str, path: bytes) -> bytes | None:
        """The content of a regular file of the workspace in a commit; None for anything else."""
        listed = self.run(["ls-tree", "-z", "--full-tree", commit, "--", self.site.prefix + path]).stdout
        facts = listed.partition(b"\t")[0].split(b" ")
        if len(facts) != 3 or not facts[0].startswith(b"100"):
            return None
        return self.read_blobs([facts[2]])[0]

    # -- keeping house ----------------------------------------------------------------------------

    def forget_run(self, run_id: str) -> None:
        """Delete a run's refs and its pin."""
        collect.forget_run(self, run_id)

    def remove_stale_locks(self, run_id: str) -> None:
        """Remove what killed git commands of a run left locked."""
        collect.remove_stale_locks(self, run_id)

    def collect(self) -> None:
        """Give back the space of what no ref or worktree reaches any more."""
        collect.collect(self)
