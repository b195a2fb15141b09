"""What the tables of the policy are made of: their base, and the kinds of their values."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints

from baton.policy.narrowing import ordered

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(Effort)
"""Reasoning efforts a worker may be given, lowest first; without `ultra`, which delegates by itself."""


def unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """For lists in which no entry stands twice."""
    if len(set(values)) != len(values):
        raise ValueError("must not name an entry twice")
    return values


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable text")
    return value


def _folder_name(value: str) -> str:
    if value in ("", ".", "..") or not value.isprintable() or "/" in value or "\\" in value:
        raise ValueError("must be the name of a folder, not a path")
    return value


def _printable(value: str) -> str:
    if value and not value.isprintable():
        raise ValueError("must be one line of printable text")
    return value


def _path(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("must be the path of a folder")
    return value


# Strict everywhere, so that "4" is not silently read as 4; TOML has arrays only, hence lax tuples and enums.
LOOSE = Strict(False)
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_line)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$")]
Seconds = Annotated[float, Field(gt=0, le=604_800, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Bytes = Annotated[int, Field(ge=1, le=2**53)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableNames = Annotated[tuple[VariableName, ...], LOOSE, AfterValidator(unique)]
Host = Annotated[str, StringConstraints(pattern=r"^(\*\*?\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")]
FolderName = Annotated[str, AfterValidator(_folder_name)]
Argv = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], LOOSE, Field(min_length=1)]

FolderPath = Annotated[str, Field(max_length=1000), AfterValidator(_path)]
Word = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
ModelName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99})?$")]
PersonaName = Annotated[str, Field(min_length=1, max_length=40)]
Instructions = Annotated[str, Field(min_length=1, max_length=4000)]
Dollars = Annotated[float, Field(ge=0, le=1e6)]
LOWER_EFFORT = ordered(*reversed(EFFORTS))


class Section(BaseModel):
    """Base of every table of the policy."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
