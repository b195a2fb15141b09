"""Which symbolic links of one tree lead out of the workspace and did not so in another."""

from __future__ import annotations

from collections.abc import Sequence

from baton.contract.tree import TreeChange
from baton.workspace.links import leaves
from baton.workspace.listing import LINK
from baton.workspace.store import PrivateGit


def leaving_links(repo: PrivateGit, old: str, new: str, changes: Sequence[TreeChange]) -> tuple[bytes, ...]:
    """Links that leave and did not so before; also untouched ones that now go through another link.

    `changes` is what differs between the two; paths are relative to the workspace.
    """
    if not any(LINK in (change.old_mode, change.new_mode) for change in changes):
        return ()
    before, after = _links_of(repo, old), _links_of(repo, new)
    prefix = repo.site.prefix
    bad = []
    for path in after:
        if not path.startswith(prefix) or not leaves(path, after, prefix):
            continue
        if before.get(path) == after[path] and leaves(path, before, prefix):
            continue
        bad.append(path.removeprefix(prefix))
    return tuple(sorted(bad))


def _links_of(repo: PrivateGit, tree: str) -> dict[bytes, bytes]:
    listed = repo.run(["ls-tree", "-r", "-z", tree]).stdout
    found = []
    for line in listed.split(b"\0"):
        if line.startswith(b"120000 "):
            facts, path = line.split(b"\t", 1)
            found.append((path, facts.split(b" ")[2]))
    texts = repo.read_blobs([oid for _, oid in found])
    return {path: text for (path, _), text in zip(found, texts, strict=True) if text is not None}
