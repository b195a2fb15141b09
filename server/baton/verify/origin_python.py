"""Where a Python environment takes a tree's modules from: asked of the very interpreter that a check uses."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from baton.process.child import Finished
from baton.verify.place import CheckPlace
from baton.verify.program import Program

ASK = """
import importlib.util, json, os, sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
found = {}
for name in sys.argv[1:]:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        spec = None
    places = []
    if spec is not None:
        if spec.origin and spec.origin not in ("namespace", "frozen", "built-in"):
            places.append(spec.origin)
        places += list(spec.submodule_search_locations or [])
    found[name] = [os.path.realpath(place) for place in places]
print("\\n" + json.dumps({"found": found, "path": sys.path}))
"""
"""Run by the interpreter in question. The current folder is left out: what counts is what is installed."""

_RUNNERS = frozenset(
    (
        "make",
        "just",
        "task",
        "uv",
        "poetry",
        "pdm",
        "hatch",
        "tox",
        "nox",
        "pipenv",
        "rye",
        "sh",
        "bash",
        "env",
    )
)
"""Programs that may start any Python: the one on PATH is asked."""

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")

_NOT_A_PRODUCT = frozenset(
    ("tests", "test", "docs", "doc", "examples", "scripts", "build", "dist", "tools", "benchmarks")
)
"""Folders beside a flat package that nobody installs under these names."""

_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")

_MAX_PROJECTS = 50
_MAX_DEPTH = 3


@dataclass(frozen=True)
class TreeModule:
    """A top-level module of the tree, and the folder from which it is to be imported."""

    name: str
    root: Path


@dataclass(frozen=True)
class Answer:
    """What an interpreter said."""

    found: Mapping[str, tuple[Path, ...]]
    path: tuple[Path, ...]

    def on_tree(self, module: TreeModule, place: CheckPlace) -> bool:
        """Whether the module comes from the checkout and from nowhere else."""
        places = self.found.get(module.name, ())
        return bool(places) and all(each.is_relative_to(place.worktree) for each in places)


def python_of(program: Program, path: str) -> Path | None:
    """The interpreter that a command ends up in: itself, its script's, or the one on PATH for runners."""
    for candidate in (program.path, program.interpreter):
        if candidate is not None and _PYTHON.fullmatch(candidate.name):
            return candidate
    names = {program.path.name, program.interpreter.name if program.interpreter else ""}
    if names & _RUNNERS:
        hit = shutil.which("python", path=path) or shutil.which("python3", path=path)
        return Path(hit) if hit else None
    return None


def tree_modules(cwd: Path, worktree: Path) -> tuple[TreeModule, ...]:
    """The top-level modules of the Python projects in and above `cwd`; none when there is no project."""
    modules: dict[str, TreeModule] = {}
    for project in _projects(cwd, worktree):
        source = project / "src"
        root = source if source.is_dir() else project
        for name in _top_level(root, flat=root is project):
            modules.setdefault(name, TreeModule(name, root))
    return tuple(modules.values())


def ask_arguments(modules: Iterable[TreeModule]) -> tuple[str, ...]:
    """Arguments for `ASK`."""
    return tuple(module.name for module in modules)


def read_answer(done: Finished) -> Answer | None:
    """The answer of one run of `ASK`; None when the interpreter failed or said something else."""
    if done.exit_code != 0:
        return None
    try:
        data = json.loads(done.output.decode("utf-8", "surrogateescape").strip().splitlines()[-1])
        found = {name: tuple(map(Path, places)) for name, places in data["found"].items()}
        return Answer(found, tuple(map(Path, data["path"])))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def redirect(answer: Answer, modules: Sequence[TreeModule], place: CheckPlace) -> tuple[TreeModule, ...]:
    """The modules that are installed from elsewhere: the person's tree, or a copy of what was once there.

    A module that is not found counts when something in the environment refers to the person's tree: in the
    sandbox an editable install of what cannot be read looks as if it were not there.
    """
    refers = any(_is_theirs(path, place) for path in _references(answer.path))
    return tuple(
        module
        for module in modules
        if not answer.on_tree(module, place) and (answer.found.get(module.name) or refers)
    )


def _projects(cwd: Path, worktree: Path) -> Iterator[Path]:
    """Folders with a project file: `cwd`, those above it in the checkout, and up to three levels below."""
    above = [folder for folder in (cwd, *cwd.parents) if folder.is_relative_to(worktree)]
    count = 0
    for folder in (*above, *_below(cwd, _MAX_DEPTH)):
        if any((folder / name).is_file() for name in _PROJECT_FILES):
            yield folder
            count += 1
            if count >= _MAX_PROJECTS:
                return


def _below(folder: Path, depth: int) -> Iterator[Path]:
    if depth == 0:
        return
    for child in sorted(folder.iterdir()):
        hidden = child.name.startswith(".") or child.name in ("node_modules", "venv", "target", "build")
        if not hidden and child.is_dir() and not child.is_symlink():
            yield child
            yield from _below(child, depth - 1)


def _top_level(root: Path, *, flat: bool) -> Iterator[str]:
    for child in sorted(root.iterdir()):
        name = child.stem if child.suffix == ".py" else child.name
        if not name.isidentifier() or name in sys.stdlib_module_names or name.startswith("test_"):
            continue
        if child.is_dir():
            if _is_product(child, flat=flat):
                yield name
        elif child.suffix == ".py" and name not in ("setup", "conftest", "noxfile", "tasks", "__init__"):
            yield name


def _is_product(folder: Path, *, flat: bool) -> bool:
    """Whether a folder is a package to import; without `__init__.py` only where nothing but packages lies."""
    if (folder / "__init__.py").is_file():
        return not (flat and folder.name in _NOT_A_PRODUCT)
    return not flat and any(folder.rglob("*.py"))


def _references(path: Iterable[Path]) -> Iterator[Path]:
    """Paths that the installed packages in these folders point to, as files say: nothing is imported."""
    for folder in path:
        if not folder.is_dir():
            continue
        for file in folder.glob("*.pth"):
            yield from _pth(file)
        for file in folder.glob("__editable__*_finder.py"):
            yield from _finder(file)
        for file in folder.glob("*.dist-info/direct_url.json"):
            yield from _direct_url(file)


def _pth(file: Path) -> Iterator[Path]:
    for line in _text(file).splitlines():
        if line.startswith("/"):
            yield Path(line.strip())


def _finder(file: Path) -> Iterator[Path]:
    for match in re.finditer(r"^(?:MAPPING|NAMESPACES)[^=]*=\s*(\{.*\})\s*$", _text(file), re.MULTILINE):
        try:
            mapping = ast.literal_eval(match[1])
        except (ValueError, SyntaxError):
            continue
        for value in mapping.values() if isinstance(mapping, dict) else ():
            yield from map(Path, value if isinstance(value, list) else [value])


def _direct_url(file: Path) -> Iterator[Path]:
    try:
        data = json.loads(_text(file))
    except ValueError:
        return
    url = data.get("url") if isinstance(data, dict) else None
    if isinstance(url, str) and url.startswith("file:"):
        yield Path(unquote(urlsplit(url).path))


def _is_theirs(path: Path, place: CheckPlace) -> bool:
    inside = path.is_relative_to(place.person_root)
    return inside and not any(path.is_relative_to(shared) for shared in place.shared)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
