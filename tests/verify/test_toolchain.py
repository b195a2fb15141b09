"""Build tools work with the person's caches and without their home."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from baton.contract.evidence import CheckStatus
from baton.verify.shadow import shadow_cargo, shadow_gradle
from baton.verify.toolchain import toolchain
from verify.bench import Bench


def made(root: Path, *folders: str) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
    return root


def test_variables_lead_to_caches_that_exist_and_to_no_others(tmp_path: Path) -> None:
    home = made(tmp_path / "home", "go/pkg/mod", ".rustup")
    tree = made(tmp_path / "tree")
    tools = toolchain({"HOME": str(home), "PATH": "/bin"}, scratch=tmp_path / "s", cwd=tree, worktree=tree)
    assert tools.variables["GOMODCACHE"] == str(home / "go/pkg/mod")
    assert tools.variables["RUSTUP_HOME"] == str(home / ".rustup")
    assert Path(tools.variables["GOCACHE"]).is_relative_to(tmp_path / "s")
    assert "NUGET_PACKAGES" not in tools.variables
    assert "CARGO_HOME" not in tools.variables


def test_persons_own_place_for_a_cache_is_honoured(tmp_path: Path) -> None:
    place = made(tmp_path / "caches", "go") / "go"
    tree = made(tmp_path / "tree")
    base = {"HOME": str(tmp_path), "GOMODCACHE": str(place)}
    tools = toolchain(base, scratch=tmp_path / "s", cwd=tree, worktree=tree)
    assert tools.variables["GOMODCACHE"] == str(place)


def test_programs_of_the_tree_come_first_on_path(tmp_path: Path) -> None:
    tree = made(tmp_path / "tree", ".venv/bin", "pkg/node_modules/.bin")
    person = tmp_path / "person"
    base = {"HOME": str(tmp_path), "PATH": f"{person}/.venv/bin:relative:/usr/bin"}
    tools = toolchain(base, scratch=tmp_path / "s", cwd=tree / "pkg", worktree=tree, workspace_root=person)
    assert tools.path.split(":") == [f"{tree}/pkg/node_modules/.bin", f"{tree}/.venv/bin", "/usr/bin"]


def test_cargo_gets_every_unpacked_crate_and_no_credentials(tmp_path: Path) -> None:
    theirs = made(tmp_path / "theirs", "registry/index/x", "registry/cache/x", "registry/src/x/crate-1")
    (theirs / "credentials.toml").write_text("secret")
    own = made(tmp_path / "own")
    shadow_cargo(theirs, own)
    assert (own / "registry/src/x/crate-1").readlink() == theirs / "registry/src/x/crate-1"
    assert not (own / "registry/src/x").is_symlink()
    assert not (own / "credentials.toml").exists()
    shadow_cargo(theirs, own)


def test_gradle_is_offline_and_may_lock_beside_the_distribution(tmp_path: Path) -> None:
    dists = "wrapper/dists/gradle-9-bin/abc"
    theirs = made(tmp_path / "theirs", f"{dists}/gradle-9")
    (theirs / dists / "gradle-9-bin.zip.ok").touch()
    (theirs / dists / "gradle-9-bin.zip.lck").touch()
    own = made(tmp_path / "own")
    shadow_gradle(theirs, own)
    assert sorted(entry.name for entry in (own / dists).iterdir()) == ["gradle-9", "gradle-9-bin.zip.ok"]
    assert "offline = true" in (own / "init.d" / "offline.gradle").read_text()


@pytest.mark.anyio
@pytest.mark.codex
async def test_real_npm_runs_a_script_and_the_packages_of_the_tree(bench: Bench) -> None:
    needed("npm")
    bench.ours(
        "package.json", '{"name": "x", "version": "1.0.0", "scripts": {"test": "greet && node test.js"}}'
    )
    bench.ours("test.js", "require('node:assert').equal(1 + 1, 2); console.log('node agrees')\n")
    bench.theirs("node_modules/.bin/greet", "#!/bin/sh\necho hello\n", 0o755)
    bench.share("node_modules")
    result = await bench.check("npm test")
    assert result.status is CheckStatus.PASSED, bench.output(result)
    assert "hello" in bench.output(result)
    assert "node agrees" in bench.output(result)


@pytest.mark.anyio
@pytest.mark.codex
async def test_real_cargo_tests_offline_and_a_failing_test_fails(bench: Bench) -> None:
    real_home = needed("cargo")
    bench.base = {**bench.base, **real_home}
    bench.ours("Cargo.toml", '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n')
    bench.ours("src/lib.rs", "#[test]\nfn sum() { assert_eq!(1 + 1, 2); }\n")
    result = await bench.check("cargo test --offline")
    assert result.status is CheckStatus.PASSED, bench.output(result)
    bench.ours("src/lib.rs", "#[test]\nfn sum() { assert_eq!(1 + 1, 3); }\n")
    result = await bench.check("cargo test")
    assert (result.status, result.exit_code) == (CheckStatus.FAILED, 101)
    assert "panicked" in result.tail


@pytest.mark.anyio
@pytest.mark.codex
async def test_real_maven_reads_the_persons_repository_and_their_home_is_not_written(bench: Bench) -> None:
    needed("mvn")
    (bench.person.parent / "home" / ".m2" / "repository").mkdir(parents=True)
    result = await bench.check("mvn -q help:evaluate -Dexpression=user.home")
    # The repository is empty, so there is no plugin; what counts is where maven looked.
    assert result.status is CheckStatus.FAILED
    assert str(bench.person.parent / "home" / ".m2" / "repository") in bench.output(result)
    assert list((bench.person.parent / "home" / ".m2").iterdir()) == [
        bench.person.parent / "home" / ".m2" / "repository"
    ]


@pytest.mark.anyio
@pytest.mark.codex
async def test_git_of_a_check_reads_what_it_is_given(bench: Bench) -> None:
    bench.ours("a", "1\n")
    subprocess.run(["git", "init", "-q", bench.place.worktree], check=True)
    result = await bench.check("git status --short")
    assert result.status is CheckStatus.PASSED, bench.output(result)
    assert "?? a" in bench.output(result)


def needed(program: str) -> dict[str, str]:
    """Variables by which a real tool finds its toolchain, HOME being a test's; skips without the tool."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not on this machine")
    rustup = Path(found).parents[2] / ".rustup"
    return {"RUSTUP_HOME": str(rustup)} if rustup.is_dir() else {}
