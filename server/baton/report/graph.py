"""The graph of a run's tasks, laid out from left to right: what depends on what. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_NODES = 120
"""More are not drawn: nobody could read them."""

WIDTH, HEIGHT = 190, 46
"""Of a node, in CSS pixels."""
GAP_X, GAP_Y = 56, 14
MARGIN = 4


@dataclass(frozen=True)
class Node:
    task_id: str
    x: int
    y: int


@dataclass(frozen=True)
class Edge:
    before: str
    after: str
    path: str
    """For SVG."""


@dataclass(frozen=True)
class Graph:
    nodes: Sequence[Node]
    edges: Sequence[Edge]
    width: int
    height: int


def lay_out(tasks: Sequence[tuple[str, Sequence[str]]]) -> Graph | None:
    """The graph of tasks, given in an order with what each depends on.

    None when no task depends on another, or when there are more than `MAX_NODES`.
    """
    names = {task_id for task_id, _ in tasks}
    depends = {task_id: [name for name in before if name in names] for task_id, before in tasks}
    if len(tasks) > MAX_NODES or not any(depends.values()):
        return None
    columns = _columns(depends)
    placed = {
        task_id: Node(task_id, MARGIN + column * (WIDTH + GAP_X), MARGIN + row * (HEIGHT + GAP_Y))
        for column, ids in enumerate(columns)
        for row, task_id in enumerate(ids)
    }
    edges = [
        Edge(name, task_id, _curve(placed[name], placed[task_id]))
        for task_id, before in depends.items()
        for name in before
    ]
    return Graph(
        nodes=list(placed.values()),
        edges=edges,
        width=2 * MARGIN + len(columns) * (WIDTH + GAP_X) - GAP_X,
        height=2 * MARGIN + max(map(len, columns)) * (HEIGHT + GAP_Y) - GAP_Y,
    )


def _columns(depends: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Task ids by how many have to go before them; in a column near to what they depend on."""
    depth: dict[str, int] = {}
    left = dict(depends)
    while left:
        ready = [task_id for task_id, before in left.items() if all(name in depth for name in before)]
        # Admission refuses circles; a damaged record must not keep the page from being shown.
        for task_id in ready or list(left):
            depth[task_id] = max((depth.get(name, 0) + 1 for name in depends[task_id]), default=0)
            del left[task_id]
    columns: list[list[str]] = [[] for _ in range(max(depth.values()) + 1)]
    for task_id in depends:
        columns[depth[task_id]].append(task_id)
    row: dict[str, float] = {}
    for ids in columns:
        near = {
            task_id: sum(row.get(name, 0.0) for name in depends[task_id]) / len(depends[task_id])
            for task_id in ids
            if depends[task_id]
        }
        ids.sort(key=lambda task_id: near.get(task_id, 0.0))
        row |= {task_id: float(number) for number, task_id in enumerate(ids)}
    return [ids for ids in columns if ids]


def _curve(before: Node, after: Node) -> str:
    x1, y1 = before.x + WIDTH, before.y + HEIGHT // 2
    x2, y2 = after.x, after.y + HEIGHT // 2
    bend = max(GAP_X // 2, (x2 - x1) // 2)
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
