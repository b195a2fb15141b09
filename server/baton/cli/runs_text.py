"""Runs in words: a run with its results, and claim beside observation. Foreign text is made harmless here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from baton.cli.amounts import duration, tokens
from baton.cli.shown import many_lines, one_line
from baton.contract.evidence import AttemptResult, CheckResult
from baton.engine.house import House
from baton.ledger.records import AttemptRecord, RunRecord, TaskRecord

MAX_CHANGES = 50
MAX_SUMMARY = 200


def run_lines(run: RunRecord, tasks: Sequence[TaskRecord], fetch: Mapping[str, str]) -> Iterator[str]:
    """A run with the result of each task; `fetch` has the git commands of those that are kept, by task."""
    yield f"{run.run_id}  {run.state}  {one_line(run.workspace)}"
    if run.note:
        yield f"  {one_line(run.note)}"
    for task in tasks:
        named = one_line(task.label or task.contract.objective)[:80]
        yield f"\n{one_line(task.task_id)}: {task.verdict or task.state}  {named}"
        for reason in task.reasons:
            yield f"  because: {one_line(reason)}"
        if task.outcome.integration is not None:
            detail = f": {one_line(task.outcome.detail)}" if task.outcome.detail else ""
            yield f"  workspace: {task.outcome.integration}{detail}"
        if task.result is not None:
            yield from _result(task.result)
        if task.task_id in fetch:
            yield f"  kept: {one_line(fetch[task.task_id])}"


def evidence_lines(
    house: House, run: RunRecord, tasks: Sequence[TaskRecord], *, with_output: bool
) -> Iterator[str]:
    """Every attempt at each task, then the tries to integrate."""
    yield f"{run.run_id}  {run.state}  {one_line(run.workspace)}"
    for task in tasks:
        yield f"\n{one_line(task.task_id)}: {task.verdict or task.state}"
        yield f"  asked: {one_line(task.contract.objective)}"
        for attempt in house.ledger.attempts(run.run_id, task.task_id):
            yield from _attempt(house, attempt, with_output=with_output)
    for one in house.ledger.integrations(run.run_id):
        detail = f": {one_line(one.detail)}" if one.detail else ""
        yield f"\nintegration, try {one.number}: {one.step}{detail}"
        for conflict in one.conflicts:
            yield f"  conflict: {one_line(conflict)}"
        for check in one.checks:
            yield from _check(house, check, with_output=with_output)


def _attempt(house: House, attempt: AttemptRecord, *, with_output: bool) -> Iterator[str]:
    yield f"  attempt {attempt.attempt} ({attempt.kind}): {attempt.step}"
    result = attempt.result
    route = attempt.route
    if route is not None:
        asked = one_line(f"{route.asked_model} {route.asked_effort or ''}").strip()
        got = one_line(f"{route.model or 'unknown'} {route.effort or ''}").strip()
        yield f"    route asked for: {asked}; as Codex reports: {got}{' DEVIATES' if route.deviates else ''}"
    if result is None:
        return
    usage = result.usage
    yield f"    {duration(result.seconds)}, tokens {tokens(usage.total_tokens)}, verdict {result.verdict}"
    claim = result.claim
    if claim is None:
        yield "    claimed: nothing that could be read"
    else:
        yield f"    claimed: {claim.status}: {one_line(claim.summary)[:MAX_SUMMARY]}"
        if claim.files_changed:
            yield f"    claimed files: {one_line(', '.join(claim.files_changed))}"
        for ran in claim.checks_run:
            yield f"    claimed check: {one_line(ran)}"
    for line in _observed(result):
        yield f"    {line}"
    for check in result.evidence.checks:
        for line in _check(house, check, with_output=with_output):
            yield f"  {line}"
    for text in result.evidence.discrepancies:
        yield f"    discrepancy: {one_line(text)}"
    for text in result.evidence.notices:
        yield f"    notice: {one_line(text)}"
    if result.decision is not None:
        decided = result.decision
        yield f"    decided: {decided.trouble}: {decided.action}: {one_line(decided.why)}"


def _result(result: AttemptResult) -> Iterator[str]:
    if result.claim is not None:
        yield f"  claim: {result.claim.status}: {one_line(result.claim.summary)[:MAX_SUMMARY]}"
    for line in _observed(result):
        yield f"  {line}"
    for check in result.evidence.checks:
        detail = f" ({one_line(check.detail)})" if check.detail else ""
        yield f"  check {check.status}: {one_line(check.command)}{detail}"
    for text in result.evidence.discrepancies:
        yield f"  discrepancy: {one_line(text)}"
    for text in result.evidence.notices:
        yield f"  notice: {one_line(text)}"


def _observed(result: AttemptResult) -> Iterator[str]:
    evidence = result.evidence
    why = f" ({one_line(evidence.scope.why_detected)})" if evidence.scope.why_detected else ""
    yield f"scope: {evidence.scope.enforcement}{why}"
    for violation in evidence.scope.violations:
        yield f"out of scope: {one_line(violation.path)} ({one_line(violation.rule)})"
    for change in evidence.changes[:MAX_CHANGES]:
        yield f"{change.kind}: {one_line(change.path)}"
    if len(evidence.changes) > MAX_CHANGES:
        yield f"and {len(evidence.changes) - MAX_CHANGES} more changes"
    if not evidence.changes:
        yield "no change"


def _check(house: House, check: CheckResult, *, with_output: bool) -> Iterator[str]:
    code = "" if check.exit_code is None else f", exit {check.exit_code}"
    where = "" if check.sandboxed else ", outside the sandbox"
    yield (
        f"  check {check.status}: {one_line(check.command)}"
        f" ({check.seconds:.1f} s{code}{where}, on tree {check.tree[:12]})"
    )
    if check.detail:
        yield f"    {one_line(check.detail)}"
    text = check.tail
    if with_output and check.output is not None:
        text = house.artifacts.read(check.output).decode("utf-8", "surrogateescape")
    elif check.status == "passed":
        text = ""
    for line in many_lines(text).splitlines():
        yield f"    | {line}"
