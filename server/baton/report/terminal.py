"""The report on one run for a terminal, or as plain lines when there is none."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from baton.contract.visible import one_line, visible
from baton.contract.wording import many
from baton.report.amounts import count, moment, money, took
from baton.report.page import Report
from baton.report.task_shown import CheckRow, TaskShown
from baton.report.tones import ACTIVE, BAD, GOOD, WARN, spoken, tone

_STYLES = {GOOD: "green", ACTIVE: "cyan", WARN: "yellow", BAD: "red"}

MAX_FILES = 20
MAX_TAIL = 12
"""Lines shown of a failing check's output."""


def print_report(report: Report, console: Console) -> None:
    """Print it. Foreign text does nothing to the terminal."""
    for line in report_lines(report):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def report_lines(report: Report) -> Iterator[Text]:
    """The report, line by line."""
    yield from _head(report)
    yield from _time(report)
    for task in report.tasks:
        yield Text()
        yield from _task(task)
    if report.left_out:
        yield Text(f"\n{many(report.left_out, 'more task')}: --task ID shows one", style="dim")
    yield from _integrations(report)
    yield from _usage(report)


def _head(report: Report) -> Iterator[Text]:
    head, line = report.run.head, report.run.head.line
    first = Text(f"Run {line.run_id}", style="bold")
    first.append("  ").append_text(_word(line.state))
    if head.simulated:
        first.append("  simulated: the model's answers were scripted", "yellow")
    yield first
    yield Text(f"  {one_line(line.workspace)}")
    counts = ", ".join(f"{number} {spoken(word)}" for word, number in head.verdicts.items())
    yield Text(f"  {many(head.tasks, 'task')}: {counts}")
    yield Text(f"  {moment(line.created_at)}, took {took(_seconds(report))}")
    if head.is_lost:
        yield Text("  its process is gone: the next session, or `baton runs list`, takes it up", "red")
    if line.note:
        yield Text(f"  {one_line(line.note)}", "yellow")


def _seconds(report: Report) -> float:
    timeline = report.run.timeline
    return timeline.seconds if timeline.known else report.run.head.seconds


def _time(report: Report) -> Iterator[Text]:
    shown = report.run.timeline
    if shown.went:
        yield Text("\nWhere the time went", style="bold")
    for one in shown.went:
        bar = "█" * max(1, round(24 * one.share))
        yield Text(f"  {took(one.seconds):>12}  {bar:<24}  {one.what}")
    if shown.chain:
        chain = " → ".join(f"{link.task_id} ({took(link.seconds)})" for link in shown.chain)
        yield Text(f"  The run's length hangs on: {chain}")


def _task(task: TaskShown) -> Iterator[Text]:
    record = task.record
    first = Text(record.task_id, style="bold")
    first.append("  ").append_text(_word((record.verdict or record.state).value))
    if record.outcome.integration is not None:
        first.append("  ").append_text(_word(record.outcome.integration.value))
    if task.simulated:
        first.append("  simulated", "yellow")
    first.append(f"  {one_line(record.label or record.contract.objective)[:100]}")
    yield first
    result = task.result
    for reason in (result.reasons if result is not None else record.reasons)[:5]:
        yield Text(f"  because      {one_line(reason)}")
    if record.depends_on:
        yield Text(f"  after        {', '.join(record.depends_on)}")
    if result is None:
        return
    claim = task.claim
    said = "nothing" if claim is None else f"{claim.status.value}: {one_line(claim.summary)[:200]}"
    yield Text(f"  claims       {said}")
    for file in task.files[:MAX_FILES]:
        odd = "" if file.agrees or claim is None else "  (not claimed)" if file.kind else ""
        what = file.kind or "claimed, but not changed"
        yield Text(f"  {what:<11}  {one_line(file.path)}{odd}", "" if file.agrees else "yellow")
    if len(task.files) > MAX_FILES:
        yield Text(f"               and {many(len(task.files) - MAX_FILES, 'more file')}")
    yield Text("  scope        ").append_text(_word(result.evidence.scope.enforcement.value))
    for violation in result.evidence.scope.violations[:MAX_FILES]:
        yield Text(f"  out of scope {one_line(violation.path)}: {one_line(violation.rule)}", "red")
    for row in task.checks:
        yield from _check(row)
    for line in result.evidence.discrepancies:
        yield Text(f"  differs      {one_line(line)}", "yellow")
    route = result.route
    model = (
        "unknown" if route is None or route.model is None else f"{route.model} {route.effort or ''}".strip()
    )
    tokens = count(result.usage.total_tokens)
    yield Text(f"  model        {one_line(model)}, {tokens} tokens, {many(len(task.attempts), 'attempt')}")
    if task.fetch:
        yield Text(f"  kept         {one_line(task.fetch)}")


def _check(row: CheckRow) -> Iterator[Text]:
    check = row.check
    told = Text("  check        ").append_text(_word(check.status.value))
    told.append(f" {one_line(check.command)}, {took(check.seconds)}")
    if check.detail and check.status.value != "passed":
        told.append(f" ({one_line(check.detail)})")
    yield told
    if check.status.value != "passed":
        for line in check.tail.splitlines()[-MAX_TAIL:]:
            yield Text(f"               {visible(line)}", "dim")


def _integrations(report: Report) -> Iterator[Text]:
    yield Text("\nInto the workspace", style="bold")
    if not report.integrations:
        yield Text("  nothing has been merged onto it")
    for one in report.integrations:
        record = one.record
        yield (
            Text(f"  try {record.number}: ")
            .append_text(_word(record.step))
            .append(f"  {', '.join(record.task_ids)}")
        )
        for line in record.conflicts:
            yield Text(f"    left out: {one_line(line)}", "yellow")
        if record.detail:
            yield Text(f"    {one_line(record.detail)}", "yellow")
        for row in one.checks:
            yield from _check(row)


def _usage(report: Report) -> Iterator[Text]:
    yield Text("\nUsage", style="bold")
    if report.run.prices_fault is not None:
        yield Text(f"  costs are unknown: {one_line(report.run.prices_fault)}")
    for one in report.run.spent:
        spent = one.spent
        more = f", {spent.unknown} of them unknown" if spent.unknown else ""
        who = f"  workers, {one_line(spent.model or 'model unknown')}"
        yield Text(
            f"{who}: {count(spent.total_tokens)} tokens, cost {money(one.cost)}"
            f" ({many(spent.attempts, 'attempt')}{more})"
        )
    if not report.supervisors:
        yield Text("  supervisor: unknown, no session is on record")
    for each in report.supervisors:
        during = each.supervisor.during
        who = f"  supervisor, {one_line(each.supervisor.model or 'model unknown')}"
        yield Text(f"{who}: {count(during.total_tokens)} tokens during the run, cost {money(each.cost)}")


def _word(word: str) -> Text:
    return Text(spoken(word), _STYLES.get(tone(word), ""))
