"""A check that would secretly run on the person's tree is turned to the checkout, or not run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from baton.contract.evidence import CheckStatus
from baton.verify.origin import move_arguments
from verify.bench import PYTHON, Bench

pytestmark = [pytest.mark.anyio, pytest.mark.codex]

PROJECT = '[project]\nname = "mypkg"\nversion = "0"\n'
WHO = "import mypkg; print('runs on', mypkg.WHO)"


def environment(bench: Bench) -> Path:
    """A virtual environment in the person's tree, linked into the checkout; returns its site-packages."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", bench.person / ".venv"], check=True)
    bench.share(".venv")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return bench.person / ".venv" / "lib" / version / "site-packages"


def both_trees(bench: Bench, layout: str = "src/mypkg") -> None:
    bench.write("pyproject.toml", PROJECT)
    bench.theirs(f"{layout}/__init__.py", "WHO = 'the person'\n")
    bench.ours(f"{layout}/__init__.py", "WHO = 'the tree'\n")


async def test_editable_install_by_path_file_is_turned_to_the_tree(bench: Bench) -> None:
    both_trees(bench)
    packages = environment(bench)
    (packages / "mypkg.pth").write_text(f"{bench.person / 'src'}\n")
    result = await bench.check(["python", "-c", WHO])
    assert result.status is CheckStatus.PASSED, result
    assert "runs on the tree" in bench.output(result)
    assert "mypkg" in (result.detail or "")


async def test_editable_install_by_finder_is_turned_to_the_tree(bench: Bench) -> None:
    both_trees(bench)
    packages = environment(bench)
    (packages / "__editable___mypkg_0_finder.py").write_text(
        f"MAPPING: dict[str, str] = {{'mypkg': '{bench.person}/src/mypkg'}}\ndef install(): pass\n"
    )
    result = await bench.check(["python", "-c", WHO])
    assert "runs on the tree" in bench.output(result), result


async def test_editable_install_named_by_direct_url_is_turned_to_the_tree(bench: Bench) -> None:
    both_trees(bench)
    info = environment(bench) / "mypkg-0.dist-info"
    info.mkdir()
    (info / "direct_url.json").write_text(
        json.dumps({"url": f"file://{bench.person}", "dir_info": {"editable": True}})
    )
    result = await bench.check(["python", "-c", WHO])
    assert "runs on the tree" in bench.output(result), result


async def test_stale_copy_in_the_environment_is_not_what_is_checked(bench: Bench) -> None:
    both_trees(bench)
    packages = environment(bench)
    (packages / "mypkg").mkdir()
    (packages / "mypkg" / "__init__.py").write_text("WHO = 'an old copy'\n")
    result = await bench.check(["python", "-c", WHO])
    assert "runs on the tree" in bench.output(result), result


async def test_flat_layout_is_turned_as_well(bench: Bench) -> None:
    both_trees(bench, "mypkg")
    packages = environment(bench)
    (packages / "mypkg").mkdir()
    (packages / "mypkg" / "__init__.py").write_text("WHO = 'an old copy'\n")
    script = packages.parents[2] / "bin" / "tool"
    script.write_text(f"#!{bench.person}/.venv/bin/python\n{WHO}\n")
    script.chmod(0o755)
    result = await bench.check("tool")
    assert "runs on the tree" in bench.output(result), result


