"""The reference pages are those of the code, what they name exists, and no page links into the void."""

from __future__ import annotations

import html
import re
import shutil
import tomllib
from pathlib import Path

import click
import pytest

from baton.cli.main import baton
from baton.cli.reference import reference_parts, stale_pages, write_pages
from baton.simulate.demonstration import scenes

CHECKOUT = Path(__file__).parents[2]

PAGES = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")])

LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)\s]*))?\)")
TEST = re.compile(r"`(tests/[\w./-]+\.py)(?:::(\w+))?`")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of what the pages are rendered into and from."""
    for folder in ("docs", "policy"):
        shutil.copytree(CHECKOUT / folder, tmp_path / folder)
    write_pages(tmp_path)
    return tmp_path


def test_the_pages_are_as_the_code_says() -> None:
    assert stale_pages(CHECKOUT) == []


def test_a_stale_page_is_named_and_mended_without_touching_the_rest(bundle: Path) -> None:
    page = bundle / "docs" / "events.md"
    right = page.read_text()
    page.write_text(right.replace("| `run.done` |", "| `run.dine` |"))
    assert stale_pages(bundle) == ["docs/events.md: not as the code says; run scripts/docs.py"]
    assert write_pages(bundle) == ["docs/events.md"]
    assert page.read_text() == right
    assert write_pages(bundle) == []


def test_a_page_that_lost_its_marks_is_stale_and_not_overwritten(bundle: Path) -> None:
    page = bundle / "docs" / "tools.md"
    page.write_text("mine\n")
    assert stale_pages(bundle) == ["docs/tools.md: not as the code says; run scripts/docs.py"]
    write_pages(bundle)
    assert page.read_text() == "mine\n"


def test_every_tool_command_and_key_has_its_place() -> None:
    parts = reference_parts(CHECKOUT)
    for tool in ("delegate_task", "explore", "control_run", "consult"):
        assert f"### `{tool}`" in parts["docs/tools.md"]
    for command in ("baton activity [RUN]", "baton runs show RUN", "baton usage", "baton demo"):
        assert f"### `{command}`" in parts["docs/commands.md"]
    for table in ("[retention]", "[tiers.NAME]", "[prices.NAME]", "[consult.spend]"):
        assert f"### `{table}`" in parts["docs/configuration.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links_and_tests_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text()
    for target, _ in LINK.findall(text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), target
    for file, name in TEST.findall(text):
        path = CHECKOUT / file
        assert path.is_file(), file
        if name:
            assert f"def {name}(" in path.read_text(), f"{file}::{name}"


@pytest.mark.parametrize("page", sorted(CHECKOUT.glob("docs/parity/*.md")), ids=lambda page: page.stem)
def test_every_row_of_a_parity_page_names_what_shows_it(page: Path) -> None:
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    claims = [
        row for row in rows if row.replace(" ", "") not in ("|there|here|test|", "|there,planned|here|test|")
    ]
    assert len(claims) > 20
    for row in claims:
        assert TEST.search(row.rstrip(" |").rpartition("|")[2]), row


def test_messages_that_troubleshooting_quotes_are_said_somewhere() -> None:
    page = (CHECKOUT / "docs" / "troubleshooting.md").read_text()
    table = page.partition("## What is said")[2].partition("\n## ")[0]
    quoted = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    sources = [*(CHECKOUT / "server").rglob("*.py"), *(CHECKOUT / "scripts").glob("*.sh")]
    said = "\n".join(path.read_text() for path in sources)
    assert len(quoted) > 5
    assert [text for text in quoted if text not in said] == []


def test_pictures_load_nothing_and_show_the_demonstration_as_it_is() -> None:
    pictures = {path.name: path.read_text() for path in (CHECKOUT / "docs" / "pictures").glob("*.svg")}
    for name, text in pictures.items():
        assert set(re.findall(r"https?://[^\s\"')<]+", text)) == {"http://www.w3.org/2000/svg"}, name
    shown = re.sub(r"<[^>]+>", "", html.unescape(pictures["demo.svg"])).replace("\xa0", " ")
    for scene in scenes():
        assert f"{scene.title} (simulated)" in shown
        assert scene.shows in shown


COMMAND = re.compile(r"`(baton(?: [^`]+)?)`")
KEY = re.compile(r"`([a-z]+(?:\.[a-z_]+)+)(?: = [^`]*)?`")
IN_TABLE = re.compile(r"`\[([a-z.]+)\]`? `?([a-z_]+)`")

OWN_VARIABLES = {
    *("BATON_WORKER", "BATON_RUN", "BATON_HOST_RUNTIME", "BATON_HANDOVER", "BATON_VALIDATING", "BATON_GUARD")
}
"""What Baton's programs tell each other."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_commands_and_options_that_a_page_names_are_there(page: Path) -> None:
    for told in COMMAND.findall(page.read_text()):
        words = told.split()[1:]
        command: click.Command = baton
        while isinstance(command, click.Group) and words and words[0].strip(",").islower():
            name = words.pop(0).strip(",")
            found = command.get_command(click.Context(command), name)
            assert found is not None, told
            command = found
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        for word in words:
            flag = word.strip("[],.").partition("=")[0]
            if flag.startswith("--"):
                assert flag in {*options, "--help", "--version"}, told


def test_the_configuration_page_names_every_variable_that_a_person_can_set() -> None:
    page = (CHECKOUT / "docs" / "configuration.md").read_text().partition("## The policy")[0]
    named = set(re.findall(r"`(BATON_[A-Z_]+)`", page))
    sources = [*(CHECKOUT / "server").rglob("*.py"), *(CHECKOUT / "scripts").glob("*.sh")]
    read = {name for path in sources for name in re.findall(r"\bBATON_[A-Z_]+\b", path.read_text())}
    assert named == read - OWN_VARIABLES


def test_keys_of_the_policy_that_a_page_names_are_there() -> None:
    policy = tomllib.loads((CHECKOUT / "policy" / "policy.toml").read_text())
    seen = 0
    for page in PAGES:
        if page.name == "pool.md":
            continue  # its keys are those of a pool's own file
        text = page.read_text()
        for name in [*KEY.findall(text), *map(".".join, IN_TABLE.findall(text))]:
            parts = name.split(".")
            if parts[0] not in policy:
                continue
            value: object = policy
            for part in parts:
                assert isinstance(value, dict) and part in value, f"{page.name}: {name}"
                value = value[part]
            seen += 1
    assert seen > 20
