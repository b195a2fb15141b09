"""What reviewers write is read however they spell it, and located in the material."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.consult import Answer
from baton.contract.review import Confidence, Finding, Located, RecheckStatus, Severity
from baton.review.findings import parse_findings
from baton.review.places import locate_finding, places_of_diff, places_of_files, unshown_files


def read(structured: object = None, text: str = "") -> list[Finding]:
    parsed = parse_findings(Answer(text=text, structured=structured))
    assert parsed is not None
    return parsed.findings


ENTRY = {"severity": "important", "title": "t", "detail": "d", "path": "a.py", "line": 3, "confidence": "low"}


def test_finding_in_the_form_asked_for() -> None:
    (found,) = read({"findings": [ENTRY]})
    assert (found.severity, found.title, found.detail) == (Severity.IMPORTANT, "t", "d")
    assert (found.path, found.line, found.confidence) == ("a.py", 3, Confidence.LOW)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"findings": [ENTRY]}),
        "Here it is:\n```json\n" + json.dumps({"findings": [ENTRY]}, indent=2) + "\n```\nThat is all.",
        json.dumps([ENTRY]),
        "I found {one} problem: " + json.dumps({"review": {"issues": [ENTRY]}}),
        json.dumps({"answer": "x", "structured": json.dumps({"findings": [ENTRY]})}),
    ],
)
def test_findings_are_read_out_of_text(text: str) -> None:
    assert [found.title for found in read(text=text)] == ["t"]


def test_empty_list_is_an_answer_and_prose_is_none() -> None:
    assert read({"findings": []}) == []
    for text in ("All good.", "{}", "[1, 2]", "", "{", '{"answer": "fine"}'):
        assert parse_findings(Answer(text=text)) is None, text


@pytest.mark.parametrize(
    ("word", "severity"),
    [
        ("Critical", Severity.CRITICAL),
        ("BLOCKER", Severity.CRITICAL),
        ("P0", Severity.CRITICAL),
        ("Major", Severity.IMPORTANT),
        ("high", Severity.IMPORTANT),
        ("medium", Severity.MINOR),
        ("nit", Severity.MINOR),
        ("info", Severity.NOTE),
        ("whatever", Severity.IMPORTANT),
        (None, Severity.IMPORTANT),
    ],
)
def test_severity_is_normalised_and_never_lost(word: str | None, severity: Severity) -> None:
    assert read({"findings": [{**ENTRY, "severity": word}]})[0].severity is severity


@pytest.mark.parametrize(
    ("value", "confidence"),
    [
        (0.95, Confidence.HIGH),
        (60, Confidence.MEDIUM),
        ("30%", Confidence.LOW),
        ("Very high", Confidence.HIGH),
        (None, Confidence.MEDIUM),
        ("1.2.3", Confidence.MEDIUM),
        ("..5", Confidence.MEDIUM),
        ("0.9", Confidence.HIGH),
        (10**400, Confidence.HIGH),
        (float("nan"), Confidence.LOW),
    ],
)
def test_confidence_is_normalised(value: object, confidence: Confidence) -> None:
    assert read({"findings": [{**ENTRY, "confidence": value}]})[0].confidence is confidence


@pytest.mark.parametrize(
    "place",
    [
        {"path": "a.py", "line": 7},
        {"file": "a.py:7"},
        {"location": "a.py:7-9"},
        {"filename": "a.py", "lines": "7-9"},
        {"location": {"file": "a.py", "start_line": 7}},
        {"file": "a.py", "lineNumber": "L7"},
        {"location": "a.py#L7"},
    ],
)
def test_place_is_read_in_many_spellings(place: dict[str, Any]) -> None:
    (found,) = read({"findings": [{"severity": "minor", "title": "t", **place}]})
    assert (found.path, found.line) == ("a.py", 7)


def test_entries_that_are_none_are_counted_and_the_others_stay() -> None:
    parsed = parse_findings(Answer(text="", structured={"findings": [ENTRY, 7, {"severity": "minor"}]}))
    assert parsed is not None
    assert (len(parsed.findings), parsed.left_out) == (1, 2)


def test_what_is_said_of_earlier_findings_is_read() -> None:
    earlier = [
        {"finding": "F1", "status": "gone", "note": "mended"},
        {"finding": "2", "status": "STILL present"},
        {"id": "F3", "status": "hm"},
        {"finding": "F4", "status": "not fixed"},
        {"status": "gone"},
    ]
    parsed = parse_findings(Answer(text="", structured={"findings": [], "earlier": earlier}))
    assert parsed is not None
    assert [(one.finding, one.status) for one in parsed.rechecks] == [
        ("F1", RecheckStatus.GONE),
        ("F2", RecheckStatus.STILL),
        ("F3", RecheckStatus.UNCLEAR),
        ("F4", RecheckStatus.STILL),
    ]


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=20)
    | st.text("0123456789.:%-F#L", max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["findings", "severity", "title", "path", "line", "location", "confidence", "earlier", "x"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(_JSON, st.text(max_size=60))
def test_no_answer_makes_reading_fail(structured: object, text: str) -> None:
    parsed = parse_findings(Answer(text=text, structured=structured))
    for found in parsed.findings if parsed else ():
        placed = locate_finding(found, {"a.py": {"shown": [[1, 5]], "changed": [[2, 2]]}})
        # What the ledger cannot hold would keep the review from ever being read.
        assert placed.line is None or 0 <= placed.line < 2**63


# -- places ----------------------------------------------------------------------------------------

DIFF = """diff --git a/src/a.py b/src/a.py
index 1..2 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,4 +10,5 @@ def f():
 ten
