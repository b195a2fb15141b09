"""Compact JSON schemas of the contract's models, as the tools declare them.

The validation is the contract's own; these schemas tell a model what to write. So they leave out what only
repeats the names (titles), what nobody should spell (null defaults), and bounds no caller meets.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

_NOISE = frozenset({"title", "maxLength", "minLength"})


def input_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a call's arguments with wire names, definitions inlined, unknown keys refused."""
    raw = model.model_json_schema(by_alias=True)
    definitions = raw.pop("$defs", {})
    raw.pop("description", None)
    compact = _compact(raw, definitions)
    assert isinstance(compact, dict)
    return compact


def _compact(node: object, definitions: dict[str, Any]) -> object:
    if isinstance(node, list):
        return [_compact(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    node = _without_null(node)
    if "$ref" in node:
        # The name of the property says what the type's own description would.
        target = {k: v for k, v in definitions[node["$ref"].rpartition("/")[2]].items() if k != "description"}
        node = {**target, **{k: v for k, v in node.items() if k != "$ref"}}
    kept: dict[str, object] = {}
    for key, value in node.items():
        if key == "properties":
            kept[key] = {name: _compact(inner, definitions) for name, inner in value.items()}
        elif key not in _NOISE and not (key == "default" and value in (None, [], {}, False)):
            kept[key] = _compact(value, definitions)
    return kept


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """`T or null` becomes T: leaving the key out is how a caller says null."""
    branches = [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]
    if len(branches) != 1:
        return node
    rest = {key: value for key, value in node.items() if key != "anyOf"}
    return {**branches[0], **rest}
