"""What callers hand over as a schema is judged without fetching, and never ends a program of ours."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from baton.contract.json_schema import schema_fault, value_fault

STRING = {"type": "string"}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/word", "$defs": {"word": STRING}},
        {"$ref": "#/definitions/word", "definitions": {"word": STRING}},
        {"$ref": "#word", "$defs": {"w": {"$anchor": "word", **STRING}}},
        {"$id": "https://example.org/top", "$ref": "top#/$defs/word", "$defs": {"word": STRING}},
    ],
)
def test_references_within_the_schema_are_followed(schema: dict[str, Any]) -> None:
    assert schema_fault(schema) is None
    assert value_fault("yes", schema) is None
    assert value_fault(1, schema) == "at its top: 1 is not of type 'string'"


@pytest.mark.parametrize(
    "reference", ["#/$defs/gone", "#gone", "https://example.org/x", "file:///dev/null", "http://[odd"]
)
def test_reference_to_nothing_is_told_before_and_after(reference: str) -> None:
    fault = schema_fault({"properties": {"a": {"$ref": reference}}})
    assert fault is not None and reference in fault and "nothing is fetched" in fault
    late = value_fault({"a": 1}, {"properties": {"a": {"$ref": reference}}})
    assert late is not None and "refers to" in late


def test_words_that_look_like_a_reference_are_data_where_data_stands() -> None:
    assert schema_fault({"enum": [{"$ref": "x"}]}) is None


def test_nothing_is_ever_fetched() -> None:
    asked = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        schema = {"$ref": f"http://127.0.0.1:{server.server_port}/schema"}
        assert schema_fault(schema) is not None and value_fault({}, schema) is not None
        server.shutdown()
    assert asked == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "thing"}, "at type: 'thing' is not valid"),
        ({"pattern": "("}, "at pattern: '(' is not a 'regex'"),
        (nested(3000), "nested too deeply"),
        ({"description": "x" * 200}, "longer than 200 bytes"),
    ],
)
def test_unsound_schema_is_one_line(schema: dict[str, Any], words: str) -> None:
    fault = schema_fault(schema, 200) if "description" in schema else schema_fault(schema)
    assert fault is not None and words in fault and len(fault.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        ({}, {"$ref": "#"}, "without end"),
        (float("inf"), {"multipleOf": 0.1}, "cannot be judged"),
        (float("nan"), {"multipleOf": 0.1}, "cannot be judged"),
        (10**400, {"multipleOf": 0.5}, "cannot be judged"),
    ],
)
def test_what_cannot_be_judged_does_not_satisfy(value: Any, schema: dict[str, Any], words: str) -> None:
    assert words in (value_fault(value, schema) or "")
