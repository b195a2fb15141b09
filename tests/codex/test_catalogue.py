"""The models of the installed Codex are read from Codex, and kept only while they are the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from baton.codex.catalogue import catalogue, read_catalogue
from baton.contract.errors import CodexFailure
from baton.simulate.model_server import ScriptedModel
from codex.workers_bench import Bench

pytestmark = pytest.mark.anyio

PROGRAM = """#!/bin/sh
echo "$@" >> {log}
{body}
"""


def _program(folder: Path, body: str) -> tuple[Path, Path]:
    program, log = folder / "codex", folder / "calls"
    program.write_text(PROGRAM.format(log=log, body=body))
    program.chmod(0o755)
    return program, log


def _listing(*slugs: str) -> str:
    return json.dumps({"models": [{"slug": slug} for slug in slugs]})


@pytest.mark.codex
async def test_the_real_codex_lists_families_with_their_efforts(
    test_root: Path, codex_binary: Path, model: ScriptedModel
) -> None:
    bench = Bench(test_root, codex_binary, model.port)
    cache = test_root / "cache.json"
    entries = await catalogue(codex_binary, bench.home, bench.environment, cache)
    found = {entry.slug: entry for entry in entries}
    luna = found["gpt-5.6-luna"]
    assert luna.efforts == ("low", "medium", "high", "xhigh", "max")
    assert (luna.default_effort, luna.upgrade, luna.listed) == ("medium", "gpt-6-luna", True)
    assert luna.context_window == 272000
    assert not found["codex-auto-review"].listed
    assert "ultra" in found["gpt-5.6-sol"].efforts
    before = cache.read_bytes()
    assert await catalogue(codex_binary, bench.home, bench.environment, cache) == entries
    assert cache.read_bytes() == before


async def test_a_kept_list_is_used_until_program_or_home_change(test_root: Path) -> None:
    program, log = _program(test_root, f"echo '{_listing('one')}'")
    cache = test_root / "cache.json"

    async def ask() -> list[str]:
        return [entry.slug for entry in await catalogue(program, test_root, {"PATH": os.defpath}, cache)]

    assert [await ask(), await ask()] == [["one"], ["one"]]
    assert len(log.read_text().splitlines()) == 1
    (test_root / "models_cache.json").write_text("{}")
    await ask()
    assert len(log.read_text().splitlines()) == 2
    cache.write_text('{"key": "damaged')
    await ask()
    assert len(log.read_text().splitlines()) == 3
    _program(test_root, f"echo '{_listing('two', 'three')}'")
    assert await ask() == ["two", "three"]


async def test_what_the_program_brings_is_taken_when_nothing_else_is_to_be_had(test_root: Path) -> None:
    body = f"""case "$*" in *--bundled) echo '{_listing("own")}';; *) exit 1;; esac"""
    program, log = _program(test_root, body)
    entries = await catalogue(program, test_root, {"PATH": os.defpath}, test_root / "no" / "cache.json")
    assert [entry.slug for entry in entries] == ["own"]
    assert len(log.read_text().splitlines()) == 2


async def test_a_codex_that_lists_nothing_is_one_line(test_root: Path) -> None:
    program, _ = _program(test_root, "echo nonsense >&2; exit 3")
    with pytest.raises(CodexFailure, match="nonsense"):
        await catalogue(program, test_root, {"PATH": os.defpath})
    with pytest.raises(CodexFailure):
        await catalogue(test_root / "missing", test_root, {})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"models": {}}', '{"models": []}', '{"models": [{}, 3]}'])
def test_what_is_no_list_of_models_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_catalogue(text)


def test_members_that_are_missing_or_new_do_no_harm() -> None:
    models = [
        {"slug": "a", "new": [1]},
        {"slug": "b", "supported_reasoning_levels": ["low"], "upgrade": "c"},
        {},
    ]
    first, second = read_catalogue(json.dumps({"models": models}))
    assert (first.efforts, first.default_effort, first.upgrade, first.listed) == ((), None, None, True)
    assert (second.efforts, second.upgrade) == (("low",), "c")
