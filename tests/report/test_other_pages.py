"""Pools, consultations and reviews in the dashboard, over records as their rooms write them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from baton.contract.consult import Answer, Material, Source, SourceMode, TurnState
from baton.contract.evidence import Route, Usage
from baton.contract.reply import ReplyFailure
from baton.contract.review import Confidence, Disposition, Located, ReviewMode, ReviewState, Severity
from baton.engine.house import House
from baton.ledger.consult_records import ConsultationRecord, ConsultTurnRecord
from baton.ledger.pool_records import JobState, PoolAttemptRecord, PoolJobRecord, PoolRecord
from baton.ledger.review_records import (
    DispositionRecord,
    ReviewFindingRecord,
    ReviewReadRecord,
    ReviewRecord,
)
from baton.report.dashboard.app import dashboard
from baton.report.dashboard.keys import Keys
from baton.report.dashboard.live import consultations_mark, pools_mark, reviews_mark
from report.story import HOSTILE, IMAGE, SCRIPT
from report.test_dashboard import BASE, PORT
from report.test_report import Seen

TEXT = " ".join(HOSTILE)
SHOWN = TEXT.replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")


@pytest.fixture
def house() -> Iterator[House]:
    with House.open() as opened:
        yield opened


@pytest.fixture
def browser(house: House) -> TestClient:
    keys = Keys(PORT)
    made = TestClient(dashboard(house, keys, PORT), base_url=BASE)
    made.get(keys.link)
    return made


def add_pool(house: House) -> None:
    house.ledger.create_pool(PoolRecord(pool_id="p1", jobs_file="/w/jobs.jsonl", run_dir="/w", note=TEXT))
    jobs = [
        PoolJobRecord(
            pool_id="p1", job_id=f"job/{n}", position=n, fingerprint=f"f{n}", writes=n == 0, safe_retry=True
        )
        for n in range(250)
    ]
    house.ledger.add_pool_jobs(jobs)
    output = house.artifacts.put_bytes(SCRIPT.encode() + b"\x1b[2J")
    attempt = PoolAttemptRecord(
        pool_id="p1",
        job_id="job/0",
        attempt=1,
        backend="app-server",
        route=Route(asked_model="gpt-5.6-luna", provider="sim"),
    )
    house.ledger.begin_pool_attempt(attempt)
    ended = attempt.model_copy(
        update={"state": "failed", "message": TEXT, "failure_class": "rate_limit", "output": output}
    )
    job = {"state": JobState.FAILED, "reason": TEXT, "tokens": 1234}
    house.ledger.end_pool_attempt(ended, job)


def test_a_pool_shows_its_jobs_by_pages_and_each_with_its_attempts(house: House, browser: TestClient) -> None:
    before = pools_mark(house)
    add_pool(house)
    assert pools_mark(house) != before
    listed = Seen(browser.get("/pools").text).text
    assert "/w/jobs.jsonl" in listed
    assert "1 of 250" in listed
    assert SHOWN in listed
    page = Seen(browser.get("/pools/p1").text).text
    assert "1–100 of 250 jobs" in page
    assert "job/99" in page
    assert "job/100" not in page
    last = Seen(browser.get("/pools/p1?page=3").text).text
    assert "201–250 of 250 jobs" in last
    assert "job/249" in last
    assert "job/199" not in last
    failed = Seen(browser.get("/pools/p1?state=failed").text).text
    assert "1 job" in failed
    assert "job/0 failed" in failed
    assert browser.get("/pools/p1?state=fine").status_code == 400
    job = browser.get("/pools/p1/jobs/job/0").text
    assert "It may write." in Seen(job).text
    assert "rate limit" in Seen(job).text
    assert f"{SCRIPT}\\x1b[2J" in Seen(job).text
    assert "gpt-5.6-luna as asked for" in Seen(job).text
    assert "simulated" in Seen(job).text
    assert Seen(job).tags.count("script") == 1
    assert browser.get("/pools/p1/jobs/none").status_code == 404


def turn(number: int, **more: object) -> ConsultTurnRecord:
    fields = {
        "consultation_id": "c1",
        "number": number,
        "round": 1,
        "agent": "claude",
        "runtime": "claude",
        "capability": "reasoning",
        "source_mode": SourceMode.AUTO,
        "sees": "given",
        "why": "the best score for reasoning",
        "prompt_bytes": 2_000,
        "question": f"Is it right? {TEXT}",
        "material": [Material(label=IMAGE, bytes=10, sha256="0" * 64)],
    }
    return ConsultTurnRecord(**(fields | more))


def add_consultation(house: House) -> None:
    asked = house.ledger.begin_consultation(
        ConsultationRecord(consultation_id="c1", title=TEXT), [turn(1), turn(2, agent="gemini")]
    )
    for one in asked:
        assert house.ledger.start_consult_turn(one.turn, 5)
    answer = Answer(text=f"Yes. {TEXT}", assumptions=["that it runs"], sources=[Source(title=SCRIPT)])
    house.ledger.end_consult_turn(
        asked[0].turn, state=TurnState.ANSWERED, answer=answer, cost=0.25, usage=Usage(total_tokens=777)
    )
    house.ledger.end_consult_turn(
        asked[1].turn, state=TurnState.FAILED, failure=ReplyFailure.AUTH, detail="not logged in"
    )
    house.ledger.settle_consultation("c1")


def test_a_consultation_shows_who_said_what_and_what_nobody_checked(
    house: House, browser: TestClient
) -> None:
    before = consultations_mark(house)
    add_consultation(house)
    assert consultations_mark(house) != before
    listed = Seen(browser.get("/consultations").text).text
    assert "c1 partly" in listed
    assert "claude, gemini" in listed
    assert "unknown" in listed  # one of the two told no cost
    html = browser.get("/consultations/c1").text
    page = Seen(html).text
    assert f"Yes. {SHOWN}" in page
    assert "auth not logged in" in page
    assert "Sources as it names them; nobody checked them" in page
    assert "777 tokens · cost $0.2500" in page
    assert "unknown tokens · cost unknown" in page
    assert Seen(html).tags.count("script") == 1
    assert "img" not in Seen(html).tags


def test_a_consultation_whose_text_is_not_kept_says_so(house: House, browser: TestClient) -> None:
    house.ledger.begin_consultation(
        ConsultationRecord(consultation_id="c2", keeps_text=False),
        [turn(1, consultation_id="c2", question=None)],
    )
    assert "its text is not kept" in Seen(browser.get("/consultations").text).text
    assert "No text of it is kept in the record." in Seen(browser.get("/consultations/c2").text).text
    assert browser.get("/consultations/none").status_code == 404


def add_review(house: House) -> None:
    plan = {
        "source": {"kind": "text"},
        "manifest": [{"label": IMAGE, "bytes": 2_000, "sha256": "0" * 64}],
        "places": {},
        "reviewers": [{"agent": "codex", "seat": "codex", "why": "the best score for review"}],
        "secrets": [f"{SCRIPT}:3"],
    }
    made = ReviewRecord(review_id="v1", mode=ReviewMode.DEEP, goal=TEXT, plan=plan, approval="0" * 64)
    host = finding(1, source="host", severity=Severity.MINOR, title="A word is missing")
    house.ledger.begin_review(made, [host])
    house.ledger.change_review("v1", state=ReviewState.AWAITING_SYNTHESIS, consultation_id="c1")
    found = [
        finding(2, title=TEXT, detail=TEXT, suggestion=TEXT, path=IMAGE, line=7, located=Located.CHANGED),
        finding(3, severity=Severity.CRITICAL, title="It loses data"),
    ]
    read = ReviewReadRecord(review_id="v1", turn=1, seat="codex", parsed=True)
    assert house.ledger.record_read(read, found)
    unread = ReviewReadRecord(review_id="v1", turn=2, seat="opencode", parsed=False, detail=TEXT)
    assert house.ledger.record_read(unread, [])


def finding(number: int, **more: object) -> ReviewFindingRecord:
    fields = {
        "review_id": "v1",
        "number": number,
        "source": "codex",
        "severity": Severity.IMPORTANT,
        "confidence": Confidence.HIGH,
    }
    return ReviewFindingRecord(**(fields | more))


def test_a_review_shows_its_findings_with_the_gravest_first_and_what_became_of_them(
    house: House, browser: TestClient
) -> None:
    assert "Nothing has been reviewed yet." in Seen(browser.get("/reviews").text).text
    before = reviews_mark(house)
    add_review(house)
    marks = [before, reviews_mark(house)]
    listed = Seen(browser.get("/reviews").text).text
    assert "1 critical, 1 important, 1 minor (2 serious ones open)" in listed
    assert SHOWN in listed
    html = browser.get("/reviews/v1").text
    page = Seen(html).text
    assert Seen(html).tags.count("script") == 1
    assert "img" not in Seen(html).tags
    places = [page.index(text) for text in ("F3 It loses data", f"F2 {SHOWN}", "F1 A word is missing")]
    assert places == sorted(places)
    assert f"{IMAGE}:7, on a line that was changed; by codex" in page
    assert "no place named; by the session itself" in page
    assert "2 serious ones open" in page
    assert f"The answer of opencode could not be read as findings: {SHOWN}" in page
    assert "It holds what looks like credentials:" in page
    assert "not answered" in page
    decided = [
        DispositionRecord(
            review_id="v1", number=2, disposition=Disposition.REJECTED, reason=TEXT, source="host"
        ),
        DispositionRecord(review_id="v1", number=3, disposition=Disposition.FIXED, source="recheck"),
    ]
    house.ledger.decide("v1", decided, conclusion=TEXT, finalise=True)
    marks.append(reviews_mark(house))
    after = Seen(browser.get("/reviews/v1").text).text
    assert "Why it is rejected" in after
    assert "F2 rejected" in after
    assert "F3 fixed, by a recheck" in after
    assert "serious" not in after
    assert "finalised" in Seen(browser.get("/reviews").text).text
    assert len({*marks}) == len(marks)
    assert reviews_mark(house, "v1") != reviews_mark(house, "v2")
    assert browser.get("/reviews/none").status_code == 404


def test_reviewers_scores_stand_below_their_reviews(house: House, browser: TestClient) -> None:
    add_review(house)
    assert "Reviewers" not in Seen(browser.get("/reviews").text).text
    request = {"seat": "codex"}
    asked = house.ledger.begin_consultation(
        ConsultationRecord(consultation_id="c1"), [turn(1, agent="codex", model=SCRIPT, request=request)]
    )
    assert house.ledger.start_consult_turn(asked[0].turn, 5)
    house.ledger.end_consult_turn(asked[0].turn, state=TurnState.ANSWERED, answer=Answer(text="Done."))
    decided = [
        DispositionRecord(review_id="v1", number=2, disposition=Disposition.REJECTED, source="host"),
        DispositionRecord(review_id="v1", number=3, disposition=Disposition.FIXED, source="host"),
    ]
    house.ledger.decide("v1", decided, finalise=True)
    page = Seen(browser.get("/reviews").text).text
    # Asked, answered, unparsed; findings, kept, rejected, open; below ten decided no rate; nobody beside it.
    assert f"codex {SCRIPT} 1 1 0 2 1 1 0 unknown unknown" in page
