"""Keeps what is borrowed from the person's repository alive: one ref per run, at the HEAD it began with."""

from __future__ import annotations

from baton.workspace.git import GitFailed
from baton.workspace.store import PrivateGit

PINS = "refs/baton/pin/"


def pin_head(repo: PrivateGit, run_id: str, head: str) -> str | None:
    """Pin `head` for a run that has no pin yet; returns the commit that is pinned.

    None when the person's repository cannot be written: then nothing may be borrowed from it.
    """
    pinned = pinned_commit(repo, run_id)
    if pinned is not None:
        return pinned
    try:
        repo.git.theirs(["update-ref", "--no-deref", PINS + run_id, head], cwd=repo.site.root)
    except GitFailed:
        return None
    return head


def pinned_commit(repo: PrivateGit, run_id: str) -> str | None:
    """The commit that is pinned for a run, None when there is no pin."""
    args = ["rev-parse", "--verify", "--quiet", f"{PINS}{run_id}^{{commit}}"]
    found = repo.git.theirs(args, cwd=repo.site.root, ok=(0, 1, 128))
    return found.stdout.decode().strip() if found.exit_code == 0 else None


def unpin(repo: PrivateGit, run_id: str) -> None:
    """Remove a run's pin; does nothing when there is none."""
    if repo.site.kind == "git" and pinned_commit(repo, run_id) is not None:
        repo.git.theirs(["update-ref", "--no-deref", "-d", PINS + run_id], cwd=repo.site.root)
