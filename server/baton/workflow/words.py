"""How a workflow names what can be done next: as calls of the tool, or as commands for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from baton.contract.workflow import Step

_TEXTS = (Step.RESEARCH, Step.PLAN, Step.BRIEF)


class Words:
    """As calls of the tool."""

    own_findings_first = True
    """Whether who asks several reviewers has findings of its own to give first."""
    arguments: Mapping[str, str] = {}
    """Those that a caller knows by another name than the tool's."""

    def argument(self, name: str) -> str:
        return self.arguments.get(name, name)

    def look(self, workflow_id: str) -> str:
        return "status shows where it is"

    def back(self, workflow_id: str, step: Step) -> str:
        return f"go back with replan step={step.value}"

    def rest(self, workflow_id: str) -> str:
        return "status what=product, patch, output or steps has the rest"

    def take_over(self, workflow_id: str, step: Step) -> str:
        return f'call next, or take it over with replan bindings={{"{step.value}": "host"}}'

    def wait(self, workflow_id: str) -> str:
        return f"workflow next {workflow_id} waits for it; cancel stops it"

    def show(self, workflow_id: str, step: Step) -> str:
        return f"workflow next {workflow_id} shows the {step.value} step again"

    def again(self, workflow_id: str, step: Step) -> str:
        """For a step of Baton's own that did not do its work."""
        mine = f'replan bindings={{"{step.value}": "host"}}'
        return f"workflow next {workflow_id} tries again; {mine} makes it yours"

    def agree(self, workflow_id: str, step: Step, token: str) -> str:
        send = f"next {workflow_id} confirm={token}"
        return f"nothing was sent; when the person agrees to what is due: {send}"

    def record(self, workflow_id: str, step: Step) -> str:
        """How the session records a step of its own."""
        if step in _TEXTS:
            return f"record step={step.value} text=<the {step.value}>"
        match step:
            case Step.IMPLEMENT | Step.FIX:
                return f"record step={step.value} (commit=<id> once committed)"
            case Step.APPLY:
                return "record step=apply commit=<id>, or reject=<why>"
            case Step.TEST:
                return "record step=test report={command, exitCode, seconds, output}"
        return f"record step={step.value} dispositions=[…] text=<conclusion>"

    def attention(self, workflow_id: str) -> str:
        return "ask the person; go on with replan moreRounds=1 step=fix, replan step=plan, or cancel"

    def retry(self, review_id: str, reviewer: str) -> str:
        return f"review retry {review_id} asks {reviewer} again"

    def cancel(self, workflow_id: str) -> str:
        return "cancel"


TOOL = Words()


class TerminalWords(Words):
    """As commands that a person types; what is in capitals is theirs to fill in."""

    own_findings_first = False
    arguments: Mapping[str, str] = {
        "goal": "GOAL",
        "preset": "--preset",
        "bindings": "--bind",
        "allowedFiles": "--allow",
        "tests": "--test",
        "contextPaths": "--send",
        "context": "--context",
        "allowDirty": "--dirty",
        "text": "--text",
        "commit": "--commit",
        "reject": "--reject",
        "report": "--test",
        "dispositions": "--finding",
        "moreRounds": "--more-rounds",
        "what": "--what",
        "waitSeconds": "--wait",
        "workspace": "this folder",
    }

    def look(self, workflow_id: str) -> str:
        return f"`baton workflow show {workflow_id}` shows where it is"

    def back(self, workflow_id: str, step: Step) -> str:
        return f"go back with `baton workflow replan {workflow_id} --to {step.value}`"

    def rest(self, workflow_id: str) -> str:
        return f"`baton workflow show {workflow_id} --what product`, patch, output or steps has the rest"

    def take_over(self, workflow_id: str, step: Step) -> str:
        mine = f"`baton workflow replan {workflow_id} --bind {step.value}=host`"
        return f"give `baton workflow next {workflow_id}`, or take it over with {mine}"

    def wait(self, workflow_id: str) -> str:
        return f"`baton workflow next {workflow_id}` waits for it; {self.cancel(workflow_id)} stops it"

    def show(self, workflow_id: str, step: Step) -> str:
        return f"`baton workflow next {workflow_id}` shows the {step.value} step and asks"

    def again(self, workflow_id: str, step: Step) -> str:
        mine = f"`baton workflow replan {workflow_id} --bind {step.value}=host`"
        return f"`baton workflow next {workflow_id}` tries again; {mine} makes it yours"

    def agree(self, workflow_id: str, step: Step, token: str) -> str:
        # The token is the tool's; here the person is asked.
        return f"nothing was sent; {self.show(workflow_id, step)}"

    def record(self, workflow_id: str, step: Step) -> str:
        command = f"baton workflow record {workflow_id} {step.value}"
        if step in _TEXTS:
            return f"`{command} --file FILE`"
        match step:
            case Step.IMPLEMENT | Step.FIX:
                return f"`{command}` (--commit COMMIT once committed)"
            case Step.APPLY:
                return f"`{command} --commit COMMIT`, or --reject WHY"
            case Step.TEST:
                return f"`{command} --test COMMAND --exit-status NUMBER`"
        return (
            f"`{command} --finding F1=fixed --text CONCLUSION`, with a --finding for each"
            " (fixed, open, rejected:REASON or accepted_risk:REASON)"
        )

    def attention(self, workflow_id: str) -> str:
        replan = f"baton workflow replan {workflow_id}"
        return (
            f"go on with `{replan} --more-rounds 1 --to fix` or `{replan} --to plan`,"
            f" or end it with {self.cancel(workflow_id)}"
        )

    def retry(self, review_id: str, reviewer: str) -> str:
        return f"`baton review retry {review_id} --reviewer {reviewer}` asks {reviewer} again"

    def cancel(self, workflow_id: str) -> str:
        return f"`baton workflow cancel {workflow_id}`"
