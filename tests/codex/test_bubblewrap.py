"""Codex is led to a bubblewrap that it can use, and never to one that a repository brings."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import old_bubblewrap
from baton.codex import bubblewrap
from baton.codex.binary import find_codex
from baton.codex.bubblewrap import outdated, own_bubblewrap, used_bubblewrap, with_bubblewrap
from baton.codex.probe import Probe, probe
from baton.codex.sandbox import Fence, sandboxed_argv
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import say, shell
from codex.place import Ground
from codex.workers_bench import Bench

HOLDS = Probe(runs=True, prevents=True, loopback=True, direct=True, why=None)


@pytest.fixture
def ground(test_root: Path, codex_binary: Path) -> Ground:
    return Ground.make(test_root, find_codex({"BATON_CODEX_BIN": str(codex_binary)}))


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def a_bwrap(folder: Path, version: str, *, argv0: bool, calls: Path | None = None) -> Path:
    count = f"echo called >> {calls}; " if calls else ""
    answer = "echo --argv0 VALUE" if argv0 else "echo --bind SRC DEST"
    script = f'{count}case "$1" in --version) echo bubblewrap {version};; *) {answer};; esac'
    return program(folder / "bwrap", script)


@pytest.fixture
def codex(tmp_path: Path) -> Path:
    """A Codex that is on PATH by a link and brings a bubblewrap of its own."""
    program(tmp_path / "package/bin/codex", "true")
    program(tmp_path / "package/codex-resources/bwrap", "true")
    (tmp_path / "codex").symlink_to("package/bin/codex")
    return tmp_path / "codex"


def test_the_one_of_codex_comes_before_one_that_is_too_old(tmp_path: Path, codex: Path) -> None:
    old = a_bwrap(tmp_path / "old", "0.8.0", argv0=False)
    a_bwrap(tmp_path / "later", "0.11.0", argv0=True)
    env = {"PATH": f"/nowhere:{old.parent}:{tmp_path}/later", "HOME": "/home/me"}
    own = tmp_path / "package/codex-resources"
    assert with_bubblewrap(env, codex) == {**env, "PATH": f"{own}:{env['PATH']}"}
    assert used_bubblewrap(env, codex).startswith(f"{own}/bwrap ")
    assert outdated(env, codex) is None


def test_the_systems_is_used_where_it_can_be_and_nothing_changes_where_there_is_none(
    tmp_path: Path, codex: Path
) -> None:
    new = a_bwrap(tmp_path / "new", "0.9.0", argv0=True)
    a_bwrap(tmp_path / "old", "0.8.0", argv0=False)
    (tmp_path / "folder/bwrap").mkdir(parents=True)
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/bwrap").write_text("no program")
    for path in (f"{tmp_path}/folder:{tmp_path}/plain:{new.parent}:{tmp_path}/old", f"{tmp_path}/plain"):
        assert with_bubblewrap({"PATH": path}, codex) == {"PATH": path}
    assert with_bubblewrap({"HOME": "/home/me"}, codex) == {"HOME": "/home/me"}
    assert used_bubblewrap({"PATH": f"{tmp_path}/plain"}, codex) == "its own"
    assert used_bubblewrap({}, codex) == "its own"


def test_one_that_does_not_answer_is_none_that_can_be_used(
    tmp_path: Path, codex: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "ANSWER_SECONDS", 0.2)
    failing = program(tmp_path / "failing/bwrap", "echo --argv0; exit 1")
    hanging = program(tmp_path / "hanging/bwrap", "echo --argv0; sleep 601")
    for one in (failing, hanging):
        led = with_bubblewrap({"PATH": str(one.parent)}, codex)
        assert led["PATH"] == f"{tmp_path}/package/codex-resources:{one.parent}"
    said = outdated({"PATH": str(failing.parent)}, Path("/nowhere/codex"))
    assert said is not None and "of an unknown version" in said


def test_each_file_is_asked_once_and_a_newer_one_is_noticed(tmp_path: Path, codex: Path) -> None:
    calls = tmp_path / "calls"
    env = {"PATH": str(tmp_path / "system")}
    used = [used_bubblewrap(env, codex)]
    for version, argv0 in (("0.8.0", False), ("0.9.0", True)):
        calls.write_text("")
        fresh = a_bwrap(tmp_path / "fresh", version, argv0=argv0, calls=calls)
        (tmp_path / "system").mkdir(exist_ok=True)
        fresh.replace(tmp_path / "system/bwrap")
        for _ in range(3):
            with_bubblewrap(env, codex)
            assert outdated(env, codex) is None
        used.append(used_bubblewrap(env, codex))
        assert calls.read_text() == "called\n"
    a_bwrap(tmp_path / "fresh", "0.10.0", argv0=True).replace(tmp_path / "system/bwrap")
    used.append(used_bubblewrap(env, codex))
    assert len({*used}) == 4, used


def test_where_nothing_helps_one_line_says_which_it_is_and_what_is_needed(tmp_path: Path) -> None:
    old = a_bwrap(tmp_path / "old", "0.6.1", argv0=False)
    env, alone = {"PATH": str(old.parent)}, program(tmp_path / "alone/bin/codex", "true")
    assert with_bubblewrap(env, alone) == env
    said = outdated(env, alone)
    assert said is not None and "\n" not in said
    for part in (f"{old} is bubblewrap 0.6.1", str(alone), "0.9 or newer"):
        assert part in said
    a_bwrap(tmp_path / "old", "0.9.0", argv0=True)
    assert outdated(env, alone) is None
    assert outdated({"PATH": "/nowhere"}, alone) is None


def test_relative_entries_of_path_are_left_out(tmp_path: Path, codex: Path) -> None:
    for path in (f"bin:../bin:{tmp_path}:~/bin:.", f":{tmp_path}", f"{tmp_path}::"):
        assert with_bubblewrap({"PATH": path}, codex)["PATH"] == str(tmp_path)
    for path in ("", ":", "bin:."):
        assert with_bubblewrap({"PATH": path}, codex)["PATH"].endswith(os.defpath)


def test_its_own_is_looked_for_where_codex_does(tmp_path: Path, codex: Path) -> None:
    package = tmp_path / "package"
    assert own_bubblewrap(codex) == package / "codex-resources/bwrap"
    nearer = program(package / "bin/codex-resources/bwrap", "true")
    assert own_bubblewrap(codex) == nearer
    nearer.chmod(0o644)
    assert own_bubblewrap(codex) == package / "codex-resources/bwrap"
    (package / "codex-resources/bwrap").unlink()
    assert own_bubblewrap(codex) is None
    # A folder of this name would be two entries of PATH.
    split = program(tmp_path / "a:b/bin/codex", "true")
    program(tmp_path / "a:b/codex-resources/bwrap", "true")
    assert own_bubblewrap(split) is None


@pytest.mark.anyio
@pytest.mark.codex
async def test_sandbox_holds_although_an_old_one_is_first_on_path(
    ground: Ground, test_root: Path, codex_binary: Path
) -> None:
    old = old_bubblewrap.install(test_root / "old", codex_binary)
    cache = ground.state.scratch
    env = {"PATH": f"{old.parent}:{os.defpath}"}
    before = await probe(ground.binary, ground.home, cache=cache, env={"PATH": "/nowhere"})
    kept = (cache / "sandbox-probe.json").read_text()
    assert before == HOLDS == await probe(ground.binary, ground.home, cache=cache, env=env)
    assert (cache / "sandbox-probe.json").read_text() != kept


@pytest.mark.anyio
@pytest.mark.codex
async def test_an_old_one_that_cannot_be_got_round_is_named(
    ground: Ground, test_root: Path, codex_binary: Path
) -> None:
    old = old_bubblewrap.install(test_root / "old", codex_binary)
    wrapper = program(test_root / "codex", f'exec {ground.binary.path} "$@"')
    env = {"PATH": f"{old.parent}:{os.defpath}"}
    alone = replace(ground.binary, path=wrapper)
    found = await probe(alone, ground.home, cache=ground.state.scratch, env=env)
    assert (found.runs, found.prevents, found.direct) == (False, False, False)
    assert found.why is not None and f"{old} is bubblewrap 0.8.0" in found.why


def a_trap(folder: Path, sprung: Path, codex: Path) -> None:
    """A bubblewrap that tells when it was run."""
    real = own_bubblewrap(find_codex({"BATON_CODEX_BIN": str(codex)}).path)
    program(folder / "bwrap", f'echo run >> {sprung}\nexec {real} "$@"')


@pytest.mark.codex
@pytest.mark.parametrize("direct", [False, True])
def test_a_checks_repository_does_not_bring_its_own(
    ground: Ground, test_root: Path, codex_binary: Path, direct: bool
) -> None:
    sprung, cwd = test_root / "sprung", ground.worktree / "src"
    a_trap(ground.worktree / "bin", sprung, codex_binary)
    env = {"PATH": f"../bin:{os.defpath}"}
    fence = Fence(writable=(cwd,), denied=ground.denied, readable=(ground.worktree,))
    command = sandboxed_argv(
        ground.binary,
        ground.home,
        ["/bin/sh", "-c", 'echo "$PATH" > seen'],
        cwd=cwd,
        env=env,
        inside={},
        fence=fence,
        direct=direct,
    )
    subprocess.run(command.argv, cwd=cwd, env=command.env, stdin=subprocess.DEVNULL, check=True, timeout=60)
    assert (cwd / "seen").read_text() == f"{env['PATH']}\n"
    assert not sprung.exists()


@pytest.mark.anyio
@pytest.mark.codex
async def test_a_workers_repository_does_not_bring_its_own(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    sprung = test_root / "sprung"
    bench = Bench(test_root, codex_binary, model.port)
    a_trap(bench.work / "bin", sprung, codex_binary)
    path = f"../bin:{os.defpath}"
    model.on("WORK", shell("echo made > a", workdir="src"), say("done"))
    async with await bench.server(environment={"PATH": path}) as server:
        settings = {"PATH": path, "HOME": str(bench.root / "scratch")}
        thread = await bench.thread(server, environment=settings)
        await thread.run_turn("WORK")
    assert (bench.work / "src/a").read_text() == "made\n"
    assert not sprung.exists()
