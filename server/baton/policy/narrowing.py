"""What a project's file may do to each key: the rules, and the pure test of a value against them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Rule(StrEnum):
    """How a value may move in a layer that is not trusted to widen anything."""

    MAX = "max"
    """The value is an upper limit: it may only go down."""
    MIN = "min"
    """The value is a lower limit: it may only go up."""
    SUBSET = "subset"
    """Entries may only be taken away."""
    SUPERSET = "superset"
    """Entries may only be added."""
    ORDER = "order"
    """The value may only move towards the strict end of a list."""
    FIXED = "fixed"
    """Only the person may change it."""


@dataclass(frozen=True)
class Narrowing:
    """A key's rule, as annotation of its field; it also appears in the JSON schema as `x-narrowing`."""

    rule: Rule
    order: tuple[Any, ...] = ()
    """For `Rule.ORDER`: every value, loosest first."""

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core_schema)
        entry: dict[str, Any] = {"rule": self.rule.value}
        if self.order:
            entry["order"] = list(self.order)
        schema["x-narrowing"] = entry
        return schema

    def widens(self, current: Any, wanted: Any) -> str | None:
        """What is allowed instead, if going from `current` to `wanted` widens; None if it does not."""
        if wanted == current:
            return None
        match self.rule:
            case Rule.MAX:
                return None if wanted <= current else f"at most {shown(current)}"
            case Rule.MIN:
                return None if wanted >= current else f"at least {shown(current)}"
            case Rule.SUBSET:
                return None if _within(wanted, current) else f"only entries of {shown(current)}"
            case Rule.SUPERSET:
                return None if _within(current, wanted) else f"all of {shown(current)}, and more"
            case Rule.ORDER:
                allowed = self.order[self.order.index(current) :]
                return None if wanted in allowed else "one of " + ", ".join(shown(value) for value in allowed)
            case Rule.FIXED:
                return f"{shown(current)}, which only the person's own policy may change"


FIXED = Narrowing(Rule.FIXED)
MAX = Narrowing(Rule.MAX)
MIN = Narrowing(Rule.MIN)
SUBSET = Narrowing(Rule.SUBSET)
SUPERSET = Narrowing(Rule.SUPERSET)


def ordered(*loosest_first: Any) -> Narrowing:
    """A rule that lets a value move only towards the end of this list."""
    return Narrowing(Rule.ORDER, loosest_first)


def shown(value: object) -> str:
    """A value as a person would write it in TOML; long ones are cut."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if value < 1e6 else str(value)
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, list | tuple):
        text = "[" + ", ".join(shown(entry) for entry in value) + "]"
    else:
        text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."


def _within(inner: Collection[Any], outer: Collection[Any]) -> bool:
    return all(entry in outer for entry in inner)
