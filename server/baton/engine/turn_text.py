"""What a worker is told: its brief at first, and a word on how to go on later."""

from __future__ import annotations

from pathlib import Path

from baton.codex.brief import brief
from baton.codex.instructions import collect_instructions
from baton.contract.scope import ScopePlan
from baton.contract.task import Task
from baton.engine.followup import AttemptKind
from baton.engine.isolation import Place
from baton.ledger.records import AttemptRecord
from baton.policy.templating import render_template
from baton.verify.command import read_command

CONTINUE_TEMPLATE = "worker-continue.md.j2"


def first_text(
    task: Task, record: AttemptRecord, plan: ScopePlan, place: Place, *, exploring: bool = False
) -> str:
    """The brief, with the instructions that the repository keeps for agents as data.

    A thread that takes over from another is told what the one before left, and what failed there.
    """
    if record.attempt > 1:
        task = task.model_copy(update={"previous_attempts": [*task.previous_attempts, _before(record)]})
    instructions = collect_instructions(place.root, place.cwd, hidden=lambda path: _is_hidden(plan, path))
    checks = [read_command(command).shown for command in task.verification_commands]
    return brief(task, plan.readings, instructions, checks, exploring=exploring)


def _before(record: AttemptRecord) -> str:
    how = "did not succeed" if record.kind == AttemptKind.ESCALATION else "was cut short"
    told = (
        f"Attempt {record.attempt - 1} {how} ({record.data.get('why')}). The files are as it left them: look"
        " at their state first, and go on from there."
    )
    return "\n\n".join([told, *(f"{command}:\n{output}" for command, output in _failures(record))])


def _failures(record: AttemptRecord) -> list[tuple[str, str]]:
    listed = record.data.get("failures")
    pairs = [pair for pair in listed if isinstance(pair, list)] if isinstance(listed, list) else []
    return [(str(command), str(output)) for command, output in pairs]


def _is_hidden(plan: ScopePlan, path: Path) -> bool:
    if plan.visible is not None and not any(path.is_relative_to(shown) for shown in plan.visible):
        return True
    return path in plan.hidden_paths


def continuation_text(task: Task, record: AttemptRecord, place: Place) -> str:
    """What a thread that goes on is told: why there is another turn, and what to do in it."""
    return render_template(
        CONTINUE_TEMPLATE,
        kind=record.kind,
        why=record.data.get("why") or "the session ended",
        cwd=str(place.cwd),
        failures=_failures(record),
        message=record.data.get("message") or "",
        from_workspace=bool(record.data.get("fromWorkspace")),
        checks=[read_command(command).shown for command in task.verification_commands],
    )
