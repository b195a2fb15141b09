"""Citations against files: true, moved and false ones, and those that prove nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.findings import CheckedFinding, CitationStatus, Finding
from baton.engine.citations import check_findings, cited_path

FILES = {
    b"src/calc.py": (
        b"import math\n\n\ndef add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
    ),
    b"notes.txt": b"first\r\nsecond line\r\n",
    "caf\u00e9.md".encode(): b"au lait\n",
    b"blob": b"\xff\xfe\x00 magic \xff",
}


def _check(file: str, line: int, quote: str) -> CheckedFinding:
    finding = Finding(statement="so it is", file=file, line=line, quote=quote)
    (checked,) = check_findings([finding], FILES.get, ["/worktree/ws"])
    assert (checked.statement, checked.quote, checked.line) == ("so it is", quote, line)
    return checked


@pytest.mark.parametrize(
    ("file", "line", "quote"),
    [
        ("src/calc.py", 4, "def add(a, b):"),
        ("src/calc.py", 5, "return a"),
        ("./src/calc.py", 1, "  import   math "),
        ("/worktree/ws/src/calc.py", 1, "import math"),
        ("src/calc.py", 4, "def add(a, b):\n    return a - b"),
        ("src/calc.py", 5, "return a - b\n\n\ndef sub"),
        ("notes.txt", 2, "second line"),
        ("caf\u00e9.md", 1, "au lait"),
        ("blob", 1, "magic"),
    ],
)
def test_quote_at_its_line_is_confirmed(file: str, line: int, quote: str) -> None:
    checked = _check(file, line, quote)
    assert (checked.status, checked.found_line) == (CitationStatus.CONFIRMED, None)
    assert not checked.file.startswith(("/", "./"))


def test_quote_at_another_line_is_moved_and_the_nearest_line_is_named() -> None:
    for cited, found in ((1, 5), (6, 5), (8, 9), (99, 9), (0, 5), (-3, 5)):
        checked = _check("src/calc.py", cited, "return a - b")
        assert (checked.status, checked.found_line) == (CitationStatus.MOVED, found)


@pytest.mark.parametrize(
    ("file", "quote", "why"),
    [
        ("src/calc.py", "return a * b", "the quote is not in the file"),
        ("src/calc.py", "def add(a, b): return a - b", "the quote is not in the file"),
        ("src/calc.py", "def add(a, b):\n    return a", "moved"),
        ("src/none.py", "import math", "no such file"),
        ("src", "import math", "no such file"),
        ("../src/calc.py", "import math", "not a path inside the workspace"),
        ("/etc/passwd", "root", "not a path inside the workspace"),
        ("", "import math", "not a path inside the workspace"),
        ("src/calc.py", "", "the quote is too short to prove anything"),
        ("src/calc.py", "):", "the quote is too short to prove anything"),
    ],
)
def test_citation_that_does_not_hold_says_why(file: str, quote: str, why: str) -> None:
    checked = _check(file, 1, quote)
    if why == "moved":
        # The last line of a quote may end within its line.
        assert checked.status is CitationStatus.MOVED
        return
    assert (checked.status, checked.detail) == (CitationStatus.NOT_FOUND, why)
    assert not checked.holds


def test_file_is_read_once_however_often_it_is_cited() -> None:
    asked: list[bytes] = []

    def read(path: bytes) -> bytes | None:
        asked.append(path)
        return FILES.get(path)

    finding = Finding(statement="s", file="src/calc.py", line=1, quote="import math")
    check_findings([finding] * 5, read)
    assert asked == [b"src/calc.py"]


@given(st.text(max_size=30), st.sampled_from(["/w", "/"]))
def test_a_citation_never_leads_out_of_the_workspace(file: str, root: str) -> None:
    path = cited_path(file, [root])
    if path is not None:
        names = path.split(b"/")
        assert not path.startswith(b"/") and b".." not in names and b"" not in names


@given(st.lists(st.text("abc d", min_size=3, max_size=12), min_size=1, max_size=8), st.data())
def test_every_line_with_words_can_be_cited(lines: list[str], data: st.DataObject) -> None:
    content = "\n".join(lines).encode()
    number = data.draw(st.integers(0, len(lines) - 1))
    finding = Finding(statement="s", file="f", line=number + 1, quote=lines[number])
    (checked,) = check_findings([finding], lambda path: content)
    enough = sum(char.isalnum() for char in lines[number]) >= 3
    assert (checked.status is CitationStatus.CONFIRMED) == enough
