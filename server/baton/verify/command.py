"""Reads a verification command: one program and its arguments, never a shell line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from baton.contract.errors import InvalidInput

ADVICE = "give a list of arguments, several commands, or a script of the repository"

_OPERATORS = ("&&", "||", ";", "|", "&", ">", "<", "(", ")", "`")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_{0-9@*#?!$-])")


@dataclass(frozen=True)
class Command:
    """One command as it will be run."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    """Leading `NAME=value`s, in order."""
    shown: str = ""
    """As a person would type it."""
    notes: tuple[str, ...] = ()
    """What a shell would have done and we do not."""


def read_command(text: str | Sequence[str], where: str = "verificationCommands") -> Command:
    """Read a string by POSIX quoting rules, or take a list as it is.

    Leading `NAME=value` words of a string set variables. Patterns (`*`), `~` and braces are handed on as
    they are, which a note says.

    Raises `InvalidInput` with one line when the string uses a shell operator or substitution (the operator is
    named), when quotes do not match, or when there is no program.
    """
    if not isinstance(text, str):
        argv = tuple(text)
        if not argv or not argv[0]:
            raise InvalidInput(f"{where}: a command needs at least a program")
        if any("\0" in word for word in argv):
            raise InvalidInput(f"{where}: a command must not contain a NUL character")
        return Command(argv, shown=shlex.join(argv))
    words, notes = _Reader(text, where).words()
    environment = []
    while words and words[0].assignment:
        name, _, value = words.pop(0).text.partition("=")
        environment.append((name, value))
    if not words or not words[0].text:
        raise InvalidInput(f"{where}: {_quoted(text)} names no program")
    return Command(
        argv=tuple(word.text for word in words),
        environment=tuple(environment),
        shown=text.strip(),
        notes=tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True)
class _Word:
    text: str
    assignment: bool


class _Reader:
    """Splits one string into words, refusing what only a shell could do."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text.strip()
        self.where = where
        self.place = 0
        self.notes: list[str] = []

    def words(self) -> tuple[list[_Word], list[str]]:
        found: list[_Word] = []
        while self._skip_blanks():
            found.append(self._word())
        return found, self.notes

    def _skip_blanks(self) -> bool:
        while self.text[self.place : self.place + 1] in (" ", "\t"):
            self.place += 1
        return self.place < len(self.text)

    def _word(self) -> _Word:
        start = self.place
        if self.text[start] == "#":
            self._refuse("#")
        if self.text[start : start + 2] in ("!", "! "):
            self._refuse("!")
        if self.text[start] == "~":
            self.notes.append("~ is not expanded")
        parts: list[str] = []
        while self.place < len(self.text) and self.text[self.place] not in " \t":
            parts.append(self._piece())
        raw = self.text[start : self.place]
        return _Word("".join(parts), _ASSIGNMENT.match(raw) is not None)

    def _piece(self) -> str:
        char = self.text[self.place]
        if char == "'":
            return self._single()
        if char == '"':
            return self._double()
        if char == "\\":
            return self._escaped()
        self._refuse_operator()
        if char in "*?[":
            self.notes.append(f"{char} is not expanded: there is no shell; name the files, or use a script")
        self.place += 1
        return char

    def _single(self) -> str:
        end = self.text.find("'", self.place + 1)
        if end < 0:
            self._fail("has a ' without its match")
        inner = self.text[self.place + 1 : end]
        self.place = end + 1
        return inner

    def _double(self) -> str:
        parts: list[str] = []
        self.place += 1
        while True:
            char = self.text[self.place : self.place + 1]
            if not char:
                self._fail('has a " without its match')
            if char == '"':
                self.place += 1
                return "".join(parts)
            if char == "\\" and self.text[self.place + 1 : self.place + 2] in ("$", "`", '"', "\\"):
                parts.append(self.text[self.place + 1])
                self.place += 2
                continue
            self._refuse_substitution()
            parts.append(char)
            self.place += 1

    def _escaped(self) -> str:
        char = self.text[self.place + 1 : self.place + 2]
        if not char:
            self._fail("ends with a backslash")
        if char in "\r\n":
            self._refuse("a newline")
        self.place += 2
        return char

    def _refuse_operator(self) -> None:
        if self.text[self.place] in "\r\n":
            self._refuse("a newline")
        self._refuse_substitution()
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.place):
                self._refuse(operator)

    def _refuse_substitution(self) -> None:
        if self.text[self.place] == "`":
            self._refuse("`")
        if self.text.startswith("$(", self.place):
            self._refuse("$(")
        variable = _VARIABLE.match(self.text, self.place)
        if variable is not None:
            self._fail("has a variable, which is not expanded: write its value, or '…' around a plain $")

    def _refuse(self, operator: str) -> None:
        self._fail(f"uses {operator}, which only a shell understands: {ADVICE}")

    def _fail(self, why: str) -> None:
        raise InvalidInput(f"{self.where}: {_quoted(self.text)} {why}")


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:97] + "...")
