"""A person at the interactive Codex: interrupts the waiting, goes on, and closes the terminal."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from baton.simulate import workers
from baton.simulate.model_server import ScriptedModel
from baton.simulate.request import Request
from baton.simulate.script import Step, say, stall
from e2e.plugin_session import (
    CHECK,
    RIGHT,
    Installed,
    answers,
    install,
    script,
    supervise,
    tool,
    wait_for_state,
)
from e2e.terminal import Terminal, interactive

pytestmark = [pytest.mark.codex, pytest.mark.long]

GO = "Please see to the sum"
ON = "Go on with what you began"
TASK = "Mend the sum in calc"
DELEGATE = {"objective": f"{TASK}.", "allowedFiles": ["src/"], "verificationCommands": [CHECK]}

Start = Callable[[str], AbstractContextManager[Terminal]]


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        # The interactive program has every prompt given a title by a thread of its own.
        running.on("Do not answer the request", say("A title"))
        yield running
        assert not running.surprises


@pytest.fixture
def installed(codex_binary: Path, model: ScriptedModel, test_root: Path) -> Installed:
    found = install(codex_binary, model, test_root)
    with (found.home / "config.toml").open("a") as file:
        file.write(f"\n[projects.{json.dumps(str(found.workspace))}]\ntrust_level = 'trusted'\n")
    return found


@pytest.fixture
def start(installed: Installed, test_root: Path) -> Start:
    # Codex greets a person with news about an older model, so a present one is named.
    options = ("-m", "gpt-6-luna", "-a", "never", "-s", "workspace-write")
    return lambda prompt: interactive(
        installed.binary, test_root / "tmux", installed.workspace, installed.env, *options, prompt
    )


def test_after_an_interruption_the_run_goes_on_and_is_waited_for_again(
    installed: Installed, model: ScriptedModel, start: Start
) -> None:
    at_work, ended = threading.Event(), threading.Event()

    def noticed(_: Request) -> Step:
        at_work.set()
        return stall(ended)

    before = installed.content()

    def waiting(_: Request) -> Step:
        return script(tool("wait_run", runId=wait_for_state(installed, "running")))

    supervise(model, GO, script(tool("delegate_task", **DELEGATE)), waiting)
    model.on(TASK, workers.write("src/calc.py", RIGHT), noticed, workers.report())
    with start(GO) as terminal:
        assert at_work.wait(60)
        terminal.keys("Escape")
        terminal.until(lambda screen: "interrupted" in screen.lower())
        assert installed.content() == before
        terminal.type(ON)
        ended.set()
        terminal.until(lambda screen: "That is all." in screen)
        (waited,) = answers(model, GO)
    assert (waited["state"], waited["verdict"], waited["integration"]) == ("done", "verified", "applied")
    assert installed.content() == {**before, "src/calc.py": RIGHT}


def test_after_the_terminal_was_closed_another_session_waits_for_the_run(
    installed: Installed, model: ScriptedModel, start: Start
) -> None:
    at_work, ended = threading.Event(), threading.Event()

    def noticed(_: Request) -> Step:
        at_work.set()
        return stall(ended)

    before = installed.content()
    supervise(model, GO, script(tool("delegate_task", **DELEGATE)))
    model.on(TASK, workers.write("src/calc.py", RIGHT), noticed, workers.report())
    with start(GO) as terminal:
        assert at_work.wait(60)
        terminal.close()
        run = wait_for_state(installed, "running")
        supervise(model, ON, script(tool("wait_run", runId=run)))
        with installed.started_session(ON) as session:
            ended.set()
            assert session.wait(timeout=60) == 0
        waited = answers(model, ON)[-1]
    assert (waited["state"], waited["verdict"], waited["integration"]) == ("done", "verified", "applied")
    assert installed.content() == {**before, "src/calc.py": RIGHT}
