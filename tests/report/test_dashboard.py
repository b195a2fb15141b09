"""The dashboard: who may look, and what the pages show of real runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from baton.contract.errors import StateUnavailable
from baton.contract.states import TaskState
from baton.contract.task import Task
from baton.engine.house import House
from baton.ledger.pages import Pages
from baton.ledger.records import NewEvent, RunRecord, TaskRecord
from baton.report.dashboard import app
from baton.report.dashboard.app import PAGES, dashboard
from baton.report.dashboard.keys import Keys
from baton.report.dashboard.live import news, run_mark, runs_mark
from report.conftest import Recorded
from report.story import HOSTILE
from report.test_report import Seen

PORT = 8123
BASE = f"http://127.0.0.1:{PORT}"

Get = Callable[..., Any]


@pytest.fixture
def house() -> Iterator[House]:
    """An empty one."""
    with House.open() as opened:
        yield opened


@pytest.fixture
def keys() -> Keys:
    return Keys(PORT)


def client(house: House, keys: Keys) -> TestClient:
    return TestClient(dashboard(house, keys, PORT), base_url=BASE, raise_server_exceptions=True)


@pytest.fixture
def outside(house: House, keys: Keys) -> TestClient:
    """A browser that has not entered."""
    return client(house, keys)


@pytest.fixture
def inside(house: House, keys: Keys) -> TestClient:
    """One that has."""
    made = client(house, keys)
    assert made.get(keys.link).status_code == 200
    return made


@pytest.fixture
def browser(recorded: Recorded, keys: Keys) -> TestClient:
    """One that looks at the recorded runs."""
    made = client(recorded.house, keys)
    made.get(keys.link)
    return made


# -- who may look ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PAGES, "/runs/x/report.html", "/live", "/static/style.css", "/nowhere"])
def test_nothing_is_shown_to_whoever_has_not_entered(outside: TestClient, path: str) -> None:
    answer = outside.get(path)
    assert answer.status_code == 401
    assert answer.text == (
        "baton dashboard: open the link that `baton dashboard` printed; every link works once\n"
    )


def test_a_link_works_once_and_becomes_a_cookie_that_no_script_reads(outside: TestClient, keys: Keys) -> None:
    link = keys.link
    answer = outside.get(link)
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 200
    assert re.fullmatch(rf"baton-{PORT}=[\w-]{{43}}; HttpOnly; Path=/; SameSite=strict", cookie)
    assert keys.session not in link
    assert outside.get("/").status_code == 200
    second = TestClient(outside.app, base_url=BASE)
    assert second.get(link).status_code == 401
    assert second.get("/").status_code == 401


def test_the_next_link_is_told_when_one_has_been_used(house: House) -> None:
    told: list[str] = []
    keys = Keys(PORT, told.append)
    first = keys.link
    assert client(house, keys).get(first).status_code == 200
    assert told == [keys.link]
    assert keys.link != first
    assert client(house, keys).get(keys.link).status_code == 200


def test_looking_whether_there_is_something_uses_no_link_up(outside: TestClient, keys: Keys) -> None:
    link = keys.link
    assert outside.head(link).status_code == 204
    assert outside.get(link).status_code == 200


@pytest.mark.parametrize("token", ["", "x", "é", "%00", "%FF"])
def test_a_wrong_token_opens_nothing(outside: TestClient, token: str) -> None:
    answer = outside.get(f"/enter?token={token}")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("value", ["", "x", '"', "é".encode().decode("latin-1")])
def test_a_wrong_cookie_opens_nothing(outside: TestClient, value: str) -> None:
    answer = outside.get("/", headers={"cookie": f"baton-{PORT}={value}".encode("latin-1")})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.nip.io:{PORT}", ""],
)
def test_a_foreign_host_is_refused_even_with_the_cookie(inside: TestClient, keys: Keys, host: str) -> None:
    assert inside.get("/", headers={"host": host}).status_code == 403
    assert inside.get(keys.link.removeprefix(BASE), headers={"host": host}).status_code == 403


def test_the_other_name_of_this_machine_is_its_own_place(inside: TestClient, keys: Keys) -> None:
    host = {"host": f"localhost:{PORT}", "cookie": f"{keys.cookie}={keys.session}"}
    assert inside.get("/", headers=host).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1"]
)
def test_a_foreign_origin_is_refused_even_with_the_cookie(inside: TestClient, origin: str) -> None:
    assert inside.get("/", headers={"origin": origin}).status_code == 403
    assert inside.get("/", headers={"origin": BASE}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_makes_the_browser_ask_is_refused(
    inside: TestClient, keys: Keys, site: str
) -> None:
    assert inside.get("/", headers={"sec-fetch-site": site}).status_code == 403
    assert (
        inside.get(keys.link, headers={"sec-fetch-site": site}).status_code == 200
    )  # a link may stand anywhere


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_done_but_looking(inside: TestClient, method: str) -> None:
    assert inside.request(method, "/").status_code == 405


@pytest.mark.parametrize("path", ["/", "/nowhere", "/static/style.css", "/runs/none"])
def test_every_answer_forbids_what_a_page_does_not_need(inside: TestClient, path: str) -> None:
    answer = inside.get(path)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert inside.get(path).headers["content-security-policy"] != policy  # a nonce is used once


def test_a_page_carries_the_nonce_of_its_policy_and_nothing_inline(inside: TestClient) -> None:
    answer = inside.get("/")
    nonce = re.search(r"'nonce-([\w-]+)'", answer.headers["content-security-policy"])
    assert nonce is not None
    assert re.findall(r'nonce="([\w-]+)"', answer.text) == [nonce[1], nonce[1]]
    seen = Seen(answer.text)
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name == "style"]
    assert "<script>" not in answer.text
    assert "<style" not in answer.text


# -- what is shown ---------------------------------------------------------------------------------


def test_an_empty_record_says_so(inside: TestClient) -> None:
    assert "Nothing has been delegated yet." in Seen(inside.get("/").text).text
    assert "No job file has been run yet" in Seen(inside.get("/pools").text).text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/nowhere", 404, "There is no such page."),
        ("/runs/none", 404, "no run 'none'"),
        ("/runs/none/tasks/t1", 404, "no run 'none'"),
        ("/runs/none/events", 404, "no run 'none'"),
        ("/runs/none/report.html", 404, "no run 'none'"),
        ("/pools/none", 404, "none"),
        ("/static/parts.html", 404, "there is no 'parts.html' here"),
        ("/?page=x", 400, "page=x is no number from 1 on"),
        ("/?page=-1", 400, "page=-1 is no number"),
        ("/?page=99999999999999999999999", 400, "is no number"),
        pytest.param("/?page=" + "0" * 19 + "1" + "9" * 9, 400, "is no number", id="zeros"),
        pytest.param("/?page=" + "0" * 19 + "1" + "9" * 9999, 400, "is no number", id="ten thousand digits"),
        ("/?state=doen", 400, "state=doen is none; states are queued, running"),
        ("/live?of=secrets", 404, "there is no news of 'secrets'"),
    ],
)
def test_a_wrong_address_is_answered_in_a_line(
    inside: TestClient, path: str, status: int, words: str
) -> None:
    answer = inside.get(path)
    assert answer.status_code == status
    assert words in Seen(answer.text).text


@pytest.mark.codex
def test_the_list_shows_and_filters_runs(recorded: Recorded, browser: TestClient) -> None:
    text = Seen(browser.get("/").text).text
    assert recorded.story in text
    assert recorded.hostile in text
    assert "1 failed, 4 verified" in text

    def listed(query: str) -> list[str]:
        return re.findall(r'href="/runs/(\w+)"', browser.get(f"/?{query}").text)

    assert listed("verdict=verified") == [recorded.story]
    assert listed("text=bill") == [recorded.story]
    assert listed("workspace=/nowhere") == []
    assert listed("state=done") == []
    assert listed("state=held") == [recorded.hostile, recorded.story]


@pytest.mark.codex
@pytest.mark.parametrize("which", ["story", "hostile"])
def test_every_link_of_every_page_leads_to_a_page(
    recorded: Recorded, browser: TestClient, which: str
) -> None:
    run_id = getattr(recorded, which)
    known, pending = set[str](), [f"/runs/{run_id}"]
    while pending:
        path = pending.pop()
        if path in known:
            continue
        known.add(path)
        answer = browser.get(path)
        assert answer.status_code == 200, path
        if not answer.headers["content-type"].startswith("text/html") or path.endswith("report.html"):
            continue
        seen = Seen(answer.text)
        assert seen.tags.count("script") == 1
        assert all(char.isprintable() or char in "\n\t" for char in answer.text)
        # Of the pages of a long text a few are enough.
        links = [value or "" for name, value in seen.attributes if name == "href"]
        own = [link for link in links if link.startswith(f"/runs/{run_id}")]
        pending += [link for link in own if not re.search(r"page=([3-9]|\d\d)", link)]
    assert {f"/runs/{run_id}/events", f"/runs/{run_id}/usage"} <= known
    assert any("/tasks/" in path for path in known)
    assert any("/texts/" in path for path in known) == (which == "hostile")


@pytest.mark.codex
def test_hostile_text_stays_text_on_every_page(recorded: Recorded, browser: TestClient) -> None:
    for path in (
        "/",
        f"/runs/{recorded.hostile}",
        f"/runs/{recorded.hostile}/tasks/t1",
        f"/runs/{recorded.hostile}/events",
    ):
        text = Seen(browser.get(path).text).text
        assert HOSTILE[0] in text
        assert "\\u202e" in text


@pytest.mark.codex
def test_a_long_text_can_be_read_whole_page_by_page(recorded: Recorded, browser: TestClient) -> None:
    page = browser.get(f"/runs/{recorded.hostile}/tasks/t1").text
    path = re.search(r'href="(/runs/\w+/texts/(\w+))"', page)
    assert path is not None
    whole = recorded.house.artifacts.read(path[2])
    pages = -(-len(whole) // 100_000)
    shown = []
    for number in (1, 2, pages):
        answer = browser.get(f"{path[1]}?page={number}").text
        inner = answer.partition('<pre tabindex="0">')[2].partition("</pre>")[0]
        shown.append(Seen(inner).words)
    texts = ["".join(words) for words in shown]
    assert texts[1] == whole[100_000:200_000].decode()
    assert texts[2] == whole[(pages - 1) * 100_000 :].decode()
    assert texts[0].endswith(whole[1_000:100_000].decode())
    assert browser.get(f"/runs/{recorded.story}/texts/{path[2]}").status_code == 404  # of another run


@pytest.mark.codex
def test_the_evidence_of_an_earlier_attempt_can_be_seen(recorded: Recorded, browser: TestClient) -> None:
    address = f"/runs/{recorded.story}/tasks/stock"
    assert "Evidence of attempt 1, 2" in Seen(browser.get(address).text).text
    assert browser.get(f"{address}?attempt=1").status_code == 200
    assert browser.get(f"{address}?attempt=3").status_code == 404


def test_a_record_that_cannot_be_read_says_so_in_a_line(house: House, inside: TestClient) -> None:
    add_run(house, "r1")
    answer = inside.get("/runs/r1/usage")  # its plan is missing
    assert answer.status_code == 500
    assert "cannot be read by this version of Baton: RunPlan routes: Field required" in Seen(answer.text).text
    with house.ledger.db.transaction() as db:
        db.execute("UPDATE runs SET state = 'dreaming'")
    assert inside.get("/runs/r1/tasks/t0").status_code == 503
    assert inside.get("/").status_code == 503


def test_what_nobody_expected_is_a_page_too(
    house: House, inside: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> list[object]:
        raise RuntimeError("<b>so it goes</b>")

    monkeypatch.setattr(Pages, "runs_page", broken)
    answer = inside.get("/")
    assert answer.status_code == 500
    assert "a fault of Baton's own".lower() in answer.text.lower().replace("&#39;", "'")
    assert "RuntimeError: <b>so it goes</b>" in Seen(answer.text).text


def test_news_that_cannot_be_read_end_and_are_asked_for_again(
    inside: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise StateUnavailable("the disk is gone")

    monkeypatch.setattr(app, "runs_mark", broken)
    assert inside.get("/live?of=runs").content == b""


@pytest.mark.codex
def test_a_diff_can_be_read_from_any_line_on(recorded: Recorded, browser: TestClient) -> None:
    address = f"/runs/{recorded.story}/tasks/stock/diff?attempt=2"
    whole = Seen(browser.get(address).text).text
    assert "shop/stock.py" in whole
    assert "− return stock" in whole
    later = Seen(browser.get(f"{address}&line=7").text).text
    assert "From line 7 of 8." in later
    assert "+ return stock + sold" in later
    assert "− return stock" not in later
    assert browser.get(f"/runs/{recorded.story}/tasks/stock/diff?attempt=9").status_code == 404


# -- live ------------------------------------------------------------------------------------------


def add_run(house: House, run_id: str, tasks: int = 1) -> None:
    run = RunRecord(run_id=run_id, workspace="/w", repo_key="k")
    made = [
        TaskRecord(
            run_id=run_id, task_id=f"t{n}", position=n, contract=Task(objective="Do.", allowed_files=["a"])
        )
        for n in range(tasks)
    ]
    house.ledger.create_run(run, made, event=NewEvent(kind="run.admitted"))


def test_a_change_is_news_and_nothing_is_not(house: House) -> None:
    add_run(house, "r1")

    async def follow() -> list[bytes]:
        seen = []
        with anyio.fail_after(30):
            async for line in news(
                house, lambda: run_mark(house, "r1").rpartition(" ")[0], lambda: len(seen) >= 3
            ):
                seen.append(line)
                if len(seen) == 1:
                    add_run(house, "r2")  # somebody else's
                if len(seen) == 2:
                    house.ledger.update_task(
                        "r1", "t0", state=TaskState.WORKING, event=NewEvent(kind="task.x")
                    )
        return seen

    seen = anyio.run(follow)
    assert seen[0] == b": at your service\n\n"
    assert b": nothing\n\n" in seen
    assert seen[-1] == b"event: changed\ndata: 1\n\n"


def test_a_stream_ends_with_its_server(house: House) -> None:
    async def follow() -> int:
        with anyio.fail_after(30):
            return len([line async for line in news(house, lambda: "same", lambda: True)])

    assert anyio.run(follow) == 1


def test_the_list_changes_with_every_run_and_every_event(house: House) -> None:
    marks = [runs_mark(house)]
    add_run(house, "r1")
    marks.append(runs_mark(house))
    house.ledger.append_event("r1", "worker.command", "t0", 1, {"command": "true"})
    marks.append(runs_mark(house))
    assert len(set(marks)) == 3


# -- many ------------------------------------------------------------------------------------------


def test_lists_come_by_pages(house: House, inside: TestClient) -> None:
    for number in range(45):
        add_run(house, f"r{number:02d}", tasks=90 if number == 44 else 1)
    first = inside.get("/").text
    assert len(set(re.findall(r'href="/runs/(r\d+)"', first))) == 40
    assert "1–40 of 45 runs" in Seen(first).text
    second = inside.get("/?page=2").text
    assert set(re.findall(r'href="/runs/(r\d+)"', second)) == {f"r{number:02d}" for number in range(5)}
    assert inside.get("/?page=7").text.count("41–45 of 45 runs") == 1
    last = Seen(inside.get("/runs/r44?page=3").text).text
    assert "81–90 of 90 tasks" in last
    for number in range(250):
        house.ledger.append_event(
            "r00", "worker.command", "t0", 1, {"command": f"number-{number:03d}"}, durable=False
        )
    newest = inside.get("/runs/r00/events").text
    assert "number-249" in newest
    assert "number-049" not in newest
    earlier = re.search(r'href="([^"]+)" rel="prev"', newest)
    assert earlier is not None
    before = inside.get(earlier[1].replace("&amp;", "&")).text
    assert "number-049" in before
    assert 'rel="prev"' not in before
