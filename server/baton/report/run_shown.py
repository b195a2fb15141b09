"""One run as the pages show it: its head, its tasks, its time, its tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from baton.contract.errors import NotFound
from baton.contract.evidence import Usage
from baton.contract.states import RunState
from baton.engine.activity import TaskNow
from baton.engine.house import House
from baton.engine.spending import cost, prices_or_fault
from baton.engine.supervisor_usage import Supervisor
from baton.ledger.lines import RunLine
from baton.ledger.locks import is_held
from baton.ledger.pages import Pages, Spent
from baton.policy.routing_rules import Price
from baton.report.graph import Graph, lay_out
from baton.report.timeline_shown import TimelineShown, show_timeline
from baton.report.timelines import Timelines
from baton.simulate.home import PROVIDER


@dataclass(frozen=True)
class RunHead:
    """A run in a line."""

    line: RunLine
    alive: bool
    """Whether a process carries it on."""
    at_rest: bool
    simulated: bool
    verdicts: Mapping[str, int]
    """How many tasks have which verdict or, without one, are in which state."""
    seconds: float
    title: str
    """The label or the objective of its first task."""

    @property
    def is_lost(self) -> bool:
        """Its process is gone and nobody has taken it up yet."""
        return not self.at_rest and not self.alive

    @property
    def tasks(self) -> int:
        return sum(self.verdicts.values())


@dataclass(frozen=True)
class SpentShown:
    """Tokens with one model and what they cost."""

    spent: Spent
    cost: float | None


@dataclass(frozen=True)
class SupervisorShown:
    supervisor: Supervisor
    cost: float | None


@dataclass(frozen=True)
class RunShown:
    """What is shown of a run besides its evidence."""

    head: RunHead
    rows: Sequence[TaskNow]
    """One page of its tasks."""
    timeline: TimelineShown
    graph: Graph | None
    has_dependencies: bool
    words: Mapping[str, str]
    """Verdict or state of every task in the graph."""
    spent: Sequence[SpentShown]
    tokens: int | None
    unknown: int
    """Attempts whose tokens are not known."""
    cost: float | None
    """Of all attempts; None when a part is unknown."""
    prices_fault: str | None
    """Why no price is known, where the policy cannot be read."""
    landed: Mapping[str, int]
    """How many tasks' results are where."""


def run_heads(house: House, pages: Pages, lines: Sequence[RunLine], now: float) -> list[RunHead]:
    """Lines of a list of runs."""
    ids = [line.run_id for line in lines]
    verdicts, providers, first = pages.verdicts(ids), pages.providers(ids), pages.first_tasks(ids)
    heads = []
    for line in lines:
        at_rest = RunState(line.state).at_rest
        task = first.get(line.run_id)
        heads.append(
            RunHead(
                line=line,
                alive=not at_rest and is_held(house.state.run_lock(line.run_id)),
                at_rest=at_rest,
                simulated=PROVIDER in providers[line.run_id],
                verdicts=verdicts[line.run_id],
                seconds=max(0.0, (line.ended_at or now) - line.created_at),
                title="" if task is None else task.label or task.objective,
            )
        )
    return heads


def run_head(house: House, pages: Pages, run_id: str, now: float) -> RunHead:
    """Raises `NotFound`."""
    line = pages.run(run_id)
    if line is None:
        raise NotFound(f"no run {run_id!r}; `baton runs list` lists the runs")
    return run_heads(house, pages, [line], now)[0]


def show_run(
    house: House,
    pages: Pages,
    run_id: str,
    now: float,
    offset: int = 0,
    limit: int = -1,
    timelines: Timelines | None = None,
) -> RunShown:
    """A run with a page of its tasks. Who shows runs again and again keeps `timelines`. Raises `NotFound`."""
    head = run_head(house, pages, run_id, now)
    lines = pages.tasks(run_id, offset, limit)
    attempts = pages.attempts_of(run_id, [line.task_id for line in lines])
    rows = []
    for line in lines:
        tries = attempts[line.task_id]
        seconds = max(0.0, (line.ended_at or now) - tries[0].started_at) if tries else None
        rows.append(TaskNow(line, tries, pages.last_event(run_id, line.task_id), seconds))
    depends = pages.dependencies(run_id)
    until = _until(pages, head, now)
    timeline = (timelines or Timelines()).timeline(pages, run_id, depends, until)
    prices, prices_fault = prices_or_fault(house)
    spent = [SpentShown(one, cost_of(one, prices)) for one in pages.spent(run_id)]
    totals = [one.spent.total_tokens for one in spent if one.spent.total_tokens is not None]
    graph = lay_out(depends)
    return RunShown(
        head=head,
        rows=rows,
        timeline=show_timeline(timeline, [line.task_id for line in lines]),
        graph=graph,
        has_dependencies=any(before for _, before in depends),
        words={} if graph is None else pages.words(run_id),
        spent=spent,
        tokens=sum(totals) if totals else None,
        unknown=sum(one.spent.unknown for one in spent),
        cost=total_cost(one.cost for one in spent),
        prices_fault=prices_fault,
        landed=pages.landed(run_id),
    )


def _until(pages: Pages, head: RunHead, now: float) -> float:
    """When what still goes on in the record came to its end, as far as is known."""
    if head.is_lost and (last := pages.last_event(head.line.run_id)) is not None:
        return last.at  # nothing is known after the last sign of life
    return head.line.ended_at or now


def cost_of(spent: Spent, prices: Mapping[str, Price]) -> float | None:
    """What the tokens cost at the person's prices; None when either is not known in full."""
    if spent.unknown:
        return None
    usage = Usage(
        input_tokens=spent.input_tokens,
        cached_input_tokens=spent.cached_input_tokens,
        output_tokens=spent.output_tokens,
    )
    return cost(usage, prices.get(spent.model or ""))


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum; None when a part is unknown or there is none."""
    known = list(costs)
    if not known or None in known:
        return None
    return sum(one for one in known if one is not None)
