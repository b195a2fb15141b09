"""What the wire takes as a number and as a boolean, in every model of the contract."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

import baton.contract
from baton.contract.base import Wire, parse
from baton.contract.calls import WaitCall
from baton.contract.consult import ConsultCall
from baton.contract.errors import InvalidInput
from baton.contract.evidence import AttemptResult
from baton.contract.task import Task


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"count": True}, "count"),
        ({"count": "3"}, "count"),
        ({"count": 1.5}, "count"),
        ({"waitSeconds": False}, "waitSeconds"),
        ({"bothSides": "yes"}, "bothSides"),
        ({"bothSides": 1}, "bothSides"),
    ],
)
def test_number_or_boolean_of_another_kind_is_refused(given: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^call\.{place}: input should be a valid (integer|boolean)"):
        parse(ConsultCall, {"question": "why", **given}, "call")


def test_whole_number_may_be_written_with_a_point() -> None:
    call = parse(WaitCall, {"runId": "r1", "waitSeconds": 3.0}, "call")
    assert call.wait_seconds == 3 and isinstance(call.wait_seconds, int)


def test_range_still_holds_for_a_number_with_a_point() -> None:
    with pytest.raises(InvalidInput, match="less than or equal to 280"):
        parse(WaitCall, {"runId": "r1", "waitSeconds": 281.0}, "call")


def _models() -> Iterator[type[Wire]]:
    for module in pkgutil.iter_modules(baton.contract.__path__):
        for value in vars(importlib.import_module(f"baton.contract.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Wire) and value is not Wire:
                yield value


def _lax(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") in ("int", "float", "bool") and not node.get("strict"):
            yield node
        for key in node.keys() - {"default", "metadata"}:
            yield from _lax(node[key])
    elif isinstance(node, list | tuple):
        for each in node:
            yield from _lax(each)


def test_no_model_of_the_contract_has_a_lax_number() -> None:
    models = list(_models())
    assert {Task, AttemptResult} <= set(models)
    assert [model for model in models if list(_lax(TypeAdapter(model).core_schema))] == []
