"""Patterns as automata over the bytes of a path: is there a path in all of these and in none of those?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from baton.workspace.glob import NAME_BYTES, ByteSet, Segment

Elements = Sequence[Segment | None]
"""As `Pattern.elements`: names in order, None for any number of names. Without a None at its end only the
path itself is meant, nothing below it."""

_SLASH = ord("/")
_DOT = ord(".")
_READABLE = b"abcdefghijklmnopqrstuvwxyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZ."


class TooLarge(Exception):
    """Raised when a search needs more states than it was given."""


class Automaton:
    """The union of some patterns, run as sets of states; transitions are remembered."""

    def __init__(self, patterns: Iterable[Elements]) -> None:
        self._graph = _Graph()
        self._known: dict[tuple[frozenset[int], int], frozenset[int]] = {}
        starts = [_add(self._graph, elements) for elements in patterns]
        self.start = self._graph.closure(starts)

    @property
    def sets(self) -> set[ByteSet]:
        """Every set of bytes that a transition tells apart."""
        return {allowed for moves in self._graph.moves for allowed, _ in moves}

    def step(self, states: frozenset[int], byte: int) -> frozenset[int]:
        """The states after one more byte; empty when no path that goes on from here is in the union."""
        found = self._known.get((states, byte))
        if found is None:
            moves = self._graph.moves
            found = self._graph.closure(
                target for state in states for allowed, target in moves[state] if allowed >> byte & 1
            )
            self._known[states, byte] = found
        return found

    def accepts_all_below(self, states: frozenset[int]) -> bool:
        """Whether every path that goes on from here is in the union."""
        return not states.isdisjoint(self._graph.whole)

    def accepts(self, states: frozenset[int]) -> bool:
        return not states.isdisjoint(self._graph.final)


def common_path(inside: Sequence[Automaton], outside: Automaton, limit: int) -> bytes | None:
    """A shortest path that every automaton in `inside` accepts and `outside` does not; None if there is none.

    Exact. Raises `TooLarge` after `limit` states.
    """
    alphabet = _alphabet([*inside, outside])
    first = (tuple(each.start for each in inside), outside.start, _NAME_START)
    seen = {first}
    queue = deque([(first, b"")])
    while queue:
        (states, refused, place), path = queue.popleft()
        for byte in alphabet:
            next_place = _well_formed(place, byte)
            if next_place is None:
                continue
            after = tuple(each.step(state, byte) for each, state in zip(inside, states, strict=True))
            if not all(after):
                continue
            node = (after, outside.step(refused, byte), next_place)
            if node in seen or outside.accepts_all_below(node[1]):
                continue
            longer = path + bytes([byte])
            if next_place == _NAME and not outside.accepts(node[1]) and _all_accept(inside, after):
                return longer
            if len(seen) >= limit:
                raise TooLarge
            seen.add(node)
            queue.append((node, longer))
    return None


def _all_accept(automata: Sequence[Automaton], states: Sequence[frozenset[int]]) -> bool:
    return all(each.accepts(state) for each, state in zip(automata, states, strict=True))


@dataclass
class _Graph:
    moves: list[list[tuple[ByteSet, int]]] = field(default_factory=list)
    jumps: list[list[int]] = field(default_factory=list)
    final: set[int] = field(default_factory=set)
    whole: set[int] = field(default_factory=set)
    """States inside a directory that is covered with everything below."""

    def state(self) -> int:
        self.moves.append([])
        self.jumps.append([])
        return len(self.moves) - 1

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        closed: set[int] = set()
        stack = list(states)
        while stack:
            state = stack.pop()
            if state not in closed:
                closed.add(state)
                stack.extend(self.jumps[state])
        return frozenset(closed)


def _add(graph: _Graph, elements: Elements) -> int:
    """Add one pattern; each element begins at a state of its own, the start of a name."""
    begins = [graph.state() for _ in elements]
    for element, begin, following in zip(elements, begins, [*begins[1:], None], strict=True):
        if element is None:
            inside = graph.state()
            graph.moves[begin].append((NAME_BYTES, inside))
            graph.moves[inside] += [(NAME_BYTES, inside), (1 << _SLASH, begin)]
            if following is None:
                graph.final.add(inside)
                graph.whole |= {begin, inside}
            else:
                graph.jumps[begin].append(following)
        else:
            end = _add_name(graph, element, begin)
            if following is not None:
                graph.moves[end].append((1 << _SLASH, following))
            if following is None or (following == begins[-1] and elements[-1] is None):
                graph.final.add(end)
    return begins[0]


def _add_name(graph: _Graph, segment: Segment, begin: int) -> int:
    here = begin
    for item in segment:
        after = graph.state()
        if item is None:
            graph.jumps[here].append(after)
            graph.moves[after].append((NAME_BYTES, after))
        else:
            graph.moves[here].append((item, after))
        here = after
    return here


_NAME_START, _ONE_DOT, _TWO_DOTS, _NAME = range(4)


def _well_formed(place: int, byte: int) -> int | None:
    """Where in a name the path is after `byte`; None when a name would be empty, `.` or `..`."""
    if byte == _SLASH:
        return _NAME_START if place == _NAME else None
    if byte == _DOT and place in (_NAME_START, _ONE_DOT):
        return place + 1
    return _NAME


def _alphabet(automata: Sequence[Automaton]) -> list[int]:
    """One byte for each class of bytes that no transition tells apart, readable ones where possible."""
    sets = sorted({allowed for each in automata for allowed in each.sets} | {1 << _SLASH, 1 << _DOT})
    chosen: dict[tuple[bool, ...], int] = {}
    for byte in _by_readability():
        chosen.setdefault(tuple(bool(allowed >> byte & 1) for allowed in sets), byte)
    return list(chosen.values())


def _by_readability() -> Iterator[int]:
    yield from _READABLE
    yield from (byte for byte in range(1, 256) if byte not in _READABLE)
