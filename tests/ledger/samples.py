"""Records as a run would write them."""

from __future__ import annotations

from baton.contract.claim import Claim, ClaimStatus
from baton.contract.evidence import AttemptResult, CheckResult, CheckStatus, Evidence, Route, ScopeEvidence
from baton.contract.states import Enforcement, Verdict
from baton.contract.task import Task
from baton.ledger.records import RunRecord, TaskRecord

RUN = "rabcdefgh"


def a_run(run_id: str = RUN, workspace: str = "/home/person/project") -> RunRecord:
    return RunRecord(run_id=run_id, workspace=workspace, repo_key="key", session={"thread": "t"})


def a_task(run_id: str = RUN, task_id: str = "one", position: int = 0) -> TaskRecord:
    contract = Task(
        objective="Do it",
        allowed_files=["src/"],
        verification_commands=["make test", ["pytest", "-q"]],
        depends_on=["zero"],
    )
    return TaskRecord(
        run_id=run_id, task_id=task_id, position=position, contract=contract, depends_on=["zero"]
    )


def a_result(summary: str = "done", tail: str = "") -> AttemptResult:
    check = CheckResult(
        command="make test",
        argv=["make", "test"],
        tree="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        status=CheckStatus.PASSED,
        seconds=1.5,
        sandboxed=True,
        tail=tail,
    )
    return AttemptResult(
        attempt=1,
        verdict=Verdict.VERIFIED,
        reasons=["one check passed"],
        claim=Claim(
            status=ClaimStatus.PASS, summary=summary, files_changed=[], checks_run=[], blockers=[], notes=[]
        ),
        evidence=Evidence(base="b", scope=ScopeEvidence(enforcement=Enforcement.PREVENTED), checks=[check]),
        route=Route(asked_model="m", model="m"),
    )
