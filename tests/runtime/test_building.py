"""The environment: built once, by a process of its own, used only when it is complete."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.conftest import Stub
from tools.client import Client, Message, call, request

DEADLINE = 90.0


def _until(true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < end, f"waited too long until {what}"
        time.sleep(0.02)


def _call(client: Client, number: int, meta: Message | None = None) -> Message:
    return client.call(number, "inspect_run", {"runId": "r"}, meta)


def _marked(stub: Stub) -> bool:
    return stub.runtime.is_dir() and any((path / "ready.json").exists() for path in stub.environments())


def test_first_call_waits_for_the_build_and_is_answered_from_the_environment(stub: Stub) -> None:
    with stub.start() as client:
        client.greet()
        client.send(call(1, "inspect_run", {"runId": "r"}, {"progressToken": 7}))
        # What the front knows it answers meanwhile.
        assert client.ask(2, "tools/list")["result"]["tools"]
        seen = client.result(1)["structuredContent"]
    (environment,) = stub.environments()
    assert seen["pid"] == client.process.pid
    assert seen["prefix"] == str(environment / "venv")
    assert Path(seen["file"]).is_relative_to(environment / "bundle")
    assert not list(stub.root.rglob("__pycache__"))
    values = [note["params"]["progress"] for note in client.notes]
    assert values == sorted(set(values)) and all(0 < value < 1 for value in values)
    for name in ("baton", "baton-server", "baton-runner", "baton-guard"):
        assert os.access(environment / "bin" / name, os.X_OK)
    before = stub.log()
    with stub.start() as again:
        again.greet()
        assert _call(again, 1)["structuredContent"]["prefix"] == seen["prefix"]
    assert stub.log() == before, "a ready environment was built again"


def test_it_is_built_and_starts_in_a_folder_of_any_name_where_no_locale_is_set(stub: Stub) -> None:
    state = stub.state.with_name("Zoë's state")
    with stub.start(BATON_STATE=str(state), LC_ALL="POSIX") as client:
        client.greet()
        assert Path(_call(client, 1)["structuredContent"]["prefix"]).is_relative_to(state)


def test_two_sessions_at_once_share_one_build(stub: Stub) -> None:
    with stub.start() as first, stub.start() as second:
        for client in (first, second):
            client.greet()
            client.send(call(1, "inspect_run", {"runId": "r"}))
        prefixes = {client.result(1)["structuredContent"]["prefix"] for client in (first, second)}
    assert len(prefixes) == 1 and len(stub.environments()) == 1
    assert stub.log().count("-m venv") == 1


def test_build_survives_the_session_that_asked_for_it(stub: Stub) -> None:
    with stub.start() as client:
        client.greet()
        client.send(call(1, "inspect_run", {"runId": "r"}))
        _until(lambda: any(stub.runtime.glob("*/bundle")) if stub.runtime.is_dir() else False, "it builds")
        os.killpg(client.process.pid, signal.SIGKILL)
    _until(lambda: _marked(stub), "the environment is ready")


@pytest.mark.long
def test_a_build_longer_than_the_callers_patience_says_so_and_goes_on(stub: Stub) -> None:
    with stub.start(BATON_BUILD_WAIT="0") as client:
        client.greet()
        result = _call(client, 1)
        assert result["isError"] and result["structuredContent"]["error"] == "runtime_building"
        assert "call again" in result["content"][0]["text"]
        _until(lambda: _marked(stub), "the environment is ready")
        number = 2
        while "prefix" not in _call(client, number)["structuredContent"]:
            number += 1
            assert number < 200


def test_a_half_built_environment_is_never_used(stub: Stub) -> None:
    with stub.start() as client:
        client.greet()
        _call(client, 1)
    (environment,) = stub.environments()
    (environment / "ready.json").unlink()
    (environment / "bundle/server/baton/tools/server.py").write_text("raise SystemExit('half-built')")
    (environment / "left-over").touch()
    with stub.start() as client:
        client.greet()
        assert _call(client, 1)["structuredContent"]["prefix"] == str(environment / "venv")
    assert not (environment / "left-over").exists()


@pytest.mark.long
def test_an_environment_whose_python_is_gone_is_built_again(stub: Stub) -> None:
    with stub.start() as client:
        client.greet()
        _call(client, 1)
    (environment,) = stub.environments()
    python = environment / "venv/bin/python"
    python.unlink()
    python.symlink_to(stub.root / "no-such-python")
    with stub.start() as client:
        client.greet()
        assert "prefix" in _call(client, 1)["structuredContent"]


@pytest.mark.long
def test_a_call_cancelled_while_it_waits_for_the_build_is_not_answered(stub: Stub) -> None:
    with stub.start() as client:
        client.greet()
        client.send(call(1, "inspect_run", {"runId": "r"}), call(2, "inspect_run", {"runId": "r"}))
        client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        client.result(2)
        client.close_input()
        with pytest.raises(EOFError):
            client.answer(1)


def test_packages_that_cannot_be_fetched_are_one_line_and_the_next_call_tries_again(stub: Stub) -> None:
    away = stub.wheels.with_name("away")
    stub.wheels.rename(away)
    stub.wheels.mkdir()
    with stub.start() as client:
        client.greet()
        client.send(call(1, "inspect_run", {"runId": "r"}), request("r", "resources/read", {"uri": "x:y"}))
        result = client.result(1)
        assert result["isError"] and result["structuredContent"]["error"] == "runtime_unavailable"
        line = result["content"][0]["text"]
        assert line == result["structuredContent"]["message"] and "\n" not in line
        assert "could not be fetched" in line
        assert client.answer("r")["error"]["message"] == line
        assert not _marked(stub)
        shutil.rmtree(stub.wheels)
        away.rename(stub.wheels)
        assert "prefix" in _call(client, 2)["structuredContent"]


@pytest.mark.long
def test_a_package_that_is_not_the_locked_one_is_refused(
    stub: Stub, write_wheel: Callable[[Path], str]
) -> None:
    (wheel,) = stub.wheels.iterdir()
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with stub.start() as client:
        client.greet()
        result = _call(client, 1)
        assert result["structuredContent"]["error"] == "runtime_unavailable"
    assert not _marked(stub)


def test_a_state_folder_that_cannot_be_used_is_one_line(stub: Stub) -> None:
    (stub.root.parent / "file").touch()
    for state, code in (
        (str(stub.root.parent / "file" / "state"), "state_unavailable"),
        ("here", "invalid_input"),
    ):
        with stub.start(BATON_STATE=state) as client:
            client.greet()
            result = _call(client, 1)
            assert result["isError"] and result["structuredContent"]["error"] == code
            assert "BATON_STATE" in result["content"][0]["text"]


@pytest.mark.long
def test_another_version_of_the_bundle_gets_an_environment_of_its_own(stub: Stub) -> None:
    with stub.start() as old:
        old.greet()
        used = _call(old, 1)["structuredContent"]["prefix"]
        with (stub.root / "server/baton/tools/server.py").open("a") as file:
            file.write("# newer\n")
        with stub.start() as new:
            new.greet()
            assert _call(new, 1)["structuredContent"]["prefix"] != used
        # The older session goes on from where it was.
        assert _call(old, 2)["structuredContent"]["prefix"] == used
    assert len(stub.environments()) == 2
