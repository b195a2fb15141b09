"""The templates of the pages: everything that they print is escaped and shows what cannot be printed."""

from __future__ import annotations

import functools
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from baton.contract.visible import LINES, visible
from baton.contract.wording import many
from baton.report import amounts
from baton.report.marked import marked, marked_words
from baton.report.tones import spoken, tone


def render(name: str, **context: Any) -> str:
    """The page `name` with this context; a name that is missing from the context is an error."""
    return environment().get_template(name).render(context)


@functools.lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates, compiled as they are used.

    Every expression goes through `shown` and is then escaped, in attributes as in text: no template has to
    think of it. The filters `words` and `lines` mark foreign text as such besides.
    """
    made = Environment(
        loader=PackageLoader("baton.report", "templates", encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        words=marked_words,
        lines=marked,
        tone=tone,
        spoken=spoken,
        took=amounts.took,
        amount=amounts.count,
        size=amounts.size,
        money=amounts.money,
        moment=amounts.moment,
        iso=amounts.iso,
        many=many,
    )
    return made


def prepare() -> None:
    """Compile all templates now, so that no page has to wait for it."""
    for name in environment().list_templates(extensions=["html"]):
        environment().get_template(name)


def shown(value: Any) -> Any:
    """What an expression of a template prints."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value, LINES)
    return value


def source(name: str) -> str:
    """A file of the templates folder as it is: the style sheet and the script."""
    loader = environment().loader
    assert loader is not None
    return loader.get_source(environment(), name)[0]
