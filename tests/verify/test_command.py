"""A command string is one program and its arguments; what only a shell could do is refused by name."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.errors import InvalidInput
from baton.verify.command import read_command


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("git status", ("git", "status")),
        ("ls", ("ls",)),
        ("./gradlew test", ("./gradlew", "test")),
        ("python -m pytest -k 'a and not b'", ("python", "-m", "pytest", "-k", "a and not b")),
        ("echo \"two words\" '$HOME `x` ;'", ("echo", "two words", "$HOME `x` ;")),
        (r"echo a\ b \; \| \$x", ("echo", "a b", ";", "|", "$x")),
        (r'echo "a \"b\" \$c \\ \n"', ("echo", 'a "b" $c \\ \\n')),
        ("echo ''", ("echo", "")),
        ("grep ^a$ file", ("grep", "^a$", "file")),
        ("echo a#b =x", ("echo", "a#b", "=x")),
        ("  true\t", ("true",)),
    ],
)
def test_string_is_split_as_a_shell_would_split_it(text: str, argv: tuple[str, ...]) -> None:
    assert read_command(text).argv == argv


def test_leading_assignments_are_set_and_later_ones_are_arguments() -> None:
    command = read_command("FOO=1 BAR='a b' npm test BAZ=2")
    assert command.environment == (("FOO", "1"), ("BAR", "a b"))
    assert command.argv == ("npm", "test", "BAZ=2")
    assert command.shown == "FOO=1 BAR='a b' npm test BAZ=2"


def test_quoted_name_is_no_assignment() -> None:
    assert read_command("'FOO=1' x").argv == ("FOO=1", "x")


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("a; b", ";"),
        ("a && b", "&&"),
        ("a || b", "||"),
        ("a | b", "|"),
        ("a > b", ">"),
        ("a 2>&1", ">"),
        ("a < b", "<"),
        ("a `b`", "`"),
        ('a "`b`"', "`"),
        ("a $(b)", "$("),
        ('a "$(b)"', "$("),
        ("a &", "&"),
        ("a\nb", "newline"),
        ("a \\\nb", "newline"),
        ("(a)", "("),
        ("! a", "!"),
        ("a # b", "#"),
    ],
)
def test_operator_is_refused_by_its_name_with_advice(text: str, operator: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_command(text, "verificationCommands[0]")
    message = refused.value.message
    assert f"uses {operator}," in message or f"uses a {operator}," in message
    assert "a list of arguments" in message
    assert "script" in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["a $HOME", 'a "${X}"', "$TOOL test", "a $?"])
def test_variable_is_refused_because_nobody_would_expand_it(text: str) -> None:
    with pytest.raises(InvalidInput, match="variable"):
        read_command(text)


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a \\"])
def test_unfinished_quote_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_command(text)


@pytest.mark.parametrize("text", ["", "   ", "FOO=1", "''", []])
def test_command_without_a_program_is_refused(text: str | list[str]) -> None:
    with pytest.raises(InvalidInput, match="program"):
        read_command(text)


def test_list_is_taken_as_it_is() -> None:
    command = read_command(["sh", "-c", "a && b > c"])
    assert command.argv == ("sh", "-c", "a && b > c")
    assert shlex.split(command.shown) == ["sh", "-c", "a && b > c"]
    assert command.notes == ()


def test_patterns_are_handed_on_and_that_is_said() -> None:
    command = read_command("ls *.py ~/x 'a*'")
    assert command.argv == ("ls", "*.py", "~/x", "a*")
    assert len(command.notes) == 2
    assert "not expanded" in command.notes[0]


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0\r\n")), min_size=1, max_size=5))
def test_quoting_a_list_and_reading_it_again_changes_nothing(words: list[str]) -> None:
    words = ["program", *words]
    assert read_command(shlex.join(words)).argv == tuple(words)


@given(st.text("ab '\"\\#=-", max_size=12))
def test_what_is_accepted_is_read_as_a_real_shell_reads_it(text: str) -> None:
    line = f"x {text}"
    try:
        argv = read_command(line).argv
    except InvalidInput:
        return
    done = subprocess.run(
        ["/bin/sh", "-c", f"x() {{ printf '%s\\0' x \"$@\"; }}\n{line}"], capture_output=True, check=False
    )
    assert done.stdout.decode().split("\0")[:-1] == list(argv)
