"""The JSON schema of a policy file, for editors and for people who ask what a project may change."""

from __future__ import annotations

import json
from typing import Any

from baton.policy.model import Policy

SCHEMA_FILE = "policy/policy.schema.json"


def policy_schema() -> dict[str, Any]:
    """The schema of any layer: every key optional, since a layer names only what it changes.

    Each key carries `x-narrowing`: its rule, and for the rule `order` all values, loosest first.
    """
    schema = Policy.model_json_schema()
    _make_optional(schema)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def schema_text() -> str:
    """The schema as the file that ships."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


def _make_optional(node: Any) -> None:
    if isinstance(node, dict):
        if "properties" in node:
            node.pop("required", None)
        for inner in node.values():
            _make_optional(inner)
    elif isinstance(node, list):
        for inner in node:
            _make_optional(inner)
