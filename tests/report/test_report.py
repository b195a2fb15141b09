"""`baton report` over real runs: claim beside observation, and nothing in it that acts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from baton.cli.main import baton
from baton.contract.states import Integration, RunState, TaskState, Verdict
from baton.report.page import read_report, render_report
from baton.report.terminal import report_lines
from report.conftest import Recorded
from report.story import HOSTILE, IMAGE

pytestmark = pytest.mark.codex

Run = Callable[..., Result]


INLINE = ("bdi", "span")


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in INLINE:
            self.words.append(" ")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def story(recorded: Recorded) -> str:
    return render_report(read_report(recorded.house, recorded.story, time.time()))


@pytest.fixture(scope="module")
def hostile(recorded: Recorded) -> str:
    return render_report(read_report(recorded.house, recorded.hostile, time.time()))


@pytest.fixture
def run(recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments: str) -> Result:
        return CliRunner().invoke(baton, list(arguments), env=recorded.sim.env, prog_name="baton")

    return invoke


def test_the_story_is_what_the_tests_take_it_for(recorded: Recorded) -> None:
    tasks = {task.task_id: task for task in recorded.house.ledger.tasks(recorded.story)}
    assert {name: task.verdict for name, task in tasks.items()} == {
        "prices": Verdict.VERIFIED,
        "stock": Verdict.FAILED,
        "bill": Verdict.VERIFIED,
        "guide": Verdict.VERIFIED,
        "index": Verdict.VERIFIED,
    }
    assert recorded.house.ledger.run(recorded.story).state is RunState.HELD
    assert tasks["bill"].outcome.integration is Integration.APPLIED
    assert all(task.state is TaskState.DONE for task in tasks.values())


def test_a_claim_stands_beside_what_was_observed(story: str) -> None:
    stock = story.partition('id="task-stock"')[2].partition("</article>")[0]
    claim, _, observed = Seen(stock).text.partition("Everything passes.")
    assert claim.rstrip().endswith("PASS")
    assert "failed check failed with exit status 1: python3 check_stock.py" in observed
    assert "Claim and observation differ claims PASS, but the check fails: python3 check_stock.py" in observed
    assert "AssertionError: 13" in observed  # what the check printed
    assert "− return stock" in observed
    assert "+ return stock + sold" in observed


def test_the_time_says_who_waited_for_whom(recorded: Recorded) -> None:
    shown = read_report(recorded.house, recorded.story, time.time()).run.timeline
    told = {lane.task_id: lane.told for lane in shown.lanes}
    assert re.fullmatch(r"waited [\d.]+ s for prices, worked [\d.]+ s", told["bill"])
    assert re.fullmatch(r"waited [\d.]+ s for bill, worked [\d.]+ s", told["guide"])
    assert re.fullmatch(r"worked [\d.]+ s", told["prices"])
    assert [link.task_id for link in shown.chain] == ["prices", "bill", "guide", "index"]
    record = recorded.house.ledger.run(recorded.story)
    assert record.ended_at is not None
    assert shown.seconds == pytest.approx(record.ended_at - record.created_at, abs=0.1)
    assert sum(link.seconds for link in shown.chain) < shown.seconds


def test_everything_simulated_says_so(story: str) -> None:
    text = Seen(story).text
    assert "Simulated. The model's answers in this run were scripted." in text
    assert text.count("simulated") >= 1 + 5  # the head, and every task


def test_what_is_unknown_is_said_to_be_unknown(story: str) -> None:
    text = Seen(story).text
    assert "Workers' cost unknown no price is set for the model" in text
    assert "supervisor unknown: no supervising session is on record" in text


def test_costs_follow_the_prices_of_the_policy(recorded: Recorded) -> None:
    spent = read_report(recorded.house, recorded.story, time.time()).run.spent[0].spent
    price = f'[prices."{spent.model}"]\ninput = 2.0\ncached_input = 0.5\noutput = 10.0\n'
    with recorded.sim.policy(price):
        run = read_report(recorded.house, recorded.story, time.time()).run
    assert spent.input_tokens and spent.output_tokens and spent.cached_input_tokens is not None
    fresh = spent.input_tokens - spent.cached_input_tokens
    expected = (fresh * 2.0 + spent.cached_input_tokens * 0.5 + spent.output_tokens * 10.0) / 1e6
    assert run.cost == pytest.approx(expected, abs=1e-6) and run.prices_fault is None


def test_prices_that_cannot_be_read_are_said_on_the_page(recorded: Recorded) -> None:
    with recorded.sim.policy("[prices\n"):
        report = read_report(recorded.house, recorded.story, time.time())
    assert report.run.cost is None and "policy.toml" in (report.run.prices_fault or "")
    assert "policy.toml" in Seen(render_report(report)).text
    assert any("costs are unknown: " in line.plain for line in report_lines(report))


@pytest.mark.parametrize("page", ["story", "hostile"])
def test_a_page_needs_nothing_else_and_does_nothing(page: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(page)
    seen = Seen(html)
    assert not {"script", "img", "iframe", "object", "embed", "link", "form", "base"} & set(seen.tags)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("src", "style")]
    addresses = [value or "" for name, value in seen.attributes if name == "href"]
    assert addresses and all(address.startswith("#") for address in addresses)
    assert "default-src 'none'" in html


def test_every_link_of_a_page_leads_somewhere_in_it(story: str) -> None:
    seen = Seen(story)
    places = [value for name, value in seen.attributes if name == "id"]
    assert len(places) == len(set(places))
    assert {(value or "")[1:] for name, value in seen.attributes if name == "href"} <= set(places)


def test_hostile_text_stays_text(hostile: str) -> None:
    seen = Seen(hostile)
    for text in HOSTILE:
        shown = text.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
        assert shown in seen.text
    assert f"src/a{IMAGE}.txt" in seen.text
    assert "\\x1b[31mred\\x1b[0m\\x07\\x00" in seen.text
    assert all(char.isprintable() or char in "\n\t" for char in hostile)


def test_a_long_text_is_cut_and_says_where_the_whole_is(recorded: Recorded, hostile: str) -> None:
    text = Seen(hostile).text
    assert re.search(r"10\.\d MB between are left out here", text)
    assert f"baton runs export {recorded.hostile}" in text
    failing = text.partition("The failing part, or the end:")[2].partition("Beginning and end of the output")[
        0
    ]
    assert failing.rstrip().endswith("the very end")
    assert len(hostile) < 400_000


def test_without_a_repository_everything_else_is_shown(recorded: Recorded) -> None:
    place = recorded.house.state.repos / recorded.house.ledger.run(recorded.story).repo_key / "git" / "store"
    place.rename(place.with_name("away"))
    try:
        text = Seen(render_report(read_report(recorded.house, recorded.story, time.time()))).text
    finally:
        place.with_name("away").rename(place)
    assert "No diff: it cannot be read any more" in text
    assert "AssertionError: 13" in text


def test_the_command_writes_a_page_for_this_user_alone(recorded: Recorded, run: Run, story: str) -> None:
    done = run("report", recorded.story, "--html", "page.html")
    assert (done.exit_code, done.output) == (0, "written: page.html\n")
    assert Path("page.html").stat().st_mode & 0o777 == 0o600
    assert Seen(Path("page.html").read_text()).text[:500] == Seen(story).text[:500]
    assert [entry.name for entry in Path().iterdir()] == ["page.html"]
    assert run("report", recorded.story, "--html", "page.html").exit_code == 0  # its own is replaced


def test_a_file_that_is_no_report_is_not_replaced(recorded: Recorded, run: Run) -> None:
    Path("notes.html").write_text("mine")
    done = run("report", recorded.story, "--html", "notes.html")
    assert (done.exit_code, done.output) == (
        2,
        "baton: --html notes.html exists and is no report of Baton's; name another file\n",
    )
    assert Path("notes.html").read_text() == "mine"
    Path("folder").mkdir()
    assert run("report", recorded.story, "--html", "folder").exit_code == 2
    assert run("report", recorded.story, "--html", "none/page.html").exit_code == 2


def test_in_a_pipe_the_report_is_plain_lines(recorded: Recorded, run: Run) -> None:
    done = run("report", recorded.story)
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert "\x1b" not in done.output
    assert f"Run {recorded.story}  held  simulated: the model's answers were scripted" in lines
    assert "  claims       PASS: Everything passes." in lines
    assert "  differs      claims PASS, but the check fails: python3 check_stock.py" in lines
    assert "  supervisor: unknown, no session is on record" in lines
    hostile = run("report", recorded.hostile)
    assert all(char.isprintable() or char == "\n" for char in hostile.output)


def test_one_task_can_be_asked_for(recorded: Recorded, run: Run) -> None:
    done = run("report", recorded.story, "--task", "stock")
    assert "Everything passes." in done.output
    assert "4 more tasks: --task ID shows one" in done.output
    wrong = run("report", recorded.story, "--task", "stocks")
    assert (wrong.exit_code, wrong.output) == (
        1,
        f"baton: run {recorded.story} has no task 'stocks'; `baton runs show {recorded.story}` lists them\n",
    )
    unknown = run("report", "r2222222")
    assert (unknown.exit_code, unknown.output.count("\n")) == (1, 1)
