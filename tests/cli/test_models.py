"""`baton models` with Codex programs that list what a test wants, and with the real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Run

Install = Callable[..., Path]


@pytest.fixture
def install(test_root: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A Codex program that lists these models."""

    def make(*models: dict[str, Any]) -> Path:
        program = test_root / "codex"
        listed = test_root / "models.json"
        listed.write_text(json.dumps({"models": list(models)}))
        program.write_text(
            f'#!/bin/sh\ncase "$*" in *--version*) echo codex-cli 9.0.0;; *) cat {listed};; esac\n'
        )
        program.chmod(0o755)
        monkeypatch.setenv("BATON_CODEX_BIN", str(program))
        return program

    return make


def _model(slug: str, *efforts: str, **more: Any) -> dict[str, Any]:
    return {
        "slug": slug,
        "supported_reasoning_levels": [{"effort": effort} for effort in efforts],
        "default_reasoning_level": efforts[0] if efforts else None,
        **more,
    }


STEPS = ("low", "medium", "high", "ultra")


def test_newer_catalogue_moves_the_tiers_to_the_newest_listed_members(run: Run, install: Install) -> None:
    install(
        _model("gpt-5.6-luna", *STEPS, upgrade={"model": "gpt-7-luna"}),
        _model("gpt-7-luna", *STEPS),
        _model("gpt-8-luna", *STEPS, visibility="hide"),
        _model("gpt-7.10-terra", *STEPS),
        _model("gpt-7.9-terra", *STEPS),
        _model("gpt-9-sol", *STEPS),
    )
    done = run("models", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert {tier["name"]: tier["model"] for tier in told["tiers"]} == {
        "luna": "gpt-7-luna",
        "terra": "gpt-7.10-terra",
        "sol": "gpt-9-sol",
    }
    models = {model["slug"]: model for model in told["models"]}
    assert models["gpt-7-luna"]["tiers"] == ["luna"]
    assert models["gpt-7-luna"]["workerEfforts"] == ["low", "medium", "high"]
    assert models["gpt-5.6-luna"]["upgrade"] == "gpt-7-luna"
    assert models["gpt-8-luna"]["visibility"] == "hide"
    text = run("models").output
    assert "on its way out, gpt-7-luna replaces it" in text and "not listed" in text


def test_retired_pinned_slug_is_refused_with_the_candidates(
    run: Run, install: Install, own_home: Path
) -> None:
    install(_model("gpt-7-luna", *STEPS), _model("gpt-7-terra", *STEPS), _model("gpt-7-sol", *STEPS))
    own = own_home / ".codex/baton/policy.toml"
    own.parent.mkdir()
    own.write_text("[tiers.luna]\nresolve = 'pinned'\n")
    done = run("models")
    assert done.exit_code == 1
    expected = "tiers.luna.pinned: the installed Codex has no model 'gpt-5.6-luna'; candidates: gpt-7-luna"
    assert done.output.splitlines()[-1] == expected
    told = json.loads(run("models", "--json").output)
    assert told["tiers"][0] == {"name": "luna", "model": None, "effort": None, "note": expected}


def test_model_without_efforts_is_usable_and_one_that_only_delegates_is_not(
    run: Run, install: Install
) -> None:
    install(_model("gpt-7-luna"), _model("gpt-7-terra", "ultra"), _model("gpt-7-sol", "low"))
    done = run("models", "--json")
    told = json.loads(done.output)
    luna, terra, sol = told["tiers"]
    assert (luna["model"], luna["effort"]) == ("gpt-7-luna", None)
    assert luna["note"] == "gpt-7-luna has no reasoning efforts; medium was asked"
    assert terra["model"] is None and "would make the worker delegate" in terra["note"]
    assert (sol["effort"], sol["note"]) == ("low", "effort high is not one of gpt-7-sol's; low is used")
    assert [model["workers"] for model in told["models"]] == [True, False, True]
    assert done.exit_code == 1


def test_absent_codex_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BATON_CODEX_BIN", "/nowhere/codex")
    done = run("models")
    assert done.exit_code == 1
    assert done.output == "baton: BATON_CODEX_BIN names /nowhere/codex, which does not exist\n"


@pytest.mark.codex
def test_real_codex_has_a_model_for_every_tier(
    run: Run, codex_binary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATON_CODEX_BIN", str(codex_binary))
    done = run("models", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert all(tier["model"] and tier["effort"] for tier in told["tiers"])
    assert not any("ultra" in model["workerEfforts"] for model in told["models"])
