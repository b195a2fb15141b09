"""Forgets the results of a run and gives back the space that nothing needs any more."""

from __future__ import annotations

from baton.workspace.pin import unpin
from baton.workspace.store import PrivateGit

GRACE = "2.hours.ago"
"""Younger objects stay: a capture that is being made has no ref yet."""


def forget_run(repo: PrivateGit, run_id: str) -> None:
    """Delete a run's refs and its pin; its objects go with the next `collect`."""
    for ref in repo.refs(f"refs/runs/{run_id}"):
        repo.delete_ref(ref)
    if repo.site.root.is_dir():
        unpin(repo, run_id)


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
