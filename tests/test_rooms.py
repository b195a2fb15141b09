"""The house as it is laid out: a room imports only from rooms before it, and modules need no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "server"

ROOMS = (
    "contract",
    "policy",
    "ledger",
    "process",
    "workspace",
    "codex",
    "verify",
    "engine",
    "simulate",
    "pool",
    "consult",
    "review",
    "workflow",
    "install",
    "report",
    "tools",
    "cli",
)


def _modules() -> dict[str, Path]:
    found = {}
    for file in (SOURCE / "baton").rglob("*.py"):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


MODULES = _modules()


def _imports(file: Path) -> Iterator[str]:
    """Modules of ours that a file imports anywhere, also inside functions and for type checking alone."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else node.module


IMPORTS = {name: set(_imports(file)) for name, file in MODULES.items()}


def _room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_a_room_imports_only_from_rooms_before_it() -> None:
    assert {_room(module) for module in MODULES} - {"", "runtime"} <= set(ROOMS)
    upwards = [
        f"{module} -> {used}"
        for module, names in IMPORTS.items()
        for used in names
        if _room(module) in ROOMS and _room(used) in ROOMS
        if ROOMS.index(_room(used)) > ROOMS.index(_room(module))
    ]
    assert upwards == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    finished: set[str] = set()

    def circle(module: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
        if module in path:
            return (*path[path.index(module) :], module)
        if module not in finished:
            for used in sorted(IMPORTS[module]):
                found = circle(used, (*path, module))
                if found:
                    return found
            finished.add(module)
        return None

    circles = [found for module in sorted(MODULES) if (found := circle(module, ()))]
    assert circles == []
