"""Workflows in the dashboard, over records as their room writes them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from baton.contract.workflow import (
    Executor,
    ReportedBy,
    Step,
    StepState,
    TestOutcome,
    TestReport,
    TestRun,
    WorkflowState,
)
from baton.engine.house import House
from baton.ledger.workflow_records import WorkflowRecord, WorkflowStepRecord
from baton.report.dashboard.app import dashboard
from baton.report.dashboard.keys import Keys
from baton.report.dashboard.live import workflows_mark
from baton.workflow.terms import Bound, Party, Terms
from report.test_dashboard import BASE, PORT
from report.test_report import Seen


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


TEXT = "<b>bold</b> & \x1b[31mred"


def add_workflow(house: House) -> None:
    """One that waits for its fix."""
    agent = Bound(executor=Executor.ASK, parties=[Party(name="codex", runtime="codex", model="gpt-5.6-sol")])
    bound = {step: Bound(executor=Executor.HOST) for step in Step} | {Step.PLAN: agent}
    terms = Terms(
        bindings=bound,
        max_fix_rounds=2,
        advance_on_failed_test=False,
        different_from_implementer=True,
        different_from_planner=False,
        max_patch_bytes=1,
        max_cost=0,
        max_turns=40,
        allowed_files=["src/"],
    )
    house.ledger.begin_workflow(
        WorkflowRecord(
            workflow_id="w1",
            workspace="/nowhere",
            repo_key="k",
            goal=TEXT,
            base="b",
            terms=terms.wire(compact=False),
        )
    )
    plan = WorkflowStepRecord(
        workflow_id="w1",
        step=Step.PLAN,
        binding=agent.wire(),
        state=StepState.DONE,
        product=TEXT,
        consultation_id="c1",
    )
    run = TestRun(command="make check", outcome=TestOutcome.FAILED, exit_code=2)
    report = TestReport(outcome=TestOutcome.FAILED, reported_by=ReportedBy.HOST, tree="t", runs=[run])
    test = WorkflowStepRecord(
        workflow_id="w1",
        step=Step.TEST,
        binding=bound[Step.TEST].wire(),
        state=StepState.DONE,
        report=report,
        output=TEXT,
        detail="make check: exit status 2",
    )
    for step in (plan, test):
        house.ledger.add_workflow_step(step)
    house.ledger.move_workflow("w1", state=WorkflowState.FIX, round=1, note=TEXT)


def test_a_workflow_shows_who_does_what_and_every_step(house: House, browser: TestClient) -> None:
    assert "There is no workflow yet." in Seen(browser.get("/workflows").text).text
    before = workflows_mark(house)
    add_workflow(house)
    assert before != workflows_mark(house)
    listed = Seen(browser.get("/workflows").text).text
    assert "w1" in listed and "fix" in listed
    html = browser.get("/workflows/w1").text
    page = Seen(html).text
    assert "<b>bold</b>" not in html and "\x1b" not in html
    assert "plan: ask codex (gpt-5.6-sol)" in page and "fix round 1 of 2" in page
    assert "make check failed, exit status 2" in page and "The session says so; nobody checked it." in page
    assert page.index("2 test") < page.index("1 plan")
    assert 'href="/consultations/c1"' in html
    assert browser.get("/workflows/none").status_code == 404
    marks = {workflows_mark(house, "w1"), workflows_mark(house, "w2")}
    house.ledger.move_workflow("w1", state=WorkflowState.NEEDS_ATTENTION)
    assert workflows_mark(house, "w1") not in marks
    assert "needs attention" in Seen(browser.get("/workflows").text).text
