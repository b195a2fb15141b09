"""The parts of the runtime room, each by itself."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from baton.contract.errors import BatonError, InvalidInput, StateUnavailable, Unsupported
from baton.ledger.state import StateFolder
from baton.runtime import interpreter
from baton.runtime.build import build, explain
from baton.runtime.collect import remove_unused
from baton.runtime.errors import RuntimeUnavailable
from baton.runtime.interpreter import find_python
from baton.runtime.places import Environment, environment_key, own_environment, state_folder
from baton.runtime.use import try_hold, try_own
from runtime.conftest import CHECKOUT, Stub

EARLY = [
    CHECKOUT / "scripts/serve.py",
    CHECKOUT / "scripts/orchestrate.py",
    CHECKOUT / "server/baton/__init__.py",
    CHECKOUT / "server/baton/contract/__init__.py",
    CHECKOUT / "server/baton/contract/errors.py",
    *(CHECKOUT / "server/baton/runtime").glob("*.py"),
]


@pytest.mark.parametrize("path", EARLY, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_runs_before_anything_is_built_is_python_3_8_and_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    known = {*sys.stdlib_module_names, "__future__"}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        for name in names:
            ours = name.startswith("baton.runtime") or name == "baton.contract.errors"
            assert ours or name.partition(".")[0] in known, name


@pytest.mark.parametrize(
    "settings",
    [
        {"BATON_STATE": "{root}/named"},
        {"BATON_STATE": "{root}/a/../b"},
        {"BATON_STATE": ""},
        {},
        {"XDG_STATE_HOME": "{root}/xdg"},
        {"XDG_STATE_HOME": "relative"},
        {"BATON_STATE": "relative"},
        {"BATON_STATE": "{root}/home/.codex/state"},
        {"BATON_STATE": "{root}/other/state", "CODEX_HOME": "{root}/other"},
    ],
)
def test_front_and_ledger_find_the_same_state_folder(
    settings: dict[str, str], test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BATON_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value.format(root=test_root))

    def outcome(find: Callable[[], object]) -> object:
        try:
            return str(find())
        except InvalidInput as error:
            return error.code

    assert outcome(lambda: state_folder(os.environ)) == outcome(lambda: StateFolder.find().root)


def test_key_changes_with_the_bundle_and_the_abi_and_with_nothing_else(stub: Stub) -> None:
    key = environment_key(str(stub.root), "abi")
    assert environment_key(str(stub.root), "abi") == key
    assert environment_key(str(stub.root), "other").split("-")[0] == key.split("-")[0] != key
    cache = stub.root / "server/baton/__pycache__"
    cache.mkdir()
    (cache / "x.pyc").touch()
    (stub.root / "README.md").touch()
    assert environment_key(str(stub.root), "abi") == key
    seen = {key}
    for path in ("server/baton/new.py", "policy/policy.toml", "skills/s/SKILL.md", "requirements.lock"):
        file = stub.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("changed")
        seen.add(environment_key(str(stub.root), "abi"))
    assert len(seen) == 5


def test_this_interpreter_fits() -> None:
    found = find_python(os.environ)
    assert found.abi.startswith(sys.implementation.cache_tag)


def _python(path: Path, version: str) -> str:
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' {version} fake-abi\n")
    path.chmod(0o755)
    return str(path)


def test_a_newer_python_is_found_beside_one_that_is_too_old(
    test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "_base_executable", _python(test_root / "old", "3 8"))
    (test_root / "shims").mkdir()
    _python(test_root / "shims" / "python3.13", "3 13")
    broken = _python(test_root / "python3.13", "nothing useful")
    fits = _python(test_root / "python3.12", "3 12")
    assert broken != fits
    found = find_python({"PATH": f"{test_root / 'shims'}:{test_root}"})
    assert (found.path, found.abi) == (fits, "fake-abi")


@pytest.mark.parametrize("version", ["3 8", "3 10", "3 15", "2 7"])
def test_no_python_that_fits_is_one_line(
    version: str, test_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "_base_executable", _python(test_root / "own", version))
    monkeypatch.setattr(interpreter, "_candidates", lambda _: iter(()))
    with pytest.raises(Unsupported, match=r"needs Python 3\.11 to 3\.14"):
        find_python({})


@pytest.mark.parametrize(
    ("said", "kind", "word"),
    [
        ("ERROR: Could not find a version that satisfies the requirement x", RuntimeUnavailable, "index"),
        ("NewConnectionError: Failed to establish a new connection", RuntimeUnavailable, "network"),
        ("error: Failed to fetch: `x`\n  Caused by: dns error", RuntimeUnavailable, "network"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
         StateUnavailable, "space"),
        ("error: failed to write: Disk quota exceeded (os error 122)", StateUnavailable, "space"),
        ("OSError: [Errno 30] Read-only file system: '/x'", StateUnavailable, "written"),
        ("The virtual environment was not created successfully because ensurepip is not available.",
         Unsupported, "python3-venv"),
        ("/usr/bin/python3: No module named venv", Unsupported, "python3-venv"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", RuntimeUnavailable, "could not be built"),
        ("", RuntimeUnavailable, "no output"),
    ],
)  # fmt: skip
def test_an_installers_output_is_told_in_one_line(said: str, kind: type[BatonError], word: str) -> None:
    error = explain(said, "/usr/bin/python3")
    assert type(error) is kind
    assert word in error.message and "\n" not in error.message


def test_too_little_space_is_said_before_anything_is_made(
    stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.runtime.mkdir(parents=True)
    usage = shutil.disk_usage(stub.runtime)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
    with pytest.raises(StateUnavailable, match="not enough space"):
        build(Environment(str(stub.runtime), "k"), str(stub.root), sys.executable)
    assert list(stub.runtime.iterdir()) == []


def test_an_error_of_the_disk_is_one_line(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "/state/x")

    stub.runtime.mkdir(parents=True)
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(StateUnavailable, match=r"/state/x .No space left"):
        build(Environment(str(stub.runtime), "k"), str(stub.root), sys.executable)


def test_users_share_an_environment_and_keep_builders_out(test_root: Path) -> None:
    environment = Environment(str(test_root), "k")
    first, second = try_hold(environment), try_hold(environment)
    assert first is not None and second is not None
    assert try_own(environment) is None
    os.close(first)
    assert try_own(environment) is None
    os.close(second)
    alone = try_own(environment)
    assert alone is not None
    assert try_hold(environment) is None and try_own(environment) is None
    os.close(alone)


def test_a_development_environment_is_nobodys_runtime() -> None:
    assert own_environment() is None


def test_removal_spares_what_is_in_use_and_takes_what_is_half_built(test_root: Path) -> None:
    runtime = test_root / "runtime"
    for key in ("used", "unused", "half"):
        (runtime / key / "venv").mkdir(parents=True)
        (runtime / f"{key}.log").touch()
    for key in ("used", "unused"):
        (runtime / key / "ready.json").touch()
    held = try_hold(Environment(str(runtime), "used"))
    assert held is not None
    assert remove_unused(str(runtime)) == ["half", "unused"]
    assert sorted(path.name for path in runtime.iterdir() if path.suffix != ".lock") == ["used", "used.log"]
    os.close(held)
    assert remove_unused(str(runtime)) == ["used"]


def test_a_running_server_keeps_its_environment(stub: Stub) -> None:
    with stub.start() as client:
        client.greet()
        client.call(1, "inspect_run", {"runId": "r"})
        assert remove_unused(str(stub.runtime)) == []
        assert "prefix" in client.call(2, "inspect_run", {"runId": "r"})["structuredContent"]
        (environment,) = stub.environments()
    # A program started from it by hand holds it too.
    program = (
        "from baton.runtime.use import hold_own_environment\n"
        "hold_own_environment(); print('held', flush=True); input()"
    )
    argv = [environment / "venv/bin/python", "-I", "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None and started.stdin is not None
        assert started.stdout.readline() == b"held\n"
        assert remove_unused(str(stub.runtime)) == []
        started.stdin.write(b"\n")
    assert remove_unused(str(stub.runtime)) == [environment.name]
