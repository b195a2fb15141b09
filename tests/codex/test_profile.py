"""A permission profile holds a scope on the real Codex, also below a denied state folder."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from baton.codex.binary import find_codex
from baton.codex.probe import try_profile
from baton.codex.profile import build_profile
from baton.codex.session_profile import Entry, SessionProfile
from baton.contract.scope import ScopePlan
from codex.place import Ground

pytestmark = pytest.mark.codex


@pytest.fixture
def ground(test_root: Path, codex_binary: Path) -> Ground:
    return Ground.make(test_root, find_codex({"BATON_CODEX_BIN": str(codex_binary)}))


def test_writes_succeed_in_scope_and_fail_beside_it(ground: Ground) -> None:
    plan = ScopePlan(write_dirs=(ground.worktree / "src",))
    profile = build_profile(plan, ground.place, denied=ground.denied)
    said = ground.shell(
        profile,
        "echo a > src/new; echo a > beside;"
        f" echo a > {ground.workspace}/src/new; echo a > {ground.scratch}/x",
    )
    assert (ground.worktree / "src" / "new").exists(), said
    assert (ground.scratch / "x").exists(), said
    assert not (ground.worktree / "beside").exists()
    assert not (ground.workspace / "src" / "new").exists()
    assert set(profile.writable_roots) == {
        str(ground.worktree / "src"),
        str(ground.worktree.parent),
        str(ground.scratch),
    }


@pytest.mark.parametrize("scope", ["src", "."])
def test_no_file_of_the_worktree_gets_a_second_name_outside_of_it(ground: Ground, scope: str) -> None:
    """Who watches the worktree's folders would not be told of what is written under that."""
    slot = ground.worktree.parent
    (slot / "scratch").mkdir()
    (ground.worktree / "src" / "old").write_text("old")
    place = replace(ground.place, scratch=(slot / "scratch",), shells=(slot,))
    plan = ScopePlan(write_dirs=(ground.worktree / scope,))
    said = ground.shell(
        build_profile(plan, place, denied=ground.denied),
        f"ln src/old {slot}/scratch/alias; ln src/old {slot}/alias; ln src/old src/alias && echo within",
    )
    assert "within" in said
    assert (ground.worktree / "src" / "old").stat().st_nlink == 2, said


def test_other_runs_the_ledger_and_both_codex_homes_are_out_of_sight(ground: Ground) -> None:
    secrets = (
        ground.state.worktrees / "other" / "tree" / "file",
        ground.state.database,
        ground.state.artifacts / "aa",
        ground.home.path / "sessions" / "rollout",
        ground.person_home / "auth.json",
    )
    for secret in secrets:
        secret.parent.mkdir(parents=True, exist_ok=True)
        secret.write_text("sesame")
    (ground.worktree / "mine").write_text("mine")
    profile = build_profile(
        ScopePlan(write_dirs=(ground.worktree / "src",)), ground.place, denied=ground.denied
    )
    later = ground.state.worktrees / "later"
    later.mkdir()
    (later / "file").write_text("sesame")
    said = ground.shell(
        profile, f"cat mine {' '.join(map(str, (*secrets, later / 'file')))}; ls {ground.state.root}"
    )
    assert said.startswith("mine")
    assert "sesame" not in said


def test_read_only_parts_of_a_write_root_stay_as_they_are(ground: Ground) -> None:
    source = ground.worktree / "src"
    (source / "kept").write_text("kept")
    plan = ScopePlan(write_dirs=(source,), readonly=(source / "kept",))
    profile = build_profile(plan, ground.place, denied=ground.denied)
    ground.shell(profile, "echo x > src/kept; rm -f src/kept; mv src/kept src/moved; echo n > src/new")
    assert (source / "kept").read_text() == "kept"
    assert (source / "new").exists()


@pytest.mark.parametrize("name", ["[id]", "a*b", "what?", "x]y"])
def test_folder_whose_name_is_a_glob_is_writable_and_its_namesakes_are_not(ground: Ground, name: str) -> None:
    for each in (name, "i", "axb", "whatX"):
        (ground.worktree / "src" / each).mkdir()
    (ground.worktree / "src" / name / "old").write_text("old")
    profile = build_profile(
        ScopePlan(write_dirs=(ground.worktree / "src" / name,)), ground.place, denied=ground.denied
    )
    assert profile.workspace_roots == (str(ground.worktree / "src" / name),)
    assert profile.not_held == ()
    said = ground.shell(
        profile, f"echo a > 'src/{name}/new'; for n in i axb whatX; do echo a > src/$n/new; done"
    )
    assert (ground.worktree / "src" / name / "new").exists(), said


