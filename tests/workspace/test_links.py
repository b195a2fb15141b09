"""Whether a link leaves the workspace is decided from the tree alone."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.workspace.links import leaves


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (b"l", b"file", False),
        (b"l", b".", False),
        (b"l", b"..", True),
        (b"a/l", b"..", False),
        (b"a/l", b"../..", True),
        (b"a/b/l", b"../../x/../y", False),
        (b"l", b"/etc/passwd", True),
        (b"l", b"x/../../y", True),
        (b"l", b"", False),
        (b"l", b"a//./b/", False),
        (b"l", b"\xff/..", False),
    ],
)
def test_a_link_alone(path, text, expected):
    assert leaves(path, {path: text}) is expected


def test_links_are_followed_through_the_tree():
    links = {
        b"deep/down": b"..",  # leads to the root
        b"trick": b"deep/down/../x",  # harmless as text, but the root's parent in truth
        b"fine": b"deep/down/x",
        b"out": b"/srv",
        b"through": b"out/x",
        b"loop": b"loop2",
        b"loop2": b"loop",
    }
    assert {path for path in links if leaves(path, links)} == {
        b"trick",
        b"out",
        b"through",
        b"loop",
        b"loop2",
    }


def test_a_subfolder_workspace_ends_at_its_own_top():
    prefix = b"pkg/a/"
    assert leaves(b"pkg/a/l", {b"pkg/a/l": b"../b/x"}, prefix)
    assert leaves(b"pkg/a/l", {b"pkg/a/l": b".."}, prefix)
    assert not leaves(b"pkg/a/l", {b"pkg/a/l": b"../a/x"}, prefix)
    assert not leaves(b"pkg/a/s/l", {b"pkg/a/s/l": b"../x"}, prefix)
    assert leaves(b"pkg/a/l", {b"pkg/a/l": b"../ab"}, prefix)


PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", ""]), max_size=6)


@given(folder=st.lists(st.sampled_from(["a", "b"]), max_size=3), text=PARTS)
def test_without_other_links_it_agrees_with_the_normalised_path(folder, text):
    path = "/".join([*folder, "link"])
    target = "/".join(text)
    if target.startswith("/"):
        expected = True
    else:
        # Every step counts: a path that climbs above the top and comes back has been outside.
        depth, lowest = len(folder), len(folder)
        for part in target.split("/"):
            depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
            lowest = min(lowest, depth)
        expected = lowest < 0
        if not expected:
            assert not posixpath.normpath("/".join([*folder, target]) or ".").startswith("..")
    assert leaves(path.encode(), {path.encode(): target.encode()}) is expected
