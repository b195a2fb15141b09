"""The shipped policy is complete, explained, and the only place of defaults."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema
from pydantic import BaseModel

from baton.policy.bundle import bundle_root
from baton.policy.load import load_layers, load_policy
from baton.policy.model import Policy
from baton.policy.narrowing import Rule
from baton.policy.schema import policy_schema, schema_text
from baton.policy.section import Section

SHIPPED = bundle_root() / "policy" / "policy.toml"


def _models(kind: type[BaseModel] = Section) -> Iterator[type[BaseModel]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _models(inner)


def _schema_leaves(schema: dict[str, Any], node: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    if "$ref" in node and "x-narrowing" not in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if "properties" in node:
        for name, inner in node["properties"].items():
            yield from _schema_leaves(schema, inner, f"{at}.{name}" if at else name)
    elif "patternProperties" in node:
        yield at, node
        for inner in node["patternProperties"].values():
            yield from _schema_leaves(schema, inner, f"{at}.*")
    else:
        yield at, node


def test_shipped_policy_loads_without_any_other_layer() -> None:
    policy = load_policy(None, None)
    assert policy.role(None)[0] == policy.routing.default_role
    assert all(role.tier in policy.tiers for role in policy.roles.values())


def test_python_holds_no_default_of_a_policy_key() -> None:
    with_default = [
        f"{model.__name__}.{name}"
        for model in _models()
        for name, field in model.model_fields.items()
        if not field.is_required()
    ]
    assert with_default == []


def test_first_mention_of_every_key_has_a_comment_above_it() -> None:
    commented, seen, above = set(), set(), False
    for line in SHIPPED.read_text(encoding="utf-8").splitlines():
        key = re.match(r"([a-z_]+) = ", line)
        if key:
            seen.add(key[1])
            if above:
                commented.add(key[1])
        # A comment stands for the lines right below it, up to an empty one.
        above = line.startswith("#") or (above and bool(line))
    assert seen - commented == set()


def test_tracked_schema_equals_the_model() -> None:
    tracked = bundle_root() / "policy" / "policy.schema.json"
    assert tracked.read_text(encoding="utf-8") == schema_text()


def test_schema_explains_every_key_and_says_what_narrowing_means() -> None:
    schema = policy_schema()
    leaves = dict(_schema_leaves(schema, schema))
    assert {"root.mode", "roles", "roles.*.effort", "limits.kept_bytes"} <= set(leaves)
    for name, leaf in leaves.items():
        assert leaf.get("description"), name
        # The entries of a table are titled by their names.
        assert leaf.get("title") or name.endswith(".*"), name
        assert leaf["x-narrowing"]["rule"] in list(Rule), name


def test_schema_accepts_the_shipped_file_and_a_partial_one_and_refuses_a_typo() -> None:
    validator = jsonschema.Draft202012Validator(policy_schema())
    assert validator.is_valid(tomllib.loads(SHIPPED.read_text(encoding="utf-8")))
    assert validator.is_valid({"deadlines": {"idle_seconds": 10}})
    assert not validator.is_valid({"deadlines": {"idle_secconds": 10}})


def test_policy_survives_being_kept_as_json_with_a_run() -> None:
    policy = load_policy(None, None)
    assert Policy.model_validate_json(policy.model_dump_json()) == policy


def test_every_value_is_listed_with_its_origin() -> None:
    values = list(load_layers(None, None).values())
    assert len(values) > 40
    assert {origin.file for _, _, origin in values} == {SHIPPED}
