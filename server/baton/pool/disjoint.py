"""Which writers of one folder could change the same file while neither waits for the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from baton.contract.tree import show_path
from baton.engine.overlaps import list_files
from baton.pool.dependencies import Graph, waits_for
from baton.pool.jobs import Job
from baton.workspace.git import Git
from baton.workspace.locate import Site
from baton.workspace.overlap import disjoint, overlap
from baton.workspace.scope import Scope


def undeclared(writers: Sequence[Job]) -> Iterator[Job]:
    """Writers that do not say what they own, so that none may run beside them."""
    return (job for job in writers if not job.allowed_files and job.ownership_scope is None)


def overlapping(
    writers: Sequence[Job], scopes: Mapping[str, Scope], graph: Graph, sites: Mapping[Path, Site], git: Git
) -> Iterator[tuple[Job, Job, str]]:
    """Pairs that may change the same file at the same time, with a path they share; decided as for batches.

    Writers of folders inside each other are not among them: those never run at once.
    """
    by_folder: dict[Path, list[Job]] = defaultdict(list)
    for job in writers:
        by_folder[job.workdir].append(job)
    for folder, jobs in by_folder.items():
        pairs = [
            (one, other)
            for one, other in _neighbours(jobs, scopes)
            if not (waits_for(graph, one.id, other.id) or waits_for(graph, other.id, one.id))
        ]
        # Most scopes are disjoint whatever exists; listing the files is for those that are not.
        pairs = [(one, other) for one, other in pairs if not disjoint(scopes[one.id], scopes[other.id])]
        files = list_files(sites[folder], git) if pairs else []
        for one, other in pairs:
            sample = overlap(scopes[one.id], scopes[other.id], files)
            if sample is not None:
                yield one, other, show_path(sample)


def _neighbours(jobs: Sequence[Job], scopes: Mapping[str, Scope]) -> Iterator[tuple[Job, Job]]:
    """Pairs of which one names a path on the way to what the other names; all others are disjoint.

    Keeps thousands of writers with folders of their own from being compared two by two.
    """
    below: dict[bytes, dict[str, Job]] = defaultdict(dict)
    at: dict[bytes, dict[str, Job]] = defaultdict(dict)
    for job in jobs:
        for pattern in scopes[job.id].allowed:
            prefix = pattern.literal_prefix
            at[prefix][job.id] = job
            while prefix:
                prefix = prefix.rpartition(b"/")[0]
                below[prefix][job.id] = job
    seen: set[tuple[str, str]] = set()
    for prefix, named in at.items():
        for one in named.values():
            for other in (*named.values(), *below[prefix].values()):
                if one.id == other.id:
                    continue
                first, second = sorted((one, other), key=lambda job: job.line)
                if (first.id, second.id) not in seen:
                    seen.add((first.id, second.id))
                    yield first, second
