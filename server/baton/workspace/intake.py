"""Says how much a snapshot may take in, and what of a workspace it leaves out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from baton.contract.errors import InvalidInput
from baton.contract.tree import show_path
from baton.workspace.listing import Listing
from baton.workspace.store import PrivateGit


def check_count(repo: PrivateGit, listing: Listing) -> None:
    """Refuse more new files than the limits allow, with a way out."""
    limits = repo.limits
    limit = limits.plain_folder_files if repo.site.kind == "plain" else limits.new_files
    if len(listing.untracked) > limit:
        raise too_many(repo, limit)


def too_many(repo: PrivateGit, limit: int) -> InvalidInput:
    """The refusal of a workspace with more than `limit` new files."""
    if repo.site.kind == "plain":
        return InvalidInput(
            f"{repo.site.root} is not a repository and holds more than {limit} files; "
            "choose a smaller folder, list what to leave out in .gitignore, or run git init and commit there"
        )
    return InvalidInput(f"{repo.site.root} holds more than {limit} untracked files; commit or ignore them")


def check_bytes(repo: PrivateGit, paths: Iterable[bytes]) -> None:
    """Refuse more new bytes than the limits allow, naming the largest file."""
    plain = repo.site.kind == "plain"
    limit = repo.limits.plain_folder_bytes if plain else repo.limits.new_bytes
    top = os.fsencode(repo.site.root) + b"/"
    total = 0
    largest, at = 0, b""
    for path in paths:
        with contextlib.suppress(OSError):
            size = os.lstat(top + path).st_size
            total += size
            if size > largest:
                largest, at = size, path
    if total > limit:
        what = "files" if plain else "untracked or changed files"
        raise InvalidInput(
            f"{repo.site.root} holds {total // 2**20} MiB of {what}, more than {limit // 2**20} MiB; "
            f"ignore what is not needed (largest: {show_path(at)}, {largest // 2**20} MiB)"
        )


def describe(listing: Listing) -> tuple[str, ...]:
    """What a person should know of a snapshot of this listing, one line each."""
    notes = []
    for paths, what in (
        (listing.nested, "repositories inside the workspace are not part of the snapshot"),
        (listing.submodules, "submodules are recorded as pointers only"),
        (listing.absent, "paths outside the sparse checkout are kept as committed and not checked out"),
    ):
        shown = [show_path(path) for path in sorted(paths)]
        if shown:
            more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
            notes.append(f"{what}: {', '.join(shown[:5])}{more}")
    return tuple(notes)
