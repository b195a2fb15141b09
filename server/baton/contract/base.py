"""The base of every wire model: camelCase on the wire, frozen, unknown keys refused with the nearest name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, ErrorDetails

from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.contract.strict import be_strict


class Wire(BaseModel):
    """A frozen model whose attributes are snake_case in Python and camelCase on the wire.

    Numbers and booleans are what they are in JSON: `true` and `"3"` are no integers and `1` is no boolean.
    `3.0` is the integer 3, as in JSON Schema, since JSON has one kind of number.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )

    def wire(self, *, compact: bool = True) -> dict[str, Any]:
        """The JSON-ready form with camelCase keys; `compact` leaves out values that are None."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=compact)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        be_strict(handler.resolve_ref_schema(schema))
        return schema


W = TypeVar("W", bound=BaseModel)


def parse(model: type[W], data: object, where: str) -> W:
    """Validate foreign data as `model`.

    Raises `InvalidInput` with one line that names every fault (at most five), its place below `where`, and
    for an unknown key the nearest valid one. Only wire names are accepted, never Python ones.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where}: expected an object, got {_kind(data)}")
    try:
        return model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = _lines(error, where, model)
        if len(lines) > 5:
            lines[5:] = [f"and {len(lines) - 5} more"]
        raise InvalidInput("; ".join(lines)) from None


def faults_of(model: type[BaseModel], data: object, where: str) -> list[str]:
    """Every fault of foreign data as `parse` would tell it, a line for each; empty when it is valid."""
    if not isinstance(data, Mapping):
        return [f"{where}: expected an object, got {_kind(data)}"]
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return _lines(error, where, model)
    return []


def _lines(error: ValidationError, where: str, model: type[BaseModel]) -> list[str]:
    faults = error.errors(include_url=False, include_context=True)
    return [_describe(fault, where, model) for fault in faults]


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    for known, name in names.items():
        if isinstance(value, known):
            return name
    return "a number" if isinstance(value, int | float) else type(value).__name__


def _describe(fault: ErrorDetails, where: str, model: type[BaseModel]) -> str:
    # Pydantic adds the names of union branches to the location; they are not part of the person's data.
    steps = [part for part in fault["loc"] if isinstance(part, int) or re.fullmatch(r"\w+", part)]
    place = where + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in steps)
    if fault["type"] == "extra_forbidden":
        known = _names_at(model, fault["loc"][:-1])
        advice = did_you_mean(str(fault["loc"][-1]), known, "known keys: " + ", ".join(sorted(known)))
        return f"{place}: unknown key; {advice}"
    if fault["type"] == "missing":
        return f"{place}: required, but missing"
    text = fault["msg"].removeprefix("Value error, ")
    return f"{place}: {text[:1].lower()}{text[1:]} (got {_shown(fault['input'])})"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _names_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Wire names of the model that lies at `location` below `model`."""
    current: type[BaseModel] = model
    for part in location:
        if isinstance(part, int):
            continue
        for name, field in current.model_fields.items():
            if part in (name, field.alias):
                inner = _model_in(field.annotation)
                if inner is not None:
                    current = inner
                break
    return [field.alias or name for name, field in current.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _model_in(part)
        if found is not None:
            return found
    return None
