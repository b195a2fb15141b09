"""Which arguments each action of a workflow takes, and each step of `record`; pure.

What an action does not take is refused and never dropped: whoever gave it believes that it counts.
"""

from __future__ import annotations

from pydantic.alias_generators import to_camel

from baton.contract.errors import InvalidInput
from baton.contract.workflow import Executor, Step, WorkflowAction, WorkflowCall
from baton.workflow.words import TOOL, Words

_TAKES: dict[WorkflowAction, tuple[str, ...]] = {
    WorkflowAction.START: (
        *("goal", "preset", "bindings", "allowed_files", "tests", "context_paths", "context"),
        *("allow_dirty", "workspace"),
    ),
    WorkflowAction.NEXT: ("context", "context_paths", "own_findings", "confirm"),
    WorkflowAction.RECORD: ("step", "text", "commit", "reject", "report", "dispositions", "own_findings"),
    WorkflowAction.STATUS: ("what", "step", "offset", "limit"),
    WorkflowAction.REPLAN: ("bindings", "step", "more_rounds", "confirm"),
    WorkflowAction.CANCEL: (),
}

_EVERY = ("action", "wait_seconds")

_RECORDS: dict[Step, tuple[str, ...]] = {
    Step.IMPLEMENT: ("text", "commit"),
    Step.FIX: ("text", "commit"),
    Step.APPLY: ("commit", "reject"),
    Step.TEST: ("report",),
    Step.SYNTHESISE: ("text", "dispositions", "own_findings"),
}
"""By step; the others take their text."""

_SHOWN_FIRST = ("context", "context_paths", "own_findings")


def check_arguments(call: WorkflowCall, words: Words = TOOL) -> None:
    """Raises `InvalidInput` that names what is not taken, and what does take it."""
    action = call.action
    takes = (*_EVERY, *_TAKES[action], *(() if action is WorkflowAction.START else ("id",)))
    given = [
        name
        for name, field in WorkflowCall.model_fields.items()
        if getattr(call, name) != field.get_default(call_default_factory=True)
    ]
    for name in given:
        if name not in takes:
            others = [other.value for other, taken in _TAKES.items() if name in taken] or ["every other"]
            does = "do" if len(others) > 1 else "does"
            raise InvalidInput(
                f"{to_camel(name)}: {action.value} does not take it; {' and '.join(others)} {does}"
            )
    if action is WorkflowAction.RECORD and call.step is not None:
        takes = (*_EVERY, "id", "step", *_RECORDS.get(call.step, ("text",)))
        for name in given:
            if name not in takes:
                known = map(to_camel, _RECORDS.get(call.step, ("text",)))
                wanted = ", ".join(map(words.argument, known))
                raise InvalidInput(f"{to_camel(name)}: {call.step.value} does not take it; it takes {wanted}")
    if action is WorkflowAction.NEXT and call.confirm is not None:
        for name in given:
            if name in _SHOWN_FIRST:
                raise InvalidInput(
                    f"{to_camel(name)}: what is confirmed is what was shown; give it to next without confirm"
                )


def material_of(call: WorkflowCall) -> list[str]:
    """What a call gives for one step alone, by the names of the arguments.

    What is given with the start as paths goes along with every step.
    """
    if call.action is WorkflowAction.START:
        return ["context"] if call.context is not None else []
    if call.action is not WorkflowAction.NEXT:
        return []
    return [to_camel(name) for name in _SHOWN_FIRST if getattr(call, name)]


def refuse_unsent(
    call: WorkflowCall, state: str, due: Step | None, executor: Executor, running: bool
) -> None:
    """Raises `InvalidInput` for material that the step that is due sends to nobody."""
    given = material_of(call)
    if not given:
        return
    if due is None:
        why = f"the workflow is {state} and sends nothing"
    elif running:
        why = f"the {due.value} step is at work with what was shown; give it to next once another is due"
    elif not executor.delegated:
        who = "Baton's" if executor is Executor.BATON else "the session's own"
        why = f"the {due.value} step is {who} and sends nothing"
    elif due is Step.REVIEW and "contextPaths" in given:
        given, why = ["contextPaths"], "a review sends the change itself; give more as context"
    elif due is not Step.REVIEW and "ownFindings" in given:
        given, why = ["ownFindings"], f"they go with a review, and {due.value} is due"
    else:
        return
    raise InvalidInput(f"{', '.join(given)}: {why}")
