"""Diffs as git prints them, read into files and lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from baton.report.unified import MAX_LINE, read_diff

SIMPLE = b"""diff --git a/src/a b.py b/src/a b.py
index 0000000000000000000000000000000000000000..1111111111111111111111111111111111111111 100644
--- a/src/a b.py\t
+++ b/src/a b.py\t
@@ -1,3 +1,4 @@ def f():
 same
--- removed
+++ added
+more
 end
\\ No newline at end of file
"""


def test_lines_have_their_kind_and_their_numbers() -> None:
    (file,) = read_diff(SIMPLE).files
    assert file.name == "src/a b.py"
    assert [(line.kind, line.text, line.old, line.new) for line in file.lines] == [
        ("hunk", "@@ -1,3 +1,4 @@ def f():", None, None),
        ("same", "same", 1, 1),
        ("removed", "-- removed", 2, None),
        ("added", "++ added", None, 2),
        ("added", "more", None, 3),
        ("same", "end", 3, 4),
        ("hunk", "\\ No newline at end of file", None, None),
    ]
    assert (file.added, file.removed) == (2, 1)


def test_a_long_diff_is_read_in_parts_that_together_are_the_whole() -> None:
    body = b"".join(b"+line %d\n" % number for number in range(100))
    data = SIMPLE.partition(b"@@")[0] + b"@@ -0,0 +1,100 @@\n" + body
    first = read_diff(data, 0, 50)
    rest = read_diff(data, first.next_line or 0, 1000)
    assert (first.next_line, rest.next_line, rest.total_lines) == (50, None, 105)
    added = [
        line for part in (first, rest) for file in part.files for line in file.lines if line.kind == "added"
    ]
    assert [line.new for line in added] == list(range(1, 101))
    assert rest.files[0].name == "src/a b.py"


def test_one_endless_line_is_cut() -> None:
    data = SIMPLE.partition(b"@@")[0] + b"@@ -0,0 +1 @@\n+" + b"x" * 10_000_000 + b"\n"
    line = read_diff(data).files[0].lines[-1]
    assert len(line.text) < MAX_LINE + 10


@pytest.fixture
def real(test_root: Path) -> bytes:
    """What git really prints of a rename, a mode, a deletion, a binary file and odd names."""
    place = test_root / "repository"
    place.mkdir()

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True).stdout

    git("init", "-q")
    (place / "old name.txt").write_text("".join(f"{number}\n" for number in range(50)))
    (place / "gone.txt").write_text("gone\n")
    (place / "run.sh").write_text("true\n")
    (place / "b ü\tx.txt").write_text("a\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    (place / "old name.txt").rename(place / "new name.txt")
    with (place / "new name.txt").open("a") as file:
        file.write("end\n")
    (place / "gone.txt").unlink()
    (place / "run.sh").chmod(0o755)
    (place / "b ü\tx.txt").write_text("b\n")
    (place / "data.bin").write_bytes(b"\0\1\2" * 100)
    git("add", "-A")
    return git("-c", "core.quotePath=false", "diff", "--cached", "-M", "--full-index")


def test_what_git_really_prints_is_understood(real: bytes) -> None:
    files = {file.name: file for file in read_diff(real).files}
    assert set(files) == {"b ü\\tx.txt", "data.bin", "gone.txt", "new name.txt", "run.sh"}
    assert (files["new name.txt"].added, files["new name.txt"].removed) == (1, 0)
    assert "rename from old name.txt" in files["new name.txt"].notes
    assert files["run.sh"].notes == ["old mode 100644", "new mode 100755"]
    assert (files["gone.txt"].removed, files["gone.txt"].notes) == (1, ["deleted file mode 100644"])
    assert any("differ" in note for note in files["data.bin"].notes)
