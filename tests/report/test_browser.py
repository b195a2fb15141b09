"""The pages in a real browser: nothing to complain of, live, and hostile text stays text."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from baton.contract.states import RunState, TaskState
from baton.engine.house import House
from baton.ledger.records import NewEvent
from baton.policy.layer import PERSON_FILE
from baton.policy.load import load_policy
from baton.report.page import read_report, render_report
from report.browser import DESKTOP, PHONE, Browser, Served, a_browser, serving
from report.conftest import Recorded
from report.story import HOSTILE
from report.test_dashboard import add_run
from report.test_other_pages import add_consultation, add_pool, add_review
from report.test_workflow_pages import add_workflow

pytestmark = [pytest.mark.codex, pytest.mark.long]

STICKS_OUT = (
    "return [...document.querySelectorAll('article, .notice')]"
    ".filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.outerHTML.slice(0, 200))"
)
"""Cards that what is in them does not fit into."""

LOOKS = [(size, scheme) for size in (DESKTOP, PHONE) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def served(recorded: Recorded) -> Iterator[Served]:
    add_pool(recorded.house)
    add_review(recorded.house)
    add_workflow(recorded.house)
    add_consultation(recorded.house)
    with serving(recorded.sim.env) as dashboard:
        yield dashboard


@pytest.fixture(scope="module")
def entered(served: Served) -> Iterator[Browser]:
    """A browser that has opened the link."""
    with a_browser() as browser:
        browser.enter(served)
        yield browser


@pytest.fixture
def browser(entered: Browser) -> Browser:
    entered.show(DESKTOP)
    entered.complaints()
    return entered


def pages(recorded: Recorded) -> dict[str, str]:
    run, hostile = f"/runs/{recorded.story}", f"/runs/{recorded.hostile}"
    return {
        "runs": "/",
        "run": run,
        "task": f"{run}/tasks/stock",
        "events": f"{run}/events",
        "usage": f"{run}/usage",
        "pools": "/pools",
        "pool": "/pools/p1",
        "job": "/pools/p1/jobs/job/0",
        "consultations": "/consultations",
        "consultation": "/consultations/c1",
        "reviews": "/reviews",
        "review": "/reviews/v1",
        "workflows": "/workflows",
        "workflow": "/workflows/w1",
        "hostile-run": hostile,
        "hostile-events": f"{hostile}/events",
    }


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=lambda value: str(value))
def test_every_page_fits_and_the_browser_has_nothing_to_complain_of(
    recorded: Recorded, served: Served, browser: Browser, size: tuple[int, int], scheme: str
) -> None:
    browser.show(size, scheme)
    for name, path in pages(recorded).items():
        browser.get(served.base + path)
        browser.picture(f"{name}-{size[0]}-{scheme}")
        assert browser.run("return document.documentElement.scrollWidth") <= size[0], path
        assert browser.run(STICKS_OUT) == [], path
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == (
            "rgb(251, 250, 248)" if scheme == "light" else "rgb(22, 23, 25)"
        )
        assert not browser.complaints(), path


@pytest.mark.parametrize(("size", "scheme"), LOOKS, ids=lambda value: str(value))
def test_a_report_is_read_from_a_file(
    recorded: Recorded, browser: Browser, tmp_path: Path, size: tuple[int, int], scheme: str
) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_report(read_report(recorded.house, recorded.story, time.time())))
    browser.show(size, scheme)
    browser.get(file.as_uri())
    browser.picture(f"report-{size[0]}-{scheme}")
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    assert "Claim and observation differ" in browser.text
    assert not browser.complaints()


def test_on_paper_everything_is_there(recorded: Recorded, browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_report(read_report(recorded.house, recorded.story, time.time())))
    browser.get(file.as_uri())
    pre = "document.querySelector('details[id^=brief-] pre')"
    brief = f"return {pre}.checkVisibility({{contentVisibilityAuto: true}})"
    assert browser.run(brief) is False
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert browser.run(brief) is True
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_what_happens_appears_by_itself(recorded: Recorded, served: Served, browser: Browser) -> None:
    browser.get(served.base + "/")
    browser.run("window.same = true")
    browser.until(
        lambda: browser.run("return document.querySelector('.live').dataset.state") == "live", "live"
    )
    with House.open(recorded.sim.env) as house:
        add_run(house, "rlive")
        browser.until(lambda: "rlive" in browser.text, "the new run in the list")
        browser.get(f"{served.base}/runs/rlive")
        browser.run("window.same = true; document.querySelector('details').open = true")
        browser.until(
            lambda: browser.run("return document.querySelector('.live').dataset.state") == "live", "live"
        )
        house.ledger.update_task("rlive", "t0", state=TaskState.WORKING, event=NewEvent(kind="task.queued"))
        browser.until(lambda: "1 working" in browser.text, "the new state")
        # The page was not loaded again, and nothing was taken from under the reader's eyes.
        assert browser.run("return window.same") is True
        assert browser.run("return document.querySelector('details').open") is True
        house.ledger.update_task("rlive", "t0", state=TaskState.CANCELLED)
        house.ledger.update_run("rlive", state=RunState.CANCELLED, event=NewEvent(kind="run.cancelled"))
        browser.until(lambda: "cancelled" in browser.driver.title, "the end")
    assert not browser.complaints()


def test_hostile_text_stays_text(recorded: Recorded, served: Served, browser: Browser) -> None:
    for path in ("/", f"/runs/{recorded.hostile}", f"/runs/{recorded.hostile}/events"):
        browser.get(served.base + path)
        assert HOSTILE[0] in browser.text
        assert "\\u202egnihton\\u202c" in browser.text
        assert "taken" not in browser.driver.title
        assert browser.run("return document.querySelectorAll('script, img, iframe').length") == 1
    assert "{{ 7 * 7 }}" in browser.run("return document.body.textContent")
    assert not browser.complaints()


def test_ten_megabytes_do_not_make_a_page_long(recorded: Recorded, served: Served, browser: Browser) -> None:
    browser.get(f"{served.base}/runs/{recorded.hostile}/tasks/t1")
    assert browser.run("return document.documentElement.outerHTML.length") < 300_000
    browser.run("document.querySelector('details[id^=output-]').open = true")
    browser.driver.find_element(By.LINK_TEXT, "The whole text").click()
    browser.until(lambda: "1–100,000 of" in browser.text, "the first part of the text")
    browser.picture("text-1280-light")
    browser.driver.find_element(By.PARTIAL_LINK_TEXT, "more").click()
    browser.until(lambda: "100,001–200,000 of" in browser.text, "its second part")
    assert not browser.complaints()


def test_the_keyboard_is_enough(recorded: Recorded, served: Served, browser: Browser) -> None:
    browser.get(f"{served.base}/runs/{recorded.story}")
    body = browser.driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    assert browser.run("return document.activeElement.textContent") == "To the content"
    reached = set()
    for _ in range(60):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(
            browser.run(
                "return document.activeElement.getAttribute('href') || document.activeElement.tagName"
            )
        )
        outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or browser.run("return document.activeElement === document.body")
    assert f"/runs/{recorded.story}/tasks/stock" in reached


def test_who_has_not_opened_the_link_sees_nothing(recorded: Recorded, served: Served) -> None:
    with a_browser(f"--host-resolver-rules=MAP evil.example 127.0.0.1:{served.port}") as stranger:
        stranger.get(f"{served.base}/runs/{recorded.story}")
        assert stranger.text.strip().startswith("baton dashboard: open the link")
        stranger.get(f"http://evil.example:{served.port}/")
        assert stranger.text.strip().startswith("baton dashboard: this dashboard answers only as 127.0.0.1")
        stranger.get(served.link)  # it has been used
        assert "This link has been used" in stranger.text


class OtherSite(BaseHTTPRequestHandler):
    """A page of somebody else's on this machine."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>other</title>")

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def test_another_site_gets_nothing_through_the_browser(
    recorded: Recorded, served: Served, browser: Browser
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), OtherSite) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            browser.get(f"http://127.0.0.1:{site.server_address[1]}/")
            fetched = browser.driver.execute_async_script(
                "const done = arguments[1];"
                "fetch(arguments[0], {credentials: 'include'})"
                ".then(answer => answer.text()).then(done, () => done('refused'))",
                f"{served.base}/runs/{recorded.story}",
            )
            framed = browser.driver.execute_async_script(
                "const [address, done] = arguments; const frame = document.createElement('iframe');"
                "frame.src = address; document.body.append(frame);"
                "frame.onload = () => { try { done(frame.contentDocument.body.innerText) }"
                " catch { done('refused') } }",
                f"{served.base}/",
            )
        finally:
            site.shutdown()
            thread.join()
    assert (fetched, framed) == ("refused", "refused")
    browser.complaints()  # it complains of the other site, rightly


