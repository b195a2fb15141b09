"""Where an installation puts things: the Codex home, the folder of commands, and Baton's own corner."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.policy.load import person_home

OWN = "baton"
"""The folder below the Codex home that is Baton's; the person's `policy.toml` in it is theirs."""


@dataclass(frozen=True)
class Places:
    """The places of one installation; says nothing of what is there."""

    home: Path
    """The Codex home, absolute; links on the way are left as they are."""
    commands: Path
    """Where the `baton` command goes."""

    @classmethod
    def find(cls, env: Mapping[str, str]) -> Places:
        """The places for this person. Raises `InvalidInput` for a home that config.toml cannot name."""
        home = Path(os.path.abspath(person_home(env)))  # noqa: PTH100 - links are left as they are
        user = Path(env.get("HOME") or Path.home())
        for folder in (home, user):
            shown(folder)
        return cls(home, user / ".local" / "bin")

    @property
    def user(self) -> Path:
        """The person's own home, in which the command lies."""
        return self.commands.parents[1]

    @property
    def own(self) -> Path:
        return self.home / OWN

    @property
    def bundle(self) -> Path:
        """The copy of the bundle that the server and the command start from."""
        return self.own / "bundle"

    @property
    def owned(self) -> Path:
        return self.own / "owned.json"

    @property
    def journal(self) -> Path:
        return self.own / "journal.json"

    @property
    def lock(self) -> Path:
        return self.own / "install.lock"

    @property
    def backups(self) -> Path:
        """What the last installations replaced; removed with Baton."""
        return self.own / "backups"

    @property
    def kept(self) -> Path:
        """What was a person's and had to give way; never removed by Baton."""
        return self.own / "kept"

    @property
    def config(self) -> Path:
        return self.home / "config.toml"

    @property
    def command(self) -> Path:
        return self.commands / "baton"

    def name(self, path: Path) -> str:
        """How owned.json writes a path, so that it still holds when a person's home moves as a whole.

        Relative to the Codex home where it lies there, by `~/` below the person's own home, else absolute.
        """
        if path.is_relative_to(self.home):
            return str(path.relative_to(self.home))
        return f"~/{path.relative_to(self.user)}" if path.is_relative_to(self.user) else str(path)

    def path(self, name: str) -> Path:
        """The path of a name in owned.json."""
        return self.user / name[2:] if name.startswith("~/") else self.home / name


def shown(path: Path) -> str:
    """A path as text. Raises `InvalidInput` when it has bytes that are not UTF-8."""
    text = str(path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{os.fsencode(path)!r}: the path is not UTF-8, which neither config.toml nor Codex can name"
        ) from None
    return text
