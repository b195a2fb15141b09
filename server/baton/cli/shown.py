"""Foreign text on its way to a terminal: whatever it holds, it is shown and does nothing.

Repository text, file names, commands and a worker's words may carry escape sequences, carriage returns,
marks that turn the direction of writing, or bytes that are no text. They become visible escapes.
"""

from __future__ import annotations

import json
from typing import Any

import click

from baton.contract.visible import LINES, one_line, visible

__all__ = ["echo_json", "many_lines", "one_line"]


def many_lines(text: str) -> str:
    """Line breaks and tabs stay; everything else that cannot be printed becomes a visible escape."""
    return visible(text, LINES)


def echo_json(value: Any) -> None:
    """Print one line of JSON. Beyond ASCII all is escaped, so that a terminal may show it as well."""
    click.echo(json.dumps(value))
