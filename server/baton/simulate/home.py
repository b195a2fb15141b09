"""A Codex home that talks to the scripted model, so that no login is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

PROVIDER = "sim"
"""Name of the provider in the written config."""

DEFAULT_MODEL = "gpt-5.6-luna"


def write_simulated_home(
    folder: Path, port: int, *, model: str = DEFAULT_MODEL, extra: Mapping[str, Any] | None = None
) -> Path:
    """Make `folder` a Codex home whose provider is the scripted model at `port`; returns the folder.

    `extra` holds further top-level keys of config.toml. An existing config.toml is replaced. The folder must
    not lie under the system's temporary folder: Codex refuses such a home.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    config: dict[str, Any] = {"model": model, "model_provider": PROVIDER, **(extra or {})}
    providers = {**config.get("model_providers", {}), PROVIDER: simulated_provider(port)}
    config["model_providers"] = providers
    (folder / "config.toml").write_text(tomlkit.dumps(config), encoding="utf-8")
    return folder


def simulated_provider(port: int) -> dict[str, Any]:
    """The provider table of the scripted model at `port`."""
    return {
        "name": "simulated",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "wire_api": "responses",
    }
