"""Two scopes are disjoint only when no path, existing or not, is in both."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.contract.task import Task
from baton.workspace import overlap as overlap_module
from baton.workspace.overlap import disjoint, overlap
from baton.workspace.scope import Scope, read_scope


def scope_of(*allowed: str, forbidden: tuple[str, ...] = ()) -> Scope:
    return read_scope(Task(objective="x", allowed_files=list(allowed), forbidden_files=list(forbidden)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/**", "**/*.md"),
        ("docs/**", "**/README.md"),
        ("*.py", "test_*"),
        ("x[bc]", "x[cd]"),
        ("src", "src/a.py"),
        ("src/", "./src/deep/er/"),
        ("a/**/z", "**/b/**"),
        ("*a*b*", "*b*a*"),
        ("[!a]?", "[!b]a"),
        ("**", "./x"),
        ("**/README.md", "src/"),
        ("a/*/c", "a/b/*"),
        (".codex/", ".codex/rules"),
    ],
)
def test_scopes_that_could_meet_are_told_with_a_path_in_both(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        path = overlap(scope_of(first), scope_of(second))
        assert path is not None
        assert scope_of(first).permits(path) is None and scope_of(second).permits(path) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/**", "docs/**"),
        ("./src/", "./srcs/"),
        ("src/*.py", "src/*.md"),
        ("./*.py", "src/**"),
        ("./x[ab]", "./x[cd]"),
        ("a.py", "b.py"),
        ("parser.py", "*.md"),
        ("src/a.py", "src/b.py"),
        ("README.md", "src/"),
        ("src/", "docs/"),
        ("**", ".codex/"),
        ("a/b/**", "a/c/**"),
        ("./a?", "./a??"),
    ],
)
def test_scopes_that_can_never_meet_are_disjoint(one: str, other: str) -> None:
    assert overlap(scope_of(one), scope_of(other)) is None
    assert overlap(scope_of(other), scope_of(one)) is None


def test_what_is_forbidden_to_either_is_no_overlap() -> None:
    assert overlap(scope_of("src/", forbidden=("*.md",)), scope_of("**/*.md")) is None
    assert overlap(scope_of("./src/", forbidden=("src/api",)), scope_of("src/api/")) is None
    assert overlap(scope_of("./src/", forbidden=("src/api/x",)), scope_of("src/api/")) is not None


def test_a_real_path_is_preferred_as_the_example() -> None:
    assert overlap(scope_of("src/"), scope_of("*.md"), [b"a.md", b"src/x.md"]) == b"src/x.md"


def test_a_directory_that_is_named_like_a_file_is_seen_in_the_tree() -> None:
    one, other = scope_of("*.py"), scope_of("**/README.md")
    assert overlap(one, other, [b"a.py", b"README.md"]) is None
    assert overlap(one, other, [b"odd.py/x", b"README.md"]) is not None
    assert overlap(one, other, [b"odd.py/README.md"]) == b"odd.py/README.md"


def test_disjoint_is_only_what_is_so_whatever_exists() -> None:
    python, notes = scope_of("*.py"), scope_of("**/notes.md")
    assert overlap(python, notes) is None
    assert not disjoint(python, notes)
    assert disjoint(scope_of("src"), scope_of("docs"))
    assert disjoint(python, Scope(changes=False))


def test_a_task_that_changes_nothing_overlaps_with_none() -> None:
    quiet = read_scope(Task.model_validate({"objective": "x", "changeIntent": "forbidden"}))
    assert overlap(quiet, scope_of("**")) is None


def test_a_search_that_grows_too_large_says_may_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap_module, "MAX_STATES", 3)
    assert overlap(scope_of("./aaaa/"), scope_of("./aaab/")) is not None


PART = st.sampled_from(["a", "b", "ab", "*", "?", "a*", "*b", "[ab]", "[!a]", "**", "??", "*a*"])
PATTERN = st.builds(
    lambda head, parts, tail: head + "/".join(parts) + tail,
    st.sampled_from(["", "", "./"]),
    st.lists(PART, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)
SCOPE = st.builds(
    lambda allowed, forbidden: scope_of(*allowed, forbidden=tuple(forbidden)),
    st.lists(PATTERN, min_size=1, max_size=2),
    st.lists(PATTERN, max_size=2),
)
NAMES = [bytes(name) for size in (1, 2, 3) for name in itertools.product(b"abc", repeat=size)][:30]
UNIVERSE = [b"/".join(names) for size in (1, 2) for names in itertools.product(NAMES[:20], repeat=size)]
UNIVERSE += [b"/".join(names) for names in itertools.product([b"a", b"b", b"ab"], repeat=4)]


@settings(max_examples=200, deadline=None)
@given(one=SCOPE, other=SCOPE)
def test_the_answer_agrees_with_trying_every_small_path(one: Scope, other: Scope) -> None:
    answer = overlap(one, other)
    if answer is None:
        both = [path for path in UNIVERSE if one.permits(path) is None and other.permits(path) is None]
        assert both == []
    else:
        assert one.permits(answer) is None and other.permits(answer) is None


def test_many_long_patterns_stay_within_the_limit() -> None:
    left = scope_of(
        *[f"src/module{n}/**/*_test[0-9]?.py" for n in range(12)], forbidden=("**/gen*/**", "*.lock")
    )
    right = scope_of(*[f"src/module{n}/**/*_spec.py" for n in range(12, 24)], "docs/**", forbidden=("*tmp*",))
    assert overlap(left, right) is None