def test_what_codex_cannot_hold_is_said(ground: Ground) -> None:
    source = ground.worktree / "src"
    (source / "[a]").mkdir()
    odd = source / "\udcff"
    plan = ScopePlan(write_dirs=(source,), readonly=(source / "[a]", odd))
    profile = build_profile(plan, ground.place, denied=ground.denied)
    assert len(profile.not_held) == 2
    assert "[a]" in profile.not_held[0]
    assert "\\xff" in profile.not_held[1]


@pytest.mark.parametrize("writable", [True, False])
def test_hidden_files_are_hidden_in_the_worktree_and_at_the_persons_path(
    ground: Ground, writable: bool
) -> None:
    folder = "src" if writable else "config"
    paths = []
    for root in (ground.worktree, ground.workspace):
        (root / folder).mkdir(exist_ok=True)
        for name in (".env", "key.pem", "se[c]ret"):
            (root / folder / name).write_text("sesame")
            paths.append(root / folder / name)
        (root / folder / "open").write_text("open")
    exact = [path for path in paths if path.suffix != ".pem"]
    plan = ScopePlan(
        write_dirs=(ground.worktree / "src",),
        hidden_paths=tuple(exact),
        hidden_globs=(f"{ground.worktree}/**/*.pem", f"{ground.workspace}/**/*.pem"),
    )
    profile = build_profile(plan, ground.place, denied=ground.denied)
    said = ground.shell(
        profile, f"cat {folder}/open; for f in {' '.join(map(repr, map(str, paths)))}; do cat $f; done"
    )
    assert said.startswith("open"), said
    assert "sesame" not in said


def test_hidden_folder_named_by_a_glob_is_hidden_with_all_below(ground: Ground) -> None:
    (ground.worktree / "src" / "private" / "deep").mkdir(parents=True)
    (ground.worktree / "src" / "private" / "deep" / "file").write_text("sesame")
    plan = ScopePlan(write_dirs=(ground.worktree / "src",), hidden_globs=(f"{ground.worktree}/**/private",))
    profile = build_profile(plan, ground.place, denied=ground.denied)
    assert "sesame" not in ground.shell(profile, "cat src/private/deep/file")


def test_what_the_session_may_not_read_is_denied_in_the_copy_too(ground: Ground) -> None:
    for root in (ground.worktree, ground.workspace):
        (root / "src" / ".env").write_text("sesame")
        (root / "src" / "key.pem").write_text("sesame")
    session = SessionProfile(
        cwd=ground.workspace,
        unlimited=False,
        network=False,
        entries=(Entry(Path("/"), "read"), Entry(ground.workspace / "src" / ".env", "deny")),
        denied_globs=(f"{ground.workspace}/**/*.pem",),
    )
    plan = ScopePlan(write_dirs=(ground.worktree / "src",))
    profile = build_profile(plan, ground.place, denied=ground.denied, session=session)
    said = ground.shell(
        profile,
        f"echo begun; cat src/.env src/key.pem {ground.workspace}/src/.env {ground.workspace}/src/key.pem",
    )
    assert said.startswith("begun")
    assert "sesame" not in said


def test_session_that_reads_only_its_folder_gives_workers_no_more(ground: Ground, test_root: Path) -> None:
    (test_root / "elsewhere").write_text("sesame")
    (ground.worktree / "mine").write_text("mine")
    session = SessionProfile(
        cwd=ground.workspace, unlimited=False, network=False, entries=(Entry(ground.workspace, "write"),)
    )
    profile = build_profile(
        ScopePlan(write_dirs=(ground.worktree / "src",)), ground.place, denied=ground.denied, session=session
    )
    said = ground.shell(profile, f"cat mine; cat {test_root / 'elsewhere'}; echo x > src/new && echo wrote")
    assert said.startswith("mine")
    assert "wrote" in said
    assert "sesame" not in said


