"""The reference pages of `docs/`, from the code that they describe: policy, tools, commands, events."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from baton.cli.main import baton
from baton.contract.events import EVENT_KINDS
from baton.policy.schema import policy_schema
from baton.tools.catalogue import ToolSpec, tool_specs
from baton.tools.consult_catalogue import consult_specs
from baton.tools.review_catalogue import review_specs
from baton.tools.schemas import input_schema
from baton.tools.workflow_catalogue import workflow_specs

BEGIN, END = "<!-- from the code: scripts/docs.py -->", "<!-- end -->"
"""What is between these lines is rendered; the rest of a page is written by hand."""

MAX_NAMED = 10
"""Keys of an object that are named in its type."""

RULES = {
    "max": "lower it",
    "min": "raise it",
    "subset": "take entries away",
    "superset": "add entries",
    "order": "make it stricter",
    "fixed": "not change it",
}


def reference_parts(root: Path) -> dict[str, str]:
    """What each page of the bundle at `root` has to hold between its marks, by its path."""
    return {
        "docs/configuration.md": "\n".join(_policy(root)),
        "docs/tools.md": "\n".join(_tools()),
        "docs/commands.md": "\n".join(_commands()),
        "docs/events.md": "\n".join(_events()),
    }


def stale_pages(root: Path) -> list[str]:
    """A line for every page that is not as the code says."""
    found = []
    for name, part in reference_parts(root).items():
        page = _read(root / name)
        if page is None or _with(page, part) != page:
            found.append(f"{name}: not as the code says; run scripts/docs.py")
    return found


def write_pages(root: Path) -> list[str]:
    """Bring every page up to date; the names of those that changed. A page without its marks is left alone.

    Raises `OSError`.
    """
    changed = []
    for name, part in reference_parts(root).items():
        page = _read(root / name)
        made = _with(page if page is not None else f"{BEGIN}\n{END}\n", part)
        if made is not None and made != page:
            (root / name).write_text(made, encoding="utf-8")
            changed.append(name)
    return changed


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _with(page: str, part: str) -> str | None:
    """The page with its rendered part replaced; None when it has no marks."""
    head, begin, rest = page.partition(BEGIN + "\n")
    _, end, tail = rest.partition(END + "\n")
    return f"{head}{begin}{part.strip()}\n{end}{tail}" if begin and end else None


# -- policy ---------------------------------------------------------------------------------------


def _policy(root: Path) -> Iterator[str]:
    schema = policy_schema()
    shipped = tomllib.loads((root / "policy" / "policy.toml").read_text(encoding="utf-8"))
    for name, node in schema["properties"].items():
        yield from _section(schema["$defs"], name, node, shipped.get(name))


def _section(definitions: Mapping[str, Any], name: str, node: Any, shipped: Any) -> Iterator[str]:
    if "patternProperties" in node:
        inner = _resolved(definitions, next(iter(node["patternProperties"].values())))
        yield f"\n### `[{name}.NAME]`\n"
        yield node.get("description") or inner.get("description", "")
        if shipped:
            yield f"\nShipped: {', '.join(f'`{one}`' for one in shipped)}."
        first = next(iter(shipped.values())) if shipped and "properties" in inner else None
        example = f"of `{next(iter(shipped))}`" if first is not None else "shipped"
        if "properties" in inner:
            rule = node.get("x-narrowing", {}).get("rule")
            yield from _keys(definitions, f"{name}.NAME", inner, first, example, rule)
        return
    resolved = _resolved(definitions, node)
    yield f"\n### `[{name}]`\n"
    yield resolved.get("description", "")
    yield from _keys(definitions, name, resolved, shipped, "shipped", None)


def _keys(
    definitions: Mapping[str, Any], table: str, node: Any, shipped: Any, example: str, rule: str | None
) -> Iterator[str]:
    rows, tables = [], []
    for key, inner in node["properties"].items():
        resolved = _resolved(definitions, inner)
        if "properties" in resolved or "patternProperties" in resolved:
            tables.append((key, inner))
            continue
        narrowing = inner.get("x-narrowing", resolved.get("x-narrowing", {})).get("rule", rule)
        value = shipped.get(key) if isinstance(shipped, dict) else None
        text = "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"
        meaning = _cell(inner.get("description") or resolved.get("description", ""))
        rows.append(f"| `{key}` | {_cell(text)} | {meaning} | {RULES.get(narrowing or '', '')} |")
    if rows:
        yield f"\n| key | {example} | meaning | a project may |\n|---|---|---|---|"
        yield from rows
    for key, inner in tables:
        values = shipped.get(key) if isinstance(shipped, dict) else None
        yield from _section(definitions, f"{table}.{key}", inner, values)


def _resolved(definitions: Mapping[str, Any], node: Any) -> Any:
    if "$ref" not in node:
        return node
    return {**definitions[node["$ref"].rpartition("/")[2]], **{k: v for k, v in node.items() if k != "$ref"}}


# -- tools ----------------------------------------------------------------------------------------


def _tools() -> Iterator[str]:
    for spec in tool_specs():
        yield from _tool(spec)
    optional = {"consult": consult_specs, "review": review_specs, "workflow": workflow_specs}
    for group, specs in optional.items():
        yield f"\n## Only with `{group}.enabled`"
        for spec in specs():
            yield from _tool(spec)


def _tool(spec: ToolSpec) -> Iterator[str]:
    yield f"\n### `{spec.name}`\n"
    yield spec.description
    schema = input_schema(spec.arguments)
    required = set(schema.get("required", ()))
    yield "\n| argument | type | |\n|---|---|---|"
    for name, node in schema["properties"].items():
        what = ["**Required.**"] if name in required else []
        what.append(node.get("description", ""))
        if "default" in node:
            what.append(f"Default: `{json.dumps(node['default'])}`.")
        yield f"| `{name}` | {_cell(_type(node))} | {_cell(' '.join(filter(None, what)))} |"


def _type(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    if "anyOf" in node:
        return " or ".join(_type(branch) for branch in node["anyOf"])
    if node.get("type") == "array":
        return f"list of {_type(node.get('items', {}))}"
    if 0 < len(node.get("properties", ())) <= MAX_NAMED:
        return f"object with {', '.join(f'`{name}`' for name in node['properties'])}"
    limits = [f"{word} {node[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in node]
    return " ".join([str(node.get("type", "any")), *limits])


# -- commands -------------------------------------------------------------------------------------


def _commands() -> Iterator[str]:
    context = click.Context(baton, info_name="baton")
    for name in baton.list_commands(context):
        command = baton.get_command(context, name)
        assert command is not None
        yield from _command(command, click.Context(command, info_name=name, parent=context))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _command(inner, click.Context(inner, info_name=name, parent=context))
        return
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    usage = " ".join([context.command_path, *(param.make_metavar(context) for param in arguments)])
    yield f"\n### `{usage}`\n"
    yield "\n\n".join(" ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n"))
    options = [param for param in command.params if isinstance(param, click.Option)]
    rows = [record for option in options if (record := option.get_help_record(context)) is not None]
    if rows:
        yield "\n| option | |\n|---|---|"
        yield from (f"| `{_cell(names)}` | {_cell(what)} |" for names, what in rows)


# -- events ---------------------------------------------------------------------------------------


def _events() -> Iterator[str]:
    yield "| kind | of a | written when | data |\n|---|---|---|---|"
    for kind in EVENT_KINDS:
        keys = [
            f"`{name}`: {key.type}{', optional' if key.optional else ''}; {key.meaning}"
            for name, key in kind.data.items()
        ]
        yield f"| `{kind.name}` | {kind.of} | {_cell(kind.when)} | {_cell('<br>'.join(keys))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
