"""The models of the installed Codex, as it lists them itself."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from baton.contract.catalogue import ModelEntry
from baton.contract.errors import CodexFailure
from baton.process.child import run

LIST_SECONDS = 20.0
MAX_BYTES = 64 * 1024 * 1024

_ENTRIES = TypeAdapter(tuple[ModelEntry, ...])


async def catalogue(
    binary: Path, home: Path, env: Mapping[str, str], cache: Path | None = None
) -> tuple[ModelEntry, ...]:
    """The models that Codex offers under this home, in its order.

    `env` is the whole environment of the call; CODEX_HOME is added. The answer is kept in the file `cache`
    for as long as the program and the home's list of models stay the same; a damaged cache costs time, never
    an error. What the service lists is asked for first, then what the program itself brings. Raises
    `CodexFailure` when neither can be had.
    """
    key = _key(binary, home)
    kept = _load(cache, key)
    if kept is not None:
        return kept
    failures = []
    for options in ([], ["--bundled"]):
        try:
            entries = await _ask([str(binary), "debug", "models", *options], home, env)
        except (OSError, ValueError) as error:
            failures.append(str(error))
            continue
        _save(cache, _key(binary, home), entries)
        return entries
    raise CodexFailure(f"Codex does not list its models ({binary}): {failures[-1]}")


def read_catalogue(text: str | bytes) -> tuple[ModelEntry, ...]:
    """The models in what `codex debug models` prints. Raises ValueError when it is no such list.

    An entry without a slug is left out; unknown members are passed over.
    """
    data = json.loads(text)
    models = data.get("models") if isinstance(data, dict) else None
    if not isinstance(models, list):
        raise ValueError("the answer holds no list of models")
    entries = tuple(_entry(model) for model in models if isinstance(model, dict) and model.get("slug"))
    if not entries:
        raise ValueError("the list of models is empty")
    return entries


def _entry(model: Mapping[str, Any]) -> ModelEntry:
    levels = model.get("supported_reasoning_levels")
    efforts = [level.get("effort") if isinstance(level, dict) else level for level in levels or ()]
    upgrade = model.get("upgrade")
    upgrade = upgrade.get("model") if isinstance(upgrade, dict) else upgrade
    window = model.get("context_window")
    default = model.get("default_reasoning_level")
    return ModelEntry(
        slug=str(model["slug"]),
        efforts=tuple(effort for effort in efforts if isinstance(effort, str)),
        default_effort=default if isinstance(default, str) else None,
        visibility=str(model.get("visibility") or "list"),
        upgrade=upgrade if isinstance(upgrade, str) else None,
        context_window=window if isinstance(window, int) else None,
    )


async def _ask(argv: list[str], home: Path, env: Mapping[str, str]) -> tuple[ModelEntry, ...]:
    done = await run(
        argv,
        cwd=home,
        env={**env, "CODEX_HOME": str(home)},
        timeout=LIST_SECONDS,
        max_output=MAX_BYTES,
        errors_apart=True,
    )
    if done.timed_out:
        raise ValueError(f"no answer within {LIST_SECONDS:g} s")
    if done.exit_code != 0:
        lines = done.errors.decode("utf-8", "replace").strip().splitlines()
        raise ValueError(lines[-1][:300] if lines else f"status {done.exit_code}")
    return read_catalogue(done.output)


def _key(binary: Path, home: Path) -> list[str]:
    """What must be unchanged for a kept list to hold."""
    return [_identity(path) for path in (binary, home / "config.toml", home / "models_cache.json")]


def _identity(path: Path) -> str:
    try:
        real = path.resolve()
        found = real.stat()
    except OSError:
        return f"{path}: none"
    return f"{real}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _load(cache: Path | None, key: list[str]) -> tuple[ModelEntry, ...] | None:
    if cache is None:
        return None
    try:
        data = json.loads(cache.read_bytes())
        if not isinstance(data, dict) or data.get("key") != key:
            return None
        return _ENTRIES.validate_python(data.get("models")) or None
    except (OSError, ValueError, ValidationError):
        return None


def _save(cache: Path | None, key: list[str], entries: tuple[ModelEntry, ...]) -> None:
    if cache is None:
        return
    data = {"key": key, "models": [entry.wire() for entry in entries]}
    with contextlib.suppress(OSError):
        descriptor, name = tempfile.mkstemp(dir=cache.parent, prefix=".catalogue-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file)
        Path(name).replace(cache)
