"""Checks a whole bundle: manifest, marketplace, servers, skills, agents, policy, renders, versions.

Every fault is one line: the file below the bundle, the key, and what is expected.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from baton.contract.base import faults_of
from baton.contract.errors import BatonError
from baton.policy.bundle_models import (
    MAX_SKILL_LINES,
    AgentFile,
    Marketplace,
    McpFile,
    PluginManifest,
    SkillFront,
    SkillSheet,
)
from baton.policy.check import policy_faults
from baton.policy.load import load_policy
from baton.policy.render import check as render_check

PLUGIN = ".codex-plugin/plugin.json"
MARKET = ".agents/plugins/marketplace.json"
SERVERS = ".mcp.json"
PROJECT = "pyproject.toml"
PACKAGE = "server/baton/__init__.py"

_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)\)")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)

Reader = Callable[[str], object]


def bundle_faults(root: Path) -> list[str]:
    """All faults of the bundle at `root`, file by file; empty when it is as it should be."""
    found = [
        *_manifest(root),
        *_marketplace(root),
        *_servers(root),
        *_skills(root),
        *_agents(root),
        *_policy(root),
        *_versions(root),
    ]
    return list(dict.fromkeys(found))


def _manifest(root: Path) -> Iterator[str]:
    data = yield from _read(root, PLUGIN, json.loads, PluginManifest)
    for key in ("skills", "mcpServers", "hooks", "apps"):
        yield from _there(root, PLUGIN, key, data.get(key))
    interface = data.get("interface")
    shown = interface if isinstance(interface, dict) else {}
    pictures = shown.get("screenshots")
    for key in ("composerIcon", "logo"):
        yield from _there(root, PLUGIN, f"interface.{key}", shown.get(key))
    for picture in pictures if isinstance(pictures, list) else ():
        yield from _there(root, PLUGIN, "interface.screenshots", picture)


def _there(root: Path, file: str, key: str, path: object) -> Iterator[str]:
    if isinstance(path, str) and path.startswith("./") and not (root / path).exists():
        yield f"{file}: {key}: expected a path that exists, got {path}"


def _marketplace(root: Path) -> Iterator[str]:
    data = yield from _read(root, MARKET, json.loads, Marketplace)
    plugin = _json(root / PLUGIN)
    for number, entry in enumerate(_tables(data.get("plugins"))):
        place = f"{MARKET}: plugins[{number}]"
        if entry.get("name") != plugin.get("name"):
            yield f"{place}.name: expected {plugin.get('name')!r} as in {PLUGIN}, got {entry.get('name')!r}"
        source = entry.get("source")
        path = source.get("path") if isinstance(source, dict) else None
        if isinstance(path, str) and not (root / path / PLUGIN).is_file():
            yield f"{place}.source.path: expected a folder with {PLUGIN}, got {path}"


def _servers(root: Path) -> Iterator[str]:
    data = yield from _read(root, SERVERS, json.loads, McpFile)
    servers = data.get("mcpServers")
    for name, server in servers.items() if isinstance(servers, dict) else ():
        listed = server.get("env_vars") if isinstance(server, dict) else None
        names = [entry for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []
        for twice in sorted({entry for entry in names if names.count(entry) > 1}):
            yield f"{SERVERS}: mcpServers.{name}.env_vars: names {twice} twice"
        arguments = server.get("args") if isinstance(server, dict) else None
        for argument in arguments if isinstance(arguments, list) else ():
            if isinstance(argument, str) and "/" in argument and not (root / argument).exists():
                yield f"{SERVERS}: mcpServers.{name}.args: expected a file of the plugin, got {argument}"


def _skills(root: Path) -> Iterator[str]:
    folders = sorted(path for path in (root / "skills").glob("*") if path.is_dir())
    if not folders:
        yield "skills: expected at least one skill, got none"
    for folder in folders:
        yield from _skill(root, folder)


def _skill(root: Path, folder: Path) -> Iterator[str]:
    name = f"skills/{folder.name}/SKILL.md"
    front = yield from _read(root, name, _front_matter, SkillFront)
    if front and front.get("name") != folder.name:
        yield f"{name}: name: expected {folder.name!r} as its folder, got {front.get('name')!r}"
    text = _text(root / name)
    lines = len(text.splitlines())
    if lines > MAX_SKILL_LINES:
        yield f"{name}: expected at most {MAX_SKILL_LINES} lines, got {lines}"
    for link in _LINK.findall(text):
        if "://" not in link and not (folder / link).exists():
            yield f"{name}: expected a link to a file of the skill, got {link}"
    yield from _read(root, f"skills/{folder.name}/agents/openai.yaml", _yaml, SkillSheet)


def _agents(root: Path) -> Iterator[str]:
    for file in sorted((root / "agents").glob("*")):
        name = f"agents/{file.name}"
        if file.suffix != ".toml":
            yield f"{name}: expected only .toml files here"
            continue
        data = yield from _read(root, name, tomllib.loads, AgentFile)
        if data and data.get("name") != file.stem:
            yield f"{name}: name: expected {file.stem!r} as the file, got {data.get('name')!r}"


def _policy(root: Path) -> Iterator[str]:
    faults = policy_faults(None, None, root)
    yield from (fault.removeprefix(f"{root}/") for fault in faults)
    if not faults:
        try:
            yield from render_check(load_policy(None, None, root), root)
        except BatonError as error:
            yield error.message.removeprefix(f"{root}/")


def _versions(root: Path) -> Iterator[str]:
    """All files of the bundle name the version that the package has."""
    found = _VERSION.search(_text(root / PACKAGE))
    if found is None:
        yield f'{PACKAGE}: __version__: expected a line __version__ = "…"'
        return
    version = found[1]
    plugin = _json(root / PLUGIN).get("version")
    if plugin != version:
        yield f"{PLUGIN}: version: expected {version!r} as in {PACKAGE}, got {plugin!r}"
    try:
        project = tomllib.loads(_text(root / PROJECT)).get("project", {}).get("version")
    except tomllib.TOMLDecodeError as error:
        yield f"{PROJECT}: {error}"
        return
    if project != version:
        yield f"{PROJECT}: project.version: expected {version!r} as in {PACKAGE}, got {project!r}"


def _read(
    root: Path, name: str, reader: Reader, model: type[BaseModel]
) -> Generator[str, None, dict[str, Any]]:
    """Yield the faults of one file; returns its table, empty when it cannot be read."""
    try:
        data = reader((root / name).read_bytes().decode("utf-8"))
    except FileNotFoundError:
        yield f"{name}: expected this file, but it is missing"
        return {}
    except (OSError, ValueError) as error:
        yield f"{name}: cannot be read: {' '.join(str(error).split())}"
        return {}
    yield from (_spaced(line, name) for line in faults_of(model, data, name))
    return data if isinstance(data, dict) else {}


def _spaced(line: str, name: str) -> str:
    """`file.key: …` becomes `file: key: …`."""
    rest = line.removeprefix(name)
    return f"{name}: {rest[1:]}" if rest.startswith(".") else line


def _front_matter(text: str) -> object:
    found = _FRONT.match(text)
    if found is None:
        raise ValueError("expected front matter between two lines of ---")
    return _yaml(found[1])


def _yaml(text: str) -> object:
    # Only who checks a bundle needs the library.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        loaded: object = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ValueError(str(error)) from None
    return loaded


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(_text(path))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _tables(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
