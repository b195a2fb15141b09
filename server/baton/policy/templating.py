"""Templates of prompts, skills and agents, and the filters that keep foreign text in its place."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import tomlkit
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from baton.policy.bundle import bundle_root

TEMPLATES = Path("policy") / "templates"
"""Below the bundle."""


def render_template(name: str, **context: Any) -> str:
    """The template `policy/templates/<name>` with this context; a name missing from the context is an error.

    Values are inserted as they are and never read as templates themselves.
    """
    return environment(bundle_root()).get_template(name).render(context)


@functools.lru_cache(maxsize=8)
def environment(bundle: Path) -> Environment:
    """The templates of one bundle."""
    made = Environment(
        loader=FileSystemLoader(bundle / TEMPLATES, encoding="utf-8"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # The output is Markdown, TOML and YAML for programs and models; each filter quotes for its own place.
        autoescape=False,
    )
    made.filters.update(code=code, fenced=fenced, item=item, toml=toml, yaml=yaml)
    return made


def fenced(text: str, source: str) -> str:
    """Foreign text between two lines that it cannot imitate: their mark is made so as not to occur in it."""
    mark = hashlib.sha256(f"{source}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    while mark in text or mark in source:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:16]
    return f"<<<data {mark} {json.dumps(source)}\n{text.rstrip()}\ndata {mark}>>>"


def code(text: str) -> str:
    """Text as inline code on one line: fenced by more backticks than it has, control characters escaped."""
    line = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    space = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{space}{line}{space}{fence}"


def item(text: str) -> str:
    """Text as a list item: further lines are indented, so that they stay inside it."""
    return "- " + "\n  ".join(text.strip().splitlines())


def toml(text: str) -> str:
    """A TOML string, over several lines when the text has them."""
    if "\n" not in text or "\r" in text or text.startswith("\n"):
        return tomlkit.string(text).as_string()
    quoted = tomlkit.string(text, multiline=True).as_string()
    # A line break right after the opening quotes is not part of the text, and makes it readable.
    return f'"""\n{quoted[3:]}'


def yaml(text: str) -> str:
    """A YAML string on one line; JSON's form is also YAML's."""
    return json.dumps(text, ensure_ascii=False)
