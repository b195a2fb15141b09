"""How the app-server is launched, so that a worker is only a worker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

FEATURES_OFF = (
    "plugins",
    "apps",
    "goals",
    "multi_agent",
    "multi_agent_v2",
    "hooks",
    "skill_search",
    "tool_suggest",
    "skill_mcp_dependency_install",
    "image_generation",
    "memories",
    # Runs the person's shell profile and hands its variables to every command.
    "shell_snapshot",
    # Would make a worker wait for ever for a network that is gone.
    "unbounded_connection_retries",
)

WORKER_CONFIG: Mapping[str, bool | int | str] = {
    "agents.enabled": False,
    "skills.include_instructions": False,
    # A login shell reads the person's profile and with it whatever that exports.
    "allow_login_shell": False,
    "web_search": "disabled",
    # Instructions of the repository reach the worker as data, in its brief.
    "project_doc_max_bytes": 0,
    "check_for_update_on_startup": False,
    **{f"features.{name}": False for name in FEATURES_OFF},
}
"""Settings of every worker: no delegation, no tools from elsewhere, no foreign instructions."""


def speaks_of_our_settings(notice: str) -> bool:
    """Whether a notice of Codex is about a feature that every worker has switched off: no news of a turn."""
    named = re.search(r"\[features\]`?\.`?(\w+)", notice)
    return named is not None and named.group(1) in FEATURES_OFF


def server_argv(
    binary: Path, extra: Mapping[str, bool | int | str] | None = None, disabled_servers: tuple[str, ...] = ()
) -> list[str]:
    """The command line of an app-server for workers.

    `disabled_servers` are MCP servers that the Codex home configures: tables merge, so each is switched off
    by its name. Unknown keys make Codex refuse to start.
    """
    config = {**WORKER_CONFIG, **(extra or {})}
    settings = [f"{key}={json.dumps(value)}" for key, value in config.items()]
    if disabled_servers:
        # As one table: Codex does not understand quotes in the key of an option, and names may need them.
        entries = ", ".join(f"{json.dumps(name)} = {{enabled = false}}" for name in disabled_servers)
        settings.append(f"mcp_servers={{{entries}}}")
    options = [part for setting in settings for part in ("-c", setting)]
    return [str(binary), "app-server", "--strict-config", *options]
