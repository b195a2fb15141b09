"""Activity as lines of text for a width and, where it is bounded, a height. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from baton.cli.amounts import age, duration, tokens
from baton.cli.shown import one_line
from baton.contract.states import TaskState
from baton.engine.activity import RunNow, TaskNow
from baton.engine.tell import tell

WIDE = 160
"""From this width on a task has one line; below, its route and last event have a second one."""

MIN_TASKS = 1
"""Lines of tasks that every run has, however low the screen is."""

STYLES = {
    "running": "cyan",
    "integrating": "cyan",
    "working": "cyan",
    "verifying": "cyan",
    "verified": "green",
    "done": "green",
    "held": "yellow",
    "unverified": "yellow",
    "no_change": "yellow",
    "blocked": "yellow",
    "interrupted": "yellow",
    "skipped": "yellow",
    "failed": "red",
}

_GONE = "its process is gone: the next session, or `baton runs list`, takes it up"


def activity_lines(
    runs: Sequence[RunNow], now: float, *, width: int | None, height: int | None = None
) -> list[Text]:
    """The runs, each with its tasks.

    No line is wider than `width` cells, and there are at most `height` lines: what does not fit is counted,
    and tasks at work go before queued ones, those before what went wrong, and that before the rest. Without
    a width nothing is cut and a task has one line.
    """
    built = [_build(run, now, width) for run in runs]
    wanted = [len(one.head) + sum(map(len, one.blocks)) for one in built]
    lines: list[Text] = []
    for number, one in enumerate(built):
        room = None
        if height is not None:
            left = height - len(lines)
            # One line each for those that follow, if only to say that they are there.
            room = max(2, _share(left, wanted[number], wanted[number + 1 :]))
            if left < 2 and number:
                lines.append(Text(f"and {_many(len(runs) - number, 'more run')}", style="dim"))
                break
        lines += _fitted(one, room)
    cut = [_cut(line, width) for line in lines]
    return cut if height is None else cut[:height]


@dataclass(frozen=True)
class _Built:
    """The lines of one run: its own, and those of each of its tasks."""

    head: list[Text]
    blocks: list[list[Text]]
    tasks: Sequence[TaskNow]


def _share(left: int, own: int, others: Sequence[int]) -> int:
    """Of the `left` lines those of one run: as many as of any other, and what the others do not want."""
    wanted = sorted([own, *others])
    for number, lines in enumerate(wanted):
        level = left // (len(wanted) - number)
        if lines > level:
            return min(own, level)
        left -= lines
    return own


def _build(run: RunNow, now: float, width: int | None) -> _Built:
    head = [_head(run)]
    if not run.at_rest and not run.alive:
        head.append(Text(f"  {_GONE}", style="yellow"))
    if run.line.note:
        head.append(Text(f"  {one_line(run.line.note)}", style="yellow"))
    wide = width is None or width >= WIDE
    columns = max((cell_len(one_line(task.line.task_id)) for task in run.tasks), default=0)
    blocks = [_task(task, now, wide=wide, names=min(columns, 20)) for task in run.tasks]
    return _Built(head, blocks, run.tasks)


def _fitted(run: _Built, room: int | None) -> list[Text]:
    """The lines that fit into the room."""
    blocks = run.blocks
    shown = range(len(blocks)) if room is None else _fitting(run.tasks, blocks, room - len(run.head))
    lines = [line for number in shown for line in blocks[number]]
    if len(shown) < len(blocks):
        lines.append(Text(f"  and {_many(len(blocks) - len(shown), 'more task')}", style="dim"))
    return run.head + lines


def _fitting(tasks: Sequence[TaskNow], blocks: list[list[Text]], room: int) -> list[int]:
    """Numbers of the tasks that are shown, in their order. Second lines go before tasks do."""
    if sum(map(len, blocks)) <= room:
        return list(range(len(blocks)))
    for task, block in zip(tasks, blocks, strict=True):
        if task.at_rest:
            del block[1:]
    ordered = sorted(range(len(blocks)), key=lambda number: _rank(tasks[number]))
    for number in reversed(ordered):
        if sum(map(len, blocks)) <= room:
            break
        del blocks[number][1:]
    if len(blocks) <= room:
        return list(range(len(blocks)))
    return sorted(ordered[: max(MIN_TASKS, room - 1)])


def _rank(task: TaskNow) -> int:
    state = task.line.state
    if state in (TaskState.WORKING, TaskState.VERIFYING):
        return 0
    if not task.at_rest:
        return 1
    return 3 if task.line.verdict == "verified" else 2


def _head(run: RunNow) -> Text:
    line = run.line
    rested = sum(task.at_rest for task in run.tasks)
    head = Text().append(line.run_id, "bold")
    head.append(f"  {line.state}", STYLES.get(line.state, ""))
    if run.integrating is not None:
        head.append(f" (try {run.integrating[0]}: {run.integrating[1]})")
    head.append(f"  {duration(run.seconds)}  {rested}/{len(run.tasks)} tasks at rest")
    head.append(f"  {tokens(run.tokens, complete=run.tokens_complete)} tokens")
    head.append(f"  {one_line(line.workspace)}")
    if line.model:
        head.append(f"  for {one_line(line.model)}", "dim")
    return head


def _task(task: TaskNow, now: float, *, wide: bool, names: int) -> list[Text]:
    line = task.line
    state = line.verdict if task.at_rest and line.verdict else line.state
    first = Text("  ")
    first.append(_column(one_line(line.task_id), names), "bold" if not task.at_rest else "")
    first.append("  " + _column(state, 11), STYLES.get(state, ""))
    first.append("  " + _column("" if task.seconds is None else duration(task.seconds), 6))
    first.append(f"  {tokens(task.tokens, complete=task.tokens_complete):>6} tok")
    step = one_line(task.step or line.integration or "")
    if step == state:
        step = ""
    if wide:
        first.append("  " + _column(step, 22))
        first.append("  " + _column(" ".join(_facts(task)), 25), _fact_style(task))
        first.append("  " + _column(_route(task), 22))
        first.append("  " + _event(task, now), "dim")
        return [first]
    if step:
        first.append(f"  {step}")
    facts = " ".join(_facts(task))
    if facts:
        first.append(f"  {facts}", _fact_style(task))
    second = "  ".join(part for part in (_route(task), _event(task, now)) if part)
    return [first, Text(f"    {second}", style="dim")] if second else [first]


def _facts(task: TaskNow) -> Iterator[str]:
    """Checks and violations."""
    checks = task.checks
    if checks:
        passed, total = checks.get("passed", 0), sum(checks.values())
        yield f"checks {passed}/{total}"
    if task.violations:
        yield _many(task.violations, "violation")


def _fact_style(task: TaskNow) -> str:
    failing = sum(task.checks.values()) - task.checks.get("passed", 0)
    return "red" if task.violations or failing else ""


def _route(task: TaskNow) -> str:
    attempt = task.attempt
    if attempt is None or attempt.model is None:
        return ""
    words = [one_line(attempt.model), one_line(attempt.effort or "")]
    if attempt.deviates:
        words.append("(not as asked)")
    return " ".join(word for word in words if word)


def _event(task: TaskNow, now: float) -> str:
    line = task.line
    if task.at_rest and line.verdict != "verified" and line.reason:
        return one_line(line.reason)
    if task.event is None:
        return one_line(line.label or line.objective)
    told = one_line(tell(task.event.kind, task.event.data))
    return told if task.at_rest else f"{age(now - task.event.at)}: {told}"


def _column(text: str, width: int) -> str:
    """Text in a column: filled up, or cut with a mark."""
    cells = Text(text)
    cells.truncate(width, overflow="ellipsis", pad=True)
    return cells.plain


def _cut(line: Text, width: int | None) -> Text:
    line.no_wrap = True
    if width is not None:
        line.truncate(width, overflow="ellipsis")
    else:
        line.rstrip()
    return line


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