async def test_environment_that_cannot_be_turned_makes_the_check_prove_nothing(bench: Bench) -> None:
    both_trees(bench)
    packages = environment(bench)
    (packages / "stubborn").mkdir()
    (packages / "stubborn" / "mypkg.py").write_text("WHO = 'elsewhere'\n")
    (packages / "stubborn.pth").write_text("import stubborn_finder\n")
    elsewhere = str(packages / "stubborn" / "mypkg.py")
    (packages / "stubborn_finder.py").write_text(
        "import importlib.util, sys\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'mypkg':\n"
        f"            return importlib.util.spec_from_file_location(name, {elsewhere!r})\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    result = await bench.check(["python", "-c", WHO])
    assert result.status is CheckStatus.NOT_ON_TREE
    assert "mypkg" in (result.detail or "")
    assert result.output is None


async def test_program_of_the_environment_is_found_and_its_pytest_tests_the_tree(bench: Bench) -> None:
    both_trees(bench)
    bench.write("tests/test_it.py", "import mypkg\ndef test_it(): assert mypkg.WHO == 'the tree'\n")
    packages = environment(bench)
    (packages / "others.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n{bench.person / 'src'}\n")
    script = packages.parents[2] / "bin" / "pytest"
    script.write_text(f"#!{bench.person}/.venv/bin/python\nimport sys, pytest\nsys.exit(pytest.main())\n")
    script.chmod(0o755)
    result = await bench.check("pytest -q -p no:cacheprovider tests")
    assert result.status is CheckStatus.PASSED, bench.output(result)
    bench.ours("src/mypkg/__init__.py", "WHO = 'broken'\n")
    result = await bench.check("pytest -q -p no:cacheprovider tests")
    assert result.status is CheckStatus.FAILED
    assert "AssertionError" in result.tail or "assert" in result.tail


async def test_tree_that_nobody_installed_is_left_alone(bench: Bench) -> None:
    both_trees(bench)
    environment(bench)
    result = await bench.check(["python", "-c", "import os; print(os.environ.get('PYTHONPATH'))"])
    assert result.detail is None
    assert bench.output(result).strip() == "None"


async def test_linked_packages_of_a_workspace_lead_to_the_tree(bench: Bench) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not on this machine")
    bench.theirs("packages/lib/index.js", "module.exports = 'the person'\n")
    bench.ours("packages/lib/index.js", "module.exports = 'the tree'\n")
    bench.write("packages/lib/package.json", '{"name": "@my/lib", "main": "index.js"}')
    bench.theirs("node_modules/other/index.js", "module.exports = 'other'\n")
    (bench.person / "node_modules" / "@my").mkdir()
    (bench.person / "node_modules" / "@my" / "lib").symlink_to("../../packages/lib")
    bench.share("node_modules")
    bench.ours("main.js", "console.log('runs on', require('@my/lib'), 'with', require('other'))\n")
    result = await bench.check("node main.js")
    assert "runs on the tree with other" in bench.output(result), result
    assert "@my/lib" in (result.detail or "")
    assert (bench.person / "node_modules" / "@my" / "lib").readlink() == Path("../../packages/lib")


async def test_linked_package_that_the_tree_no_longer_has_makes_the_check_prove_nothing(bench: Bench) -> None:
    bench.theirs("packages/lib/index.js", "module.exports = 'the person'\n")
    (bench.person / "node_modules").mkdir()
    (bench.person / "node_modules" / "lib").symlink_to("../packages/lib")
    bench.share("node_modules")
    result = await bench.check("true")
    assert result.status is CheckStatus.NOT_ON_TREE
    assert "packages/lib" in (result.detail or "")


@pytest.mark.parametrize("known", [("node_modules", "no_link", "gone/node_modules"), ()])
async def test_links_are_not_looked_for_where_it_is_known_which_there_are(bench: Bench, known) -> None:
    bench.theirs("packages/lib/index.js", "module.exports = 'the person'\n")
    bench.ours("no_link", "a file\n")
    (bench.person / "node_modules").mkdir()
    (bench.person / "node_modules" / "lib").symlink_to("../packages/lib")
    bench.share("node_modules")
    bench.place = replace(bench.place, modules=tuple(bench.place.worktree / path for path in known))
    result = await bench.check("true")
    assert result.status is (CheckStatus.NOT_ON_TREE if known else CheckStatus.PASSED)


async def test_absolute_paths_of_a_command_are_turned_to_the_tree(bench: Bench) -> None:
    bench.theirs("say.py", "print('the person')\n")
    bench.ours("say.py", "print('the tree')\n")
    result = await bench.check([PYTHON, str(bench.person / "say.py")])
    assert bench.output(result).strip() == "the tree"
    assert str(bench.person) in (result.detail or "")


async def test_absolute_path_inside_a_file_fails_instead_of_passing_and_says_why(bench: Bench) -> None:
    bench.theirs("data.txt", "fine")
    bench.ours("test.py", f"assert open({str(bench.person / 'data.txt')!r}).read() == 'fine'\n")
    result = await bench.check([PYTHON, "test.py"])
    assert result.status is CheckStatus.FAILED
    assert "lead out of the tree" in (result.detail or "")


def test_only_whole_paths_are_turned(bench: Bench) -> None:
    root, tree = str(bench.person), str(bench.place.worktree)
    argv = ("run", root, f"{root}/a", f"--dir={root}/b", f"{root}2/c", f"/mnt{root}/d", f"-I{root}/e")
    moved = move_arguments(argv, {"PYTHONPATH": f"{root}/src:/usr/lib"}, bench.place)
    assert moved.argv[1:4] == (tree, f"{tree}/a", f"--dir={tree}/b")
    assert moved.argv[4] == f"{root}2/c"
    assert moved.argv[5] == f"/mnt{root}/d"
    assert moved.environment == {"PYTHONPATH": f"{tree}/src:/usr/lib"}