-old
+new
+more
 thirteen
 fourteen
@@ -40,3 +41,2 @@
 forty-one
-gone
 forty-two
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/was.py b/now.py
similarity index 100%
rename from was.py
rename to now.py
diff --git "a/t\\303\\244b.py" "b/t\\303\\244b.py"
--- /dev/null
+++ "b/t\\303\\244b.py"
@@ -0,0 +1 @@
++++ not a header
"""


def test_changed_and_shown_lines_of_a_diff() -> None:
    places = places_of_diff(DIFF)
    assert sorted(places) == ["gone.py", "now.py", "src/a.py", "täb.py"]
    assert places["src/a.py"] == {"shown": [[10, 14], [41, 42]], "changed": [[11, 12], [42, 42]]}
    assert places["täb.py"] == {"shown": [[1, 1]], "changed": [[1, 1]]}


@pytest.mark.parametrize(
    ("path", "line", "located", "as_path"),
    [
        ("src/a.py", 11, Located.CHANGED, "src/a.py"),
        ("b/src/a.py", 14, Located.NEAR, "src/a.py"),
        ("./src/a.py", 17, Located.NEAR, "src/a.py"),
        ("a.py", 30, Located.FILE, "src/a.py"),
        ("a.py:12", None, Located.CHANGED, "src/a.py"),
        ("/home/x/src/a.py", None, Located.FILE, "src/a.py"),
        ("other.py", 3, Located.OUTSIDE, "other.py"),
        ("src/a.py:" + "9" * 5_000, None, Located.FILE, "src/a.py"),
        (None, None, Located.NONE, None),
    ],
)
def test_finding_is_located(
    path: str | None, line: int | None, located: Located, as_path: str | None
) -> None:
    finding = Finding(severity=Severity.MINOR, title="t", path=path, line=line)
    placed = locate_finding(finding, places_of_diff(DIFF))
    assert (placed.located, placed.path) == (located, as_path)


def test_files_of_which_a_diff_shows_no_line_are_in_it_too() -> None:
    header = "diff --git a/{0} b/{0}\n"
    diff = (
        header.format("run.sh")
        + "old mode 100644\nnew mode 100755\n"
        + header.format("a b/x")
        + "new file mode 100644\nindex 0..e\n"
        + header.format("logo.png")
        + "index 1..2 100644\nBinary files a/logo.png and b/logo.png differ\n"
        + header.format("a.txt")
        + "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n x\n+Binary files a and b differ\n"
    )
    assert sorted(places_of_diff(diff)) == ["a b/x", "a.txt", "logo.png", "run.sh"]
    assert unshown_files(diff) == ["logo.png"]


def test_path_that_could_mean_two_files_is_left_as_it_is() -> None:
    places = places_of_files({"x/a.py": "1\n", "y/a.py": "1\n"})
    placed = locate_finding(Finding(severity=Severity.MINOR, title="t", path="a.py", line=1), places)
    assert (placed.located, placed.path) == (Located.OUTSIDE, "a.py")
