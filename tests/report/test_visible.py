"""Foreign text is shown and does nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from baton.contract.visible import visible
from baton.report.marked import marked, marked_words
from baton.report.templating import environment


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode, 日本語", "plain text, ünïcode, 日本語"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\x00b", "a\\x00b"),
        ("\u202eevil\u202c", "\\u202eevil\\u202c"),
        ("\u2066\u2069\u200b\u00ad", "\\u2066\\u2069\\u200b\\xad"),
        ("caf\udce9", "caf\\xe9"),
        ("\U000e0041", "\\U000e0041"),
        ("a\tb\nc", "a\\x09b\\x0ac"),
    ],
)
def test_what_cannot_be_printed_becomes_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_breaks_and_tabs_stay_in_text_of_several_lines() -> None:
    assert visible("a\tb\nc\r\n", "\n\t") == "a\tb\nc\\x0d\n"


def test_marked_text_is_isolated_and_its_escapes_are_told_apart() -> None:
    assert marked("<b>\u202e") == (
        '<bdi class="foreign">&lt;b&gt;'
        '<span class="escape" title="U+202E RIGHT-TO-LEFT OVERRIDE">\\u202e</span></bdi>'
    )
    assert marked_words("a\n \tb") == '<bdi class="foreign">a b</bdi>'


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_nothing_of_any_text_is_markup(text: str) -> None:
    inner = marked(text).removeprefix('<bdi class="foreign">').removesuffix("</bdi>")
    assert all(part.startswith(('span class="escape" title=', "/span>")) for part in inner.split("<")[1:])
    assert inner.isprintable() or set(inner) - set(filter(str.isprintable, inner)) <= {"\n", "\t"}


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_every_expression_of_a_template_is_made_harmless_without_being_asked(text: str) -> None:
    page = environment().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text)
    assert page.count("<") == 2
    assert page.count('"') == 2
    assert all(char.isprintable() or char in "\n\t" for char in page)
    page.encode()


def test_a_name_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()
