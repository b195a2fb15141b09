"""The events that the code writes are those of the contract; real ones are held against it in e2e."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.contract.events import EVENT_KINDS, event_fault

ENGINE = Path(__file__).parents[2] / "server" / "baton" / "engine"


def _written() -> Iterator[tuple[str, str]]:
    """Every kind that the engine's source names, with its place: literals, and `head.{…}` as `head.`."""
    for path in sorted(ENGINE.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            found: Iterator[str] = iter(())
            if isinstance(node, ast.Call):
                found = _of_call(node)
            elif path.name == "progress.py" and isinstance(node, ast.Return):
                found = _texts(node.value.elts[0]) if isinstance(node.value, ast.Tuple) else found
            yield from ((text, f"{path.name}:{getattr(node, 'lineno', 0)}") for text in found)


def _of_call(call: ast.Call) -> Iterator[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("event", "note") and call.args:
        yield from _texts(call.args[0])
    if name == "NewEvent":
        for keyword in call.keywords:
            if keyword.arg == "kind":
                yield from _texts(keyword.value)
    if name == "_record_merged":
        yield from _texts(call.args[-1])


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, ast.JoinedStr):
        head = node.values[0]
        assert isinstance(head, ast.Constant) and isinstance(head.value, str), ast.dump(node)
        yield head.value


def test_every_kind_that_is_written_is_documented_and_every_documented_one_is_written() -> None:
    known = {kind.name for kind in EVENT_KINDS}
    written: set[str] = set()
    for text, place in _written():
        found = {name for name in known if name == text or (text.endswith(".") and name.startswith(text))}
        assert found, f"{place}: {text}"
        written |= found
    assert written == known


def test_no_kind_is_listed_twice() -> None:
    names = [kind.name for kind in EVENT_KINDS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("kind", "data", "fault"),
    [
        ("run.nonsense", {}, "run.nonsense: no such kind"),
        ("run.running", {"more": 1}, "run.running: carries 'more', which is not documented"),
        ("check", {"command": "make"}, "check: lacks 'status'"),
        ("check", {"command": 1, "status": "passed"}, "check: 'command' is not string"),
        ("worker.patch", {"files": True}, "worker.patch: 'files' is not integer"),
        ("worker.command", {"command": "make", "exitCode": None}, None),
        ("run.interrupted", {}, None),
        ("run.kept", {"tasks": ["a", 1]}, "run.kept: 'tasks' is not array of strings"),
    ],
)
def test_a_departure_is_named(kind: str, data: dict[str, object], fault: str | None) -> None:
    assert event_fault(kind, data) == fault