def test_an_agent_is_edited_where_that_is_switched_on(recorded: Recorded, browser: Browser) -> None:
    file = recorded.house.codex_home / PERSON_FILE
    before = file.read_bytes() if file.exists() else None
    with serving(recorded.sim.env, "--edit") as editing:
        try:
            browser.enter(editing)
            browser.driver.find_element(By.LINK_TEXT, "Agents").click()
            browser.until(lambda: browser.driver.title.startswith("Agents"), "the page of the agents")
            for size, scheme in LOOKS:
                browser.show(size, scheme)
                browser.picture(f"agents-{size[0]}-{scheme}")
                assert browser.run("return document.documentElement.scrollWidth") <= size[0]
                assert browser.run(STICKS_OUT) == []
            browser.show(DESKTOP)
            assert not browser.complaints()

            def save(field: str, text: str) -> None:
                typed = browser.driver.find_element(By.ID, f"field-claude-{field}")
                typed.clear()
                typed.send_keys(text + Keys.ENTER)

            save("priority", "first")
            browser.until(lambda: "expected a whole number" in browser.text, "the fault")
            fault = browser.driver.find_element(By.ID, "field-claude-priority-fault").text
            assert fault == 'expected a whole number, got "first"'
            assert (file.read_bytes() if file.exists() else None) == before
            browser.picture("agents-fault-1280-light")
            browser.complaints()  # it tells of the status 400
            save("priority", "7")
            browser.until(lambda: "claude is saved." in browser.text, "that it is saved")
            assert load_policy(recorded.house.codex_home, None).consult.agents["claude"].priority == 7
            assert not browser.complaints()
        finally:
            file.unlink(missing_ok=True)
            if before is not None:
                file.write_bytes(before)


def test_a_page_says_when_its_dashboard_has_ended(recorded: Recorded, browser: Browser) -> None:
    with serving(recorded.sim.env) as other:
        browser.enter(other)
        browser.until(
            lambda: browser.run("return document.querySelector('.live')?.dataset.state") == "live", "live"
        )
    browser.until(lambda: "the dashboard does not answer" in browser.text, "that it has ended")
    browser.complaints()
