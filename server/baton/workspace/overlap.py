"""Whether two scopes could change the same file, now or later."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import product

from baton.workspace.automaton import Automaton, Elements, TooLarge, common_path
from baton.workspace.glob import Segment
from baton.workspace.names import parent
from baton.workspace.pattern import Pattern
from baton.workspace.scope import EXPLICIT_ONLY, NEVER_WRITABLE, Scope

MAX_STATES = 20_000
"""States of one search, far beyond what patterns people write need; beyond it the answer is "may overlap"."""


def disjoint(scope_a: Scope, scope_b: Scope) -> bool:
    """Whether no path at all can be in both scopes, whatever files and directories there are."""
    return not (scope_a.changes and scope_b.changes) or _example(scope_a, scope_b, frozenset()) is None


def overlap(scope_a: Scope, scope_b: Scope, tree_paths: Sequence[bytes] = ()) -> bytes | None:
    """A path that both scopes permit to change, or None when there is none.

    Exact for `tree_paths`, the files that exist, relative to the workspace. None is certain for every other
    path too, on one assumption: what ends in an extension and is no directory now (`*.py`) will not be made
    one. The path is a real one where there is one, else an example; when a search grows too large it is a
    mere guess.
    """
    # Most scopes are disjoint whatever exists, which is far cheaper to find out than to try every path.
    if disjoint(scope_a, scope_b):
        return None
    for path in tree_paths:
        if not any(pattern.matches(path) for pattern in scope_a.allowed):
            continue  # cheaper than to judge it, and most paths end here
        if scope_a.permits(path) is None and scope_b.permits(path) is None:
            return path
    folders = {parent(path) for path in tree_paths}
    allowed = {*scope_a.allowed, *scope_b.allowed}
    files = {each for each in allowed if each.looks_like_file and not any(map(each.matches, folders))}
    return _example(scope_a, scope_b, files)


def _example(scope_a: Scope, scope_b: Scope, files: AbstractSet[Pattern]) -> bytes | None:
    """A path in both scopes, None when there is none; nothing lies below what the patterns `files` name."""
    forbidden = [pattern.elements for pattern in (*scope_a.forbidden, *scope_b.forbidden)]
    automata = {
        pattern: Automaton([pattern.elements[:-1] if pattern in files else pattern.elements])
        for pattern in dict.fromkeys((*scope_a.allowed, *scope_b.allowed))
    }
    guess: bytes | None = None
    for one, other in product(scope_a.allowed, scope_b.allowed):
        pair = (automata[one], automata[other])
        try:
            found = common_path(pair, Automaton([]), MAX_STATES)
            if found is not None and not (scope_a.permits(found) is None and scope_b.permits(found) is None):
                # What is forbidden makes the search far larger: only where the nearest path is.
                outside = Automaton([*forbidden, *_unnamed(one, other)])
                found = common_path(pair, outside, MAX_STATES)
        except TooLarge:
            guess = guess or max(one.literal_prefix, other.literal_prefix, key=len) or b"any file"
        else:
            if found is not None:
                return found
    return guess


def _unnamed(one: Pattern, other: Pattern) -> list[Elements]:
    """What no scope covers, and what only a pattern that spells it out does."""
    spelled = one.literal_names & other.literal_names
    git: Segment = tuple((1 << ord(low)) | (1 << ord(low.upper())) for low in NEVER_WRITABLE.decode())
    special: list[Segment] = [
        tuple(1 << byte for byte in name) for name in EXPLICIT_ONLY if name not in spelled
    ]
    return [(None, segment, None) for segment in (git, *special)]