@pytest.mark.parametrize("loopback", [False, True])
def test_no_form_of_network_leads_out(ground: Ground, loopback: bool) -> None:
    profile = build_profile(
        ScopePlan(write_dirs=(ground.worktree / "src",)),
        ground.place,
        denied=ground.denied,
        loopback=loopback,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        said = ground.shell(profile, f"echo begun; bash -c 'echo > /dev/tcp/127.0.0.1/{port}'; echo ended")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert said.startswith("begun")
    assert said.endswith("ended\n")


def test_hosts_are_opened_only_for_a_session_that_has_a_network(ground: Ground) -> None:
    plan = ScopePlan(write_dirs=(ground.worktree / "src",))
    closed = SessionProfile(cwd=None, unlimited=False, network=False, entries=(Entry(Path("/"), "read"),))
    profile = build_profile(plan, ground.place, session=closed, network_hosts=("example.com",))
    assert profile.network == {"enabled": False}
    free = build_profile(plan, ground.place, network_hosts=("example.com",))
    assert free.network == {"enabled": True, "domains": {"example.com": "allow"}}
    assert free.config["features"] == {"network_proxy": True}


def test_names_cannot_be_guessed(ground: Ground) -> None:
    plan = ScopePlan()
    names = {build_profile(plan, ground.place).name for _ in range(5)}
    assert len(names) == 5
    assert all(len(name) > 30 for name in names)


@pytest.mark.anyio
async def test_profile_that_cannot_be_set_up_is_found_before_a_worker_starts(ground: Ground) -> None:
    env = {"PATH": "/usr/bin:/bin"}
    good = build_profile(ScopePlan(write_dirs=(ground.worktree / "src",)), ground.place, denied=ground.denied)
    assert await try_profile(ground.binary, ground.home, good, cwd=ground.worktree, env=env) is None
    (ground.worktree / "src" / "file").write_text("a single file as a write root breaks the sandbox")
    bad = build_profile(ScopePlan(write_dirs=(ground.worktree / "src" / "file",)), ground.place)
    why = await try_profile(ground.binary, ground.home, bad, cwd=ground.worktree, env=env)
    assert why is not None
    assert "runs no command" in why


def test_without_a_shell_the_worktree_is_seen_and_what_lies_beside_it_now_is_not(ground: Ground) -> None:
    other = ground.state.worktrees / "other" / "file"
    other.parent.mkdir()
    other.write_text("sesame")
    (ground.worktree / "mine").write_text("mine")
    (ground.worktree / ".env").write_text("sesame")
    place = replace(ground.place, shells=())
    plan = ScopePlan(write_dirs=(ground.worktree / "src",), hidden_paths=(ground.worktree / ".env",))
    profile = build_profile(plan, place, denied=ground.denied)
    said = ground.shell(
        profile, f"cat mine .env {other}; ls {ground.state.repos}; echo n > src/new; echo n > new"
    )
    assert said.startswith("mine"), said
    assert "sesame" not in said
    assert (ground.worktree / "src" / "new").exists()
    assert not (ground.worktree / "new").exists()


def test_codex_that_lies_in_a_denied_folder_still_runs(ground: Ground) -> None:
    package = Path(ground.binary.path).resolve().parents[1]
    inside = ground.state.runtime / "env" / package.name
    inside.mkdir(parents=True)
    (inside / "bin").mkdir()
    (inside / "bin" / "codex").hardlink_to(package / "bin" / "codex")
    if (package / "codex-resources").is_dir():
        (inside / "codex-resources").symlink_to(package / "codex-resources")
    moved = replace(ground, binary=replace(ground.binary, path=inside / "bin" / "codex"))
    plan = ScopePlan(write_dirs=(ground.worktree / "src",))
    said = moved.shell(build_profile(plan, moved.place, denied=ground.denied), "echo begun; echo n > src/new")
    assert said.startswith("begun"), said
    assert (ground.worktree / "src" / "new").exists()


def test_scratch_inside_a_shell_is_writable_without_an_entry_of_its_own(ground: Ground) -> None:
    shell = ground.worktree.parent
    assert shell in ground.place.shells
    scratch = shell / "scratch"
    scratch.mkdir()
    place = replace(ground.place, scratch=(scratch,))
    profile = build_profile(ScopePlan(write_dirs=(ground.worktree / "src",)), place, denied=ground.denied)
    assert str(scratch) not in profile.writable_roots
    said = ground.shell(profile, f"echo a > {scratch}/x; echo b > src/y; echo c > z; echo d > {shell}/../w")
    assert (scratch / "x").exists(), said
    assert (ground.worktree / "src" / "y").exists(), said
    assert not (ground.worktree / "z").exists()
    assert not (shell.parent / "w").exists()
