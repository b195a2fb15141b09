"""Numbers and booleans that are taken for what they are in JSON, and never made of something else."""

from __future__ import annotations

from typing import Any, cast

from pydantic_core import CoreSchema, core_schema


def be_strict(node: Any) -> Any:
    """Make the numbers and booleans below a schema strict, in place; returns what is to stand in its place.

    An integer may be written `3.0`, as in JSON Schema: JSON has one kind of number.
    """
    if isinstance(node, list | tuple):
        return type(node)(map(be_strict, node))
    if not isinstance(node, dict):
        return node
    for key in node.keys() - {"default", "metadata"}:
        node[key] = be_strict(node[key])
    if node.get("type") not in ("int", "float", "bool") or node.get("strict"):
        return node
    node["strict"] = True
    if node["type"] != "int":
        return node
    return core_schema.no_info_before_validator_function(_whole, cast(CoreSchema, node))


def _whole(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value
