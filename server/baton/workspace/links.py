"""Decides, from a tree alone, whether a symbolic link leads out of the workspace."""

from __future__ import annotations

from collections.abc import Mapping

DEPTH = 40
"""Links that are followed before a chain counts as leaving; where the system itself gives up."""


def leaves(path: bytes, links: Mapping[bytes, bytes], prefix: bytes = b"") -> bool:
    """Whether the link at `path` leads, itself or through other links of the tree, out of `prefix`.

    `links` holds every link of the tree with its text; paths are relative to the tree's root, `prefix` is
    empty or ends in a slash. An absolute target always leaves. Pure: no file is looked at, so a target
    that does not exist is judged as well.
    """
    inside = prefix.rstrip(b"/").split(b"/") if prefix else []
    pending = path.split(b"/")[::-1]
    at: list[bytes] = []
    followed = 0
    while pending:
        part = pending.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not at:
                return True
            at.pop()
            continue
        at.append(part)
        text = links.get(b"/".join(at))
        if text is None:
            continue
        followed += 1
        if followed > DEPTH or text.startswith(b"/"):
            return True
        at.pop()
        pending += text.split(b"/")[::-1]
    return at[: len(inside)] != inside
