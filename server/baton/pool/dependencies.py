"""What jobs wait for: unknown names and circles, found for all jobs at once. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from baton.contract.nearest import nearest

Graph = Mapping[str, Sequence[str]]
"""For each job the jobs that it waits for."""


def unknown_names(graph: Graph, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each job that waits for what no row names, with a few words on it."""
    for job, needs in graph.items():
        for name in dict.fromkeys(needs):
            if name == job:
                yield job, "waits for itself"
            elif name not in known:
                hint = nearest(name, known) if len(known) <= 2000 else None
                yield job, f"no job {name!r} in this file" + (f"; did you mean {hint!r}?" if hint else "")


def circles(graph: Graph) -> Iterator[list[str]]:
    """Circles among the jobs, each once, from its first job on; names outside the graph are passed over."""
    left = _without_free(graph)
    while left:
        trail: dict[str, None] = {}
        name = next(iter(left))
        while name not in trail:
            trail[name] = None
            name = next(iter(left[name]))
        names = list(trail)
        circle = names[names.index(name) :]
        yield circle
        for name in circle:
            del left[name]
        left = _without_free({job: [one for one in needs if one in left] for job, needs in left.items()})


def waits_for(graph: Graph, job: str, other: str) -> bool:
    """Whether `job` starts only after `other` has ended."""
    seen = {job}
    ahead = [job]
    while ahead:
        for name in graph.get(ahead.pop(), ()):
            if name == other:
                return True
            if name not in seen:
                seen.add(name)
                ahead.append(name)
    return False


def _without_free(graph: Graph) -> dict[str, set[str]]:
    """The jobs that can never start, with those among them that each waits for."""
    left = {job: {name for name in needs if name in graph and name != job} for job, needs in graph.items()}
    waiting: dict[str, list[str]] = {}
    for job, needs in left.items():
        for name in needs:
            waiting.setdefault(name, []).append(job)
    free = [job for job, needs in left.items() if not needs]
    while free:
        done = free.pop()
        del left[done]
        for job in waiting.get(done, ()):
            left[job].discard(done)
            if not left[job]:
                free.append(job)
    return left
