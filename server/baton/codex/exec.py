"""One turn as a process, `codex exec --json`: its command line, and what its lines come to.

Codex reports neither the effective model nor the effort here: a route is only what was asked for. The prompt
goes over standard input, nothing through a shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from baton.codex.bubblewrap import with_bubblewrap
from baton.codex.failures import classify
from baton.codex.launch import WORKER_CONFIG, speaks_of_our_settings
from baton.codex.sandbox import toml_value
from baton.codex.settings import ThreadSettings, merge
from baton.codex.turn import MAX_NOTICE, MAX_NOTICES
from baton.contract.errors import Unsupported
from baton.contract.evidence import TurnFailure, Usage


def exec_argv(
    binary: Path,
    settings: ThreadSettings,
    *,
    resumed: str | None = None,
    schema: Path | None = None,
    disabled_servers: tuple[str, ...] = (),
) -> list[str]:
    """The command line; to be started in the settings' directory, with the prompt as its whole input.

    `resumed` is a thread to go on in: Codex keeps none of its settings, so all are given again. `schema` is a
    file with the JSON schema of the final message. Raises `Unsupported` when the boundary cannot be put on a
    command line.
    """
    if settings.profile.workspace_roots is not None:
        raise Unsupported(
            f"{settings.cwd} or a folder in its scope has a name that codex exec cannot be given (one of"
            " * ? [ ]): use the app-server back end"
        )
    # Codex looks for bubblewrap on the PATH of each command.
    led = replace(settings, environment=with_bubblewrap(settings.environment, binary))
    own = led.params()["config"]
    own = merge(own, {"approval_policy": "never", "model": settings.model})
    if disabled_servers:
        own = merge(own, {"mcp_servers": {name: {"enabled": False} for name in disabled_servers}})
    config = {**WORKER_CONFIG, **own}
    options = [part for key, value in config.items() for part in ("-c", f"{key}={toml_value(value)}")]
    where = ["-C", str(settings.cwd)] if resumed is None else []
    form = [] if schema is None else ["--output-schema", str(schema)]
    command = ["exec"] if resumed is None else ["exec", "resume"]
    named = [] if resumed is None else [resumed]
    return [
        *(str(binary), *command, "--json", "--skip-git-repo-check", "--strict-config"),
        *(*options, *where, *form, *named, "-"),
    ]


@dataclass
class ExecRecord:
    """Collects the lines of one process; pure but for its own fields."""

    thread_id: str | None = None
    completed: bool = False
    final_message: str | None = None
    failure: TurnFailure | None = None
    usage: Usage = field(default_factory=Usage)
    notices: list[str] = field(default_factory=list)
    answered: bool = False
    """Whether the model has answered anything."""

    def take(self, event: Mapping[str, Any]) -> None:
        """Note one event."""
        match event.get("type"):
            case "thread.started":
                self.thread_id = _text(event.get("thread_id")) or self.thread_id
            case "item.started" | "item.updated" | "item.completed":
                self._item(event)
            case "turn.completed":
                self.completed, self.answered, self.failure = True, True, None
                self._usage(event)
            case "turn.failed":
                error = event.get("error")
                self.completed = False
                self.failure = classify(error if isinstance(error, Mapping) else None)
            case "error":
                # "Reconnecting 2/5" comes this way too: only the end of the turn is a failure.
                self._note(str(event.get("message", "")))

    def _item(self, event: Mapping[str, Any]) -> None:
        item = event.get("item")
        if not isinstance(item, Mapping):
            return
        kind = item.get("type") or item.get("item_type")
        if kind == "error":
            self._note(str(item.get("message", "")))
            return
        self.answered = True
        if kind in ("agent_message", "assistant_message") and event.get("type") == "item.completed":
            self.final_message = _text(item.get("text"))

    def _usage(self, event: Mapping[str, Any]) -> None:
        table = event.get("usage")
        if not isinstance(table, Mapping):
            return
        counts = {name: table.get(name) for name in Usage.model_fields}
        known = {name: value for name, value in counts.items() if isinstance(value, int)}
        if "input_tokens" in known and "output_tokens" in known:
            known["total_tokens"] = known["input_tokens"] + known["output_tokens"]
        self.usage = Usage(**known)

    def _note(self, text: str) -> None:
        text = " ".join(text.split())[:MAX_NOTICE]
        if not text or speaks_of_our_settings(text) or text in self.notices:
            return
        if len(self.notices) < MAX_NOTICES:
            self.notices.append(text)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
