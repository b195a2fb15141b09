"""Forgets the results of a run and gives back the space that nothing needs any more."""

from __future__ import annotations

from baton.workspace.pin import PINS, unpin
from baton.workspace.store import PrivateGit

GRACE = "2.hours.ago"
"""Younger objects stay: a capture that is being made has no ref yet."""


def forget_run(repo: PrivateGit, run_id: str) -> None:
    """Delete a run's refs and its pin; its objects go with the next `collect`."""
    for ref in repo.refs(f"refs/runs/{run_id}"):
        repo.delete_ref(ref)
    if repo.site.root.is_dir():
        unpin(repo, run_id)


def remove_stale_locks(repo: PrivateGit, run_id: str) -> None:
    """Remove lock files that a git command of a run left when it was killed; none of them may still run."""
    places = [repo.path / "refs" / "runs" / run_id]
    if repo.site.common_dir is not None:
        places.append(repo.site.common_dir / PINS / f"{run_id}.lock")
    for place in places:
        for stale in place.rglob("*.lock") if place.is_dir() else [place]:
            if stale.name.endswith(".lock"):
                stale.unlink(missing_ok=True)


def collect(repo: PrivateGit, *, expire: str = GRACE) -> None:
    """Delete objects in the store that no ref and no worktree reaches and that are older than `expire`.

    Objects in packs (copies of what only the person's index held) stay; they are few.
    """
    with repo.lock("snapshot"):
        # The stat cache names objects that no ref holds; the last snapshot may be one of them.
        for file in (repo.path / "indexes").iterdir():
            if file.is_file():
                file.unlink()
        repo.run(["prune", f"--expire={expire}"])
        for noted in (repo.path / "absent").iterdir():
            if repo.resolve(noted.name) is None:
                noted.unlink(missing_ok=True)
