"""Reads the person's Codex config.toml as far as a worker needs it: by allow-list."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.errors import InvalidInput

TOP_KEYS = (
    "chatgpt_base_url",
    "cli_auth_credentials_store",
    "forced_chatgpt_workspace_id",
    "forced_login_method",
    "model_catalog_json",
    "model_provider",
    "openai_base_url",
    "oss_provider",
)
"""Top-level keys that say how to reach the model, and which models there are."""

FEATURE_KEYS = ("respect_system_proxy",)
"""Feature flags that say how to reach the network."""

PROVIDER_KEYS = (
    "auth",
    "aws",
    "base_url",
    "env_http_headers",
    "env_key",
    "env_key_instructions",
    "experimental_bearer_token",
    "gateway_oauth",
    "http_headers",
    "model_catalog_url",
    "name",
    "query_params",
    "request_max_retries",
    "requires_openai_auth",
    "stream_idle_timeout_ms",
    "stream_max_retries",
    "supports_standalone_web_search",
    "supports_websockets",
    "websocket_connect_timeout_ms",
    "wire_api",
)
"""Keys of a provider's table that are taken over; all of them say how to talk to it."""


@dataclass(frozen=True)
class PersonConfig:
    """What of a config.toml concerns workers."""

    top: Mapping[str, Any]
    features: Mapping[str, Any]
    provider: str | None
    """Name of the provider in use; None is Codex's own default."""
    provider_table: Mapping[str, Any] | None
    """The provider's table, known keys only."""
    left_out: tuple[str, ...]
    mcp_servers: tuple[str, ...]

    @property
    def uses_openai_login(self) -> bool:
        """Whether the provider wants an OpenAI login: the default one does, a custom one when it says so."""
        if self.provider in (None, "openai"):
            return True
        return bool((self.provider_table or {}).get("requires_openai_auth"))


def read_person_config(home: Path) -> PersonConfig:
    """Read `home`/config.toml; a missing file is an empty one.

    Raises `InvalidInput`, one line with the file and the place, when it cannot be read as TOML or when a key
    that is taken over has the wrong type.
    """
    file = home / "config.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        data = {}
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{file}: cannot be read: {error}") from None
    selected = _table(data, "profiles", file).get(str(data.get("profile", "")), {})
    if isinstance(selected, dict) and "model_provider" in selected:
        data["model_provider"] = selected["model_provider"]
    top = {key: data[key] for key in TOP_KEYS if key in data}
    for key, value in top.items():
        if not isinstance(value, str | list):
            raise InvalidInput(f"{file}: {key} must be a string")
    if isinstance(top.get("model_catalog_json"), str):
        top["model_catalog_json"] = str(home / Path(top["model_catalog_json"]).expanduser())
    provider = data.get("model_provider")
    providers = _table(data, "model_providers", file)
    table = providers.get(provider) if provider else None
    if table is not None and not isinstance(table, dict):
        raise InvalidInput(f"{file}: model_providers.{provider} must be a table")
    known = {key: value for key, value in (table or {}).items() if key in PROVIDER_KEYS}
    return PersonConfig(
        top=top,
        features={key: value for key, value in _table(data, "features", file).items() if key in FEATURE_KEYS},
        provider=provider,
        provider_table=known if table is not None else None,
        left_out=tuple(f"model_providers.{provider}.{key}" for key in table or {} if key not in known),
        mcp_servers=tuple(_table(data, "mcp_servers", file)),
    )


def _table(data: Mapping[str, Any], key: str, file: Path) -> dict[str, Any]:
    table = data.get(key, {})
    if not isinstance(table, dict):
        raise InvalidInput(f"{file}: {key} must be a table")
    return table
