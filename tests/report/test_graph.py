"""The graph of tasks as it is drawn."""

from __future__ import annotations

from baton.report.graph import MAX_NODES, lay_out


def test_a_task_stands_to_the_right_of_all_that_it_depends_on() -> None:
    tasks = [("d", ("b", "c")), ("a", ()), ("b", ("a",)), ("c", ()), ("e", ("d", "a"))]
    graph = lay_out(tasks)
    assert graph is not None
    x = {node.task_id: node.x for node in graph.nodes}
    assert all(x[before] < x[task] for task, depends in tasks for before in depends)
    assert {(edge.before, edge.after) for edge in graph.edges} == {
        (before, task) for task, depends in tasks for before in depends
    }
    assert len({(node.x, node.y) for node in graph.nodes}) == len(tasks)


def test_nothing_is_drawn_without_dependencies_or_with_too_many_tasks() -> None:
    assert lay_out([("a", ()), ("b", ())]) is None
    many = [(f"t{number}", ("t0",) if number else ()) for number in range(MAX_NODES + 1)]
    assert lay_out(many) is None
    assert lay_out(many[:-1]) is not None


def test_a_circle_in_a_damaged_record_is_drawn_all_the_same() -> None:
    graph = lay_out([("a", ("b",)), ("b", ("a",)), ("c", ("missing", "a"))])
    assert graph is not None
    assert {node.task_id for node in graph.nodes} == {"a", "b", "c"}
