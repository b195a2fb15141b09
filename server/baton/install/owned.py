"""`owned.json`: every file that Baton has put into a home, and what it held when Baton wrote it."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from baton.contract.base import Wire, parse
from baton.contract.errors import InvalidInput, StateUnavailable

SCHEMA = 1


class Kind(StrEnum):
    """What a file is for; it decides what an edit or a deletion by the person means."""

    SKILL = "skill"
    AGENT = "agent"
    BUNDLE = "bundle"
    """Part of the program: replaced as a whole, an edited one kept apart."""
    COMMAND = "command"
    BESIDE = "beside"
    """Our version beside a person's edit."""


class OwnedFile(Wire):
    """One file."""

    path: str
    """As `Places.name` writes it."""
    kind: Kind
    shipped: str
    """SHA-256 of what the installed version ships for this path."""
    installed: str
    """SHA-256 of what Baton last wrote there; another one on disk is the person's edit."""
    version: str
    """Version of Baton that shipped it."""


class ConfigEntry(Wire):
    """The server's entry in config.toml."""

    values: dict[str, Any]
    """Its keys as Baton wrote them; another value there is the person's."""
    text: str
    """The characters that were put in, empty when they are not known any more."""
    instead_of: str = ""
    """The line that they replaced: a table of servers that is written in one line."""
    made_file: bool = False
    made_table: bool = False


class Owned(Wire):
    """Everything Baton owns in one home."""

    schema_version: int = SCHEMA
    version: str
    content: str
    """Hash of the shipped bundle."""
    files: tuple[OwnedFile, ...] = ()
    folders: tuple[str, ...] = ()
    """Folders that Baton made, to be removed when they are empty."""
    config: ConfigEntry | None = None
    plugin: bool = False
    """Skills and server come from the plugin in Codex."""
    agents_only: bool = False
    no_config: bool = False

    def encoded(self) -> bytes:
        """The file's content."""
        return json.dumps(self.wire(), indent=1, ensure_ascii=False).encode() + b"\n"


def read_owned(file: Path) -> Owned | None:
    """What is owned; None when nothing is installed.

    Raises `InvalidInput` for a damaged file or one of a newer Baton: it is never guessed at.
    """
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StateUnavailable(f"{file}: cannot be read: {error.strerror}") from None
    advice = "move it away and run `baton install --adopt` to take stock again"
    try:
        data = json.loads(content)
    except ValueError:
        raise InvalidInput(f"{file}: damaged; {advice}") from None
    if (
        isinstance(data, dict)
        and isinstance(data.get("schemaVersion"), int)
        and data["schemaVersion"] > SCHEMA
    ):
        raise InvalidInput(f"{file}: written by a newer Baton; upgrade this one")
    try:
        return parse(Owned, data, "owned")
    except InvalidInput as error:
        raise InvalidInput(f"{file}: damaged ({error.message}); {advice}") from None
