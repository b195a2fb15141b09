"""JSON Schemas that a caller hands over: whether one can be judged with, and what a value lacks of it. Pure.

Nothing is ever fetched: the library would otherwise load what `$ref` names, from the network or a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import best_match
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

_SHOWN = 300


def schema_fault(schema: Mapping[str, Any], most: int | None = None) -> str | None:
    """Why a schema cannot be judged with, in one line; None when it can. Draft 2020-12.

    `most` bounds its bytes as JSON.
    """
    try:
        if most is not None and len(json.dumps(schema)) > most:
            return f"longer than {most} bytes"
        Draft202012Validator.check_schema(schema)
        reference = _lost_reference(schema)
    except SchemaError as error:
        return _at(error.absolute_path, error.message)
    except RecursionError:
        return "nested too deeply"
    if reference is not None:
        return f"$ref {reference[:100]!r} names nothing in the schema itself, and nothing is fetched"
    return None


def value_fault(value: object, schema: Mapping[str, Any]) -> str | None:
    """What a value lacks of a sound schema, in one line; None when it satisfies it."""
    try:
        error = best_match(Draft202012Validator(schema, registry=Registry()).iter_errors(value))
    except Unresolvable as lost:
        return f"the schema refers to {str(lost.ref)[:100]!r}, which is nothing in it"
    except RecursionError:
        return "value and schema are nested without end, or too deeply"
    except (ArithmeticError, ValueError) as odd:  # numbers that JSON does not have: NaN, infinity
        return f"it holds a number that cannot be judged: {odd}"[:_SHOWN]
    return None if error is None else _at(error.absolute_path, error.message)


def _at(path: Any, message: str) -> str:
    where = "/".join(str(part) for part in path)
    return " ".join(f"at {where or 'its top'}: {message}".split())[:_SHOWN]


def _lost_reference(schema: Mapping[str, Any]) -> str | None:
    """The first reference that leads to nothing in the schema."""
    top: Resource[Any] = DRAFT202012.create_resource(schema)
    found = [(top, Registry().resolver_with_root(top))]
    while found:
        part, resolver = found.pop()
        if isinstance(part.contents, Mapping):
            for key in ("$ref", "$dynamicRef"):
                reference = part.contents.get(key)
                if isinstance(reference, str):
                    try:
                        resolver.lookup(reference)
                    except Unresolvable:
                        return reference
        found += [(below, resolver.in_subresource(below)) for below in part.subresources()]
    return None
