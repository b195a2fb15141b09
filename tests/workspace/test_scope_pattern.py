"""Patterns are read as gitignore reads them: git itself is the oracle."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.contract.errors import InvalidInput
from baton.contract.task import Task
from baton.workspace.pattern import read_pattern
from baton.workspace.scope import read_scope


class IgnoreOracle:
    """Asks git which files of an imagined tree a single ignore line covers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        self.environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        self._git("init", "-q", ".")

    def covered(self, pattern: str, paths: list[bytes]) -> set[bytes]:
        (self.folder / ".git" / "info" / "exclude").write_bytes(pattern.encode() + b"\n")
        answer = self._git("check-ignore", "--no-index", "-z", "--stdin", data=b"\0".join(paths) + b"\0")
        return set(answer.split(b"\0")) - {b""}

    def _git(self, *words: str, data: bytes = b"") -> bytes:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env=self.environment,
            input=data,
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IgnoreOracle]:
    yield IgnoreOracle(tmp_path_factory.mktemp("oracle"))


PIECES = [
    "a",
    "b",
    "ab",
    "*",
    "?",
    "[ab]",
    "[!a]",
    "[^b-c]",
    "a*",
    "*b",
    "*a*b",
    "[[:alpha:]]",
    "\\*",
    "é",
]


def one_star(name: str) -> str:
    return name.replace("**", "*")


SEGMENTS = st.one_of(
    st.sampled_from([*PIECES, "**", "**"]),
    st.tuples(*[st.sampled_from(PIECES)] * 2).map("".join).map(one_star),
)
PATTERNS = st.builds(
    lambda names, tail: "/".join(names) + tail,
    st.lists(SEGMENTS, min_size=1, max_size=4),
    st.sampled_from(["", "/"]),
)
NAMES = st.text("abc*é\n", min_size=1, max_size=3).map(str.encode) | st.just(b"a\xff")
PATHS = st.lists(NAMES, min_size=1, max_size=5).map(b"/".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=PATTERNS, paths=st.lists(PATHS, min_size=1, max_size=40))
def test_a_pattern_covers_exactly_what_git_would_ignore(
    oracle: IgnoreOracle, pattern: str, paths: list[bytes]
) -> None:
    read = read_pattern(pattern, "allowedFiles")
    assert {path for path in paths if read.matches(path)} == oracle.covered(pattern, paths)


@settings(max_examples=200, deadline=None)
@given(pattern=PATTERNS, path=PATHS)
def test_reading_name_by_name_agrees_with_reading_the_whole_path(pattern: str, path: bytes) -> None:
    read = read_pattern(pattern, "allowedFiles")
    states = read.start()
    covered_above = False
    for name in path.split(b"/"):
        covered_above = covered_above or read.covers_directory(states)
        states = read.step(states, name)
    assert read.covers_file(states) == read.matches(path)
    assert not covered_above or read.matches(path)


@pytest.mark.parametrize("pattern", ["src", "src/", "./src", "./src/", "src/**", "**/src", "./src/**/"])
def test_a_directory_covers_what_lies_deep_below_it(pattern: str) -> None:
    assert read_pattern(pattern, "allowedFiles").matches(b"src/deep/er/a.py")


@pytest.mark.parametrize("pattern", [".", "./", "**", "*"])
def test_the_whole_workspace_can_be_named(pattern: str) -> None:
    read = read_pattern(pattern, "allowedFiles")
    assert read.matches(b"a") and read.matches(b"a/b/c\nd")


def test_a_dot_slash_anchors_a_name_that_would_match_at_any_depth() -> None:
    assert read_pattern("notes.md", "allowedFiles").matches(b"docs/notes.md")
    assert not read_pattern("./notes.md", "allowedFiles").matches(b"docs/notes.md")
    assert read_pattern("./notes.md", "allowedFiles").matches(b"notes.md")


def test_trailing_spaces_are_dropped_unless_escaped() -> None:
    assert read_pattern("src/a  ", "allowedFiles").matches(b"src/a")
    assert read_pattern("src/a\\ ", "allowedFiles").matches(b"src/a ")
    assert read_pattern("src/a\\  ", "allowedFiles").matches(b"src/a ")


def test_a_name_with_a_line_feed_is_not_taken_for_the_name_before_it() -> None:
    assert not read_pattern("src/a.py", "allowedFiles").matches(b"src/a.py\n")


def test_many_wildcards_do_not_take_long() -> None:
    read = read_pattern("**/".join(["*a" * 30 + "b/"] * 5) + "c", "allowedFiles")
    assert not read.matches(b"/".join([b"a" * 200] * 60))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("!src", "negation"),
        ("#src", "comment"),
        ("/src", "absolute"),
        ("//src", "absolute"),
        (".//src", "absolute"),
        ("C:\\src", "absolute"),
        ("C:/src", "absolute"),
        ("~/src", "home folder"),
        ("..", "leaves the workspace"),
        ("../other", "leaves the workspace"),
        ("src/../../x", "leaves the workspace"),
        ("./../x", "leaves the workspace"),
        ("src/..", "leaves the workspace"),
        ("src/./a", ". as a name"),
        ("src//a", "empty name"),
        ("src\\api", "separated by /"),
        ("src/a\\", "separated by /"),
        ("src/**.py", "reads in two ways"),
        ("a**/x", "reads in two ways"),
        ("src/[ab", "without its ]"),
        ("src/[", "without its ]"),
        ("src/[z-a]", "backwards"),
        ("src/[[:klingon:]]", "unknown character class"),
        ("src/[é]", "beyond ASCII"),
        ("src/{a,b}.py", "one pattern for each"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        ("a\udcffb", "surrogate"),
        ("x" * 1001, "longer than"),
    ],
)
def test_an_unreadable_pattern_is_refused_in_one_line_that_names_it(pattern: str, why: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read_pattern(pattern, "forbiddenFiles")
    assert why in refusal.value.message
    assert refusal.value.message.startswith("forbiddenFiles: pattern ")
    assert "\n" not in refusal.value.message and refusal.value.message.isprintable()


def test_a_plain_name_allows_only_the_top_but_forbids_and_hides_at_any_depth() -> None:
    task = Task(objective="x", allowed_files=["src"], forbidden_files=["secret"], hidden_files=[".env"])
    scope = read_scope(task)
    assert scope.permits(b"src/a/b.py") is None
    assert scope.permits(b"lib/src/a.py") is not None
    assert scope.permits(b"src/a/secret") is not None
    assert scope.hides(b"deep/down/.env")
