"""Job files that a careless reader crashes on or misreads: each is refused by line, and nothing runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.pool.strict_jsonl import MAX_LINE_BYTES

from .desk import Desk, row

GOOD = b'{"id":"good","prompt":"Look."}\n'


@pytest.fixture
def desk(own_home: Path, test_root: Path) -> Desk:
    project = test_root / "project"
    project.mkdir()
    return Desk(own_home, project)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'\xef\xbb\xbf{"id":"a","prompt":"p"}', "byte order mark"),
        (b'{"id":"a","prompt":"\\ud800"}', r"lone surrogate (\ud800)"),
        (b'{"id":"a","prompt":"p","output_schema":{"\\udfff":1}}', r"lone surrogate (\udfff)"),
        (b'{"id":"a","prompt":"p","prompt":"q"}', "the key 'prompt' is given twice"),
        (
            b'{"id":"a","prompt":"p","output_schema":{"type":"object","type":"array"}}',
            "the key 'type' is given twice",
        ),
        (b'{"id":"a","prompt":"p","timeout_seconds":NaN}', "NaN is not a JSON number"),
        (b'{"id":"a","prompt":"p","timeout_seconds":Infinity}', "Infinity is not a JSON number"),
        (b'{"id":"a","prompt":"p","timeout_seconds":-Infinity}', "-Infinity is not a JSON number"),
        (b'{"id":"a","prompt":"p","timeout_seconds":1e999}', "the number '1e999' is too large"),
        (b'{"id":"a","prompt":"p","timeout_seconds":' + b"9" * 5000 + b"}", "is too large"),
        (b'["id","prompt"]', "must be one JSON object"),
        (b'"text"', "must be one JSON object"),
        (b"null", "must be one JSON object"),
        (b'{"id":"a","prompt":"p"} {"id":"b","prompt":"p"}', "not JSON: extra data, column 25"),
        (b'{"id":"a","prompt":"p"', "not JSON"),
        (b'{"id":"a","prompt":"a tab:\t"}', "not JSON: invalid control character"),
        (b"{'id':'a'}", "not JSON"),
        (b'{"id":"a","prompt":"\xff"}', "byte 21 is not UTF-8"),
        (b'{"id":"a","prompt":"\xed\xa0\x80"}', "byte 21 is not UTF-8"),
        (b'{"id":"a","prompt":"p","output_schema":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "nested deeper"),
        (b'{"id":"a","prompt":"p","output_schema":' + b'{"a":' * 300 + b"1" + b"}" * 301, "nested deeper"),
        (b'{"id":"a","prompt":"' + b"x" * MAX_LINE_BYTES + b'"}', "longer than 8 MiB"),
        (
            b'{"id":"a","prompt":"p","timeout_seconds":"30"}',
            "timeout_seconds: input should be a valid number",
        ),
        (
            b'{"id":"a","prompt":"p","timeout_seconds":true}',
            "timeout_seconds: input should be a valid number",
        ),
        (b'{"id":"a","prompt":"p","timeout_seconds":0}', "timeout_seconds: input should be greater than 0"),
        (b'{"id":"a","prompt":"p","safe_retry":"false"}', "safe_retry: input should be a valid boolean"),
        (b'{"id":"a","prompt":"p","safe_retry":null}', "safe_retry: input should be a valid boolean"),
        (b'{"id":7,"prompt":"p"}', "id: input should be a valid string"),
        (b'{"id":"../a","prompt":"p"}', "id: must be 1 to 128 letters"),
        (b'{"id":"a\\n","prompt":"p"}', "id: must be 1 to 128 letters"),
        (b'{"id":"","prompt":"p"}', "id: must be 1 to 128 letters"),
        (b'{"prompt":"p"}', "id: required, but missing"),
        (b'{"id":"a"}', "prompt: give either prompt or prompt_file"),
        (b'{"id":"a","prompt":"p","prompt_file":"q"}', "prompt: give either prompt or prompt_file"),
        (b'{"id":"a","prompt":" \\n"}', "prompt: must not be empty"),
        (b'{"id":"a","prompt":"\\u0000"}', "prompt: must not contain a NUL character"),
        (b'{"id":"a","prompt":"p","alowed_files":["x"]}', "alowed_files: unknown key; did you mean"),
        (b'{"id":"a","prompt":"p","safeRetry":true}', "safeRetry: unknown key; did you mean 'safe_retry'?"),
        (b'{"id":"a","prompt":"p","sandbox":"danger-full-access"}', "sandbox: input should be 'read-only'"),
        (b'{"id":"a","prompt":"p","model":"gpt-5.6-lunar"}', "did you mean 'gpt-5.6-luna'?"),
        (b'{"id":"a","prompt":"p","tier":"lunar"}', "tier: no tier 'lunar'; did you mean 'luna'?"),
        (b'{"id":"a","prompt":"p","tier":"luna","model":"gpt-5.6-luna"}', "name one of them, not both"),
        (b'{"id":"a","prompt":"p","effort":"hihg"}', "did you mean 'high'?"),
        (b'{"id":"a","prompt":"p","workdir":"nowhere"}', "workdir: no such folder: nowhere"),
        (b'{"id":"a","prompt":"p","workdir":"jobs.jsonl"}', "workdir: not a folder: jobs.jsonl"),
        (b'{"id":"a","prompt":"p","workdir":"\\u0000"}', "workdir: must not contain a NUL character"),
        (b'{"id":"a","prompt_file":"none.md"}', "prompt_file: no such file: none.md"),
        (b'{"id":"a","prompt":"p","depends_on":["goood"]}', "no job 'goood' in this file; did you mean"),
        (b'{"id":"a","prompt":"p","depends_on":["a"]}', "depends_on: waits for itself"),
        (b'{"id":"a","prompt":"p","depends_on":"good"}', "depends_on: input should be a valid list"),
        (b'{"id":"a","prompt":"p","verification_commands":["a && b"]}', "uses &&, which only a shell"),
        (b'{"id":"a","prompt":"p","verification_commands":[[]]}', "a command needs at least a program"),
        (b'{"id":"a","prompt":"p","output_schema":{"type":"objekt"}}', "output_schema: no valid JSON schema"),
        (b'{"id":"a","prompt":"p","output_schema":{"$ref":"http://x/y"}}', "leads out of the schema"),
        (b'{"id":"a","prompt":"p","output_schema":{"$ref":"#/nope"}}', "names nothing in the schema itself"),
        (b'{"id":"a","prompt":"p","output_schema":"s.json"}', "output_schema: input should be a valid dict"),
        (b'{"id":"a","prompt":"p","allowed_files":["src"]}', "allowed_files: only for a writer"),
        (b'{"id":"a","prompt":"p","isolate":true}', "isolate: only for a writer"),
        (
            b'{"id":"a","prompt":"p","sandbox":"workspace-write","allowed_files":["!src"]}',
            "allowed_files: pattern '!src' is a negation",
        ),
        (
            b'{"id":"a","prompt":"p","sandbox":"workspace-write","ownership_scope":"../other"}',
            "ownership_scope: pattern '../other' leaves the workspace",
        ),
        (
            b'{"id":"a","prompt":"p","sandbox":"workspace-write","ownership_scope":".git"}',
            ".git, which is never writable",
        ),
        (
            b'{"id":"a","prompt":"p","sandbox":"workspace-write","isolate":true,"model":"gpt-5.5"}',
            "isolate: runs on a tier, and none of the policy means gpt-5.5; name a tier",
        ),
        (
            b'{"id":"a","prompt":"p","sandbox":"workspace-write","isolate":true,"output_schema":{}}',
            "output_schema: an isolated job answers with Baton's own report",
        ),
        (b'{"id":"a","prompt":"p","ownership_scope":" "}', "ownership_scope: must not be empty"),
        (b'{"id":"good","prompt":"p"}', "id: 'good' is already the id of line 1"),
        (b'{"id":"a","prompt":"p","sandbox":"workspace-write","workdir":"/"}', "no place for a writer"),
        (b'{"id":"a","prompt":"p","sandbox":"workspace-write","workdir":"~"}', "no place for a writer"),
    ],
)
def test_bad_row_is_told_by_its_line(desk: Desk, line: bytes, fault: str) -> None:
    desk.write(GOOD + line + b"\n")
    found = desk.faults()
    assert found and all(text.startswith("2: ") for text in found), found
    assert any(fault in text for text in found), found
    assert all("\n" not in text and len(text) < 400 for text in found)


def test_a_folder_that_codex_cannot_be_told_is_told_by_its_row(desk: Desk) -> None:
    (desk.project / os.fsdecode(b"in latin \xe9")).mkdir()
    # A link with a name that can be written in a row leads there.
    (desk.project / "plain").symlink_to(os.fsdecode(b"in latin \xe9"))
    desk.write(GOOD + b'{"id":"a","prompt":"p","workdir":"plain"}\n')
    (found,) = desk.faults()
    assert found.startswith("2: workdir: ") and r"latin \udce9' cannot be used: the path is no UTF-8" in found


def test_every_bad_row_is_told_at_once(desk: Desk) -> None:
    rows = [b'{"id":"a"}', b"", b"nonsense", GOOD.strip(), b'{"id":"b","prompt":"p","effrot":"low"}', b"[]"]
    desk.write(b"\n".join(rows))
    assert [text.partition(":")[0] for text in desk.faults()] == ["1", "3", "5", "6"]


def test_one_row_may_have_several_faults(desk: Desk) -> None:
    desk.write(b'{"id":"a","prompt":"p","tier":"lnua","workdir":"none","verification_commands":["a|b"]}\n')
    assert [text.split(": ")[1] for text in desk.faults()] == ["tier", "workdir", "verification_commands[0]"]


def test_what_rows_wait_for_is_told_with_whatever_else_is_wrong_with_them(desk: Desk) -> None:
    desk.write_rows(
        row("a", workdir="nowhere", depends_on=["b"]), row("b", tier="none", depends_on=["a", "x"])
    )
    assert [fault.split(":")[:2] for fault in desk.faults()] == [
        ["1", " workdir"],
        ["1", " depends_on"],
        ["2", " tier"],
        ["2", " depends_on"],
    ]


def test_a_thousand_bad_rows_are_all_named_and_the_message_stays_short(desk: Desk) -> None:
    desk.write(b"[]\n" * 1000)
    assert len(desk.faults()) == 1000
    with pytest.raises(InvalidInput) as caught:
        desk.jobs()
    assert caught.value.message.endswith("and 995 more")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(desk: Desk, separator: str) -> None:
    text = json.dumps(row("a", prompt=f"one{separator}two"), ensure_ascii=ord(separator) < 0x20)
    desk.write(text + "\n" + json.dumps(row("b")) + "\n")
    assert [(job.id, job.line, job.prompt) for job in desk.jobs()] == [
        ("a", 1, f"one{separator}two"),
        ("b", 2, "Do b."),
    ]


def test_a_carriage_return_alone_ends_no_line(desk: Desk) -> None:
    desk.write(b'{"id":"a","prompt":"p"}\r{"id":"b","prompt":"p"}\n')
    assert "extra data" in desk.faults()[0]


def test_blank_lines_count_and_are_passed_over(desk: Desk) -> None:
    desk.write(b'\n \t\r\n{"id":"a","prompt":"p"}\r\n\n{"id":"b","prompt":"p"}')
    assert [(job.id, job.line) for job in desk.jobs()] == [("a", 3), ("b", 5)]


def test_a_line_of_other_white_space_is_not_blank(desk: Desk) -> None:
    desk.write(GOOD + "\u00a0\n".encode())
    assert desk.faults()[0].startswith("2: not JSON")


@pytest.mark.parametrize("content", [b"", b"\n\n", b" "])
def test_a_file_without_jobs_is_refused(desk: Desk, content: bytes) -> None:
    desk.write(content)
    with pytest.raises(InvalidInput, match="holds no jobs"):
        desk.jobs()


def test_a_file_that_cannot_be_read_is_never_an_empty_one(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        desk.jobs()
    desk.file.mkdir()
    with pytest.raises(InvalidInput, match="not a regular file"):
        desk.jobs()


def test_a_pipe_in_place_of_the_file_does_not_hang(desk: Desk) -> None:
    os.mkfifo(desk.file)
    with pytest.raises(InvalidInput, match="not a regular file"):
        desk.jobs()


def test_a_circle_is_named_once_with_its_jobs(desk: Desk) -> None:
    desk.write_rows(
        row("a", depends_on=["c"]),
        row("b", depends_on=["a"]),
        row("c", depends_on=["b"]),
        row("after", depends_on=["c"]),
        row("x", depends_on=["y"]),
        row("y", depends_on=["x"]),
    )
    assert desk.faults() == [
        "1: depends_on: goes round in a circle: a -> c -> b -> a",
        "5: depends_on: goes round in a circle: x -> y -> x",
    ]


def test_a_prompt_file_cannot_fetch_what_lies_elsewhere(desk: Desk, test_root: Path) -> None:
    secret = test_root / "secret"
    secret.write_text("the person's own")
    (desk.project / "link.md").symlink_to(secret)
    for named in ("../secret", str(secret), "link.md"):
        desk.write_rows({"id": "a", "prompt_file": named})
        assert "neither below the job file's folder nor in the project" in desk.faults()[0]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xef\xbb\xbfLook.", "begins with a byte order mark"),
        (b"a\xffb", "is not UTF-8: byte 2"),
        (b" \n", "must not be empty"),
        (b"a\0b", "must not contain a NUL character"),
        (b"x" * 900_000, "at most 200000 characters"),
    ],
)
def test_a_bad_prompt_file_is_told_by_the_row_that_names_it(desk: Desk, content: bytes, fault: str) -> None:
    (desk.project / "p.md").write_bytes(content)
    desk.write_rows({"id": "a", "prompt_file": "p.md"})
    found = desk.faults()
    assert len(found) == 1 and found[0].startswith("1: prompt_file: p.md") and fault in found[0]
