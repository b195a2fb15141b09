"""Whether to delegate: a pure function of what the supervisor declares. It advises, and refuses nothing."""

from __future__ import annotations

from baton.contract.advice import Advice, Choice, Facts, Fit, Proof, Seams
from baton.contract.wording import many
from baton.policy.routing_rules import AdviceRules, Root


def advise(facts: Facts, rules: AdviceRules, root: Root, *, tasks: int, checks: bool) -> Advice:
    """The choice that the facts speak for, with its reasons, weightiest first.

    `tasks` is how many the call has, `checks` whether each has a verification command. The first rule wins:
    a root that edits nothing delegates; small work is done alone; coupled or shared work too, unless it is
    large; work with a clear seam and a command that proves it is delegated, as is large work; what speaks for
    both sides, or for neither, is `either`.
    """
    against = _against(facts)
    favour = _in_favour(facts, rules, tasks, checks)
    if root.mode == "control-plane":
        return Advice(choice=Choice.DELEGATE, reasons=["the root edits nothing (root.mode is control-plane)"])
    size = facts.size_lines
    if size is not None and size <= rules.solo_lines:
        told = f"about {many(size, 'line')}: describing it takes as long as making it (advice.solo_lines)"
        return Advice(choice=Choice.SOLO, reasons=[told, *against])
    large = size is not None and size >= rules.delegate_lines
    if against and not large:
        return Advice(choice=Choice.EITHER if len(favour) > 1 else Choice.SOLO, reasons=against + favour)
    if large and not against:
        return Advice(choice=Choice.DELEGATE, reasons=favour)
    if not against and facts.seams is Seams.CLEAR and (checks or facts.verification is Proof.COMMAND):
        return Advice(choice=Choice.DELEGATE, reasons=favour)
    return Advice(choice=Choice.EITHER, reasons=favour + against or ["the facts speak for neither side"])


def _against(facts: Facts) -> list[str]:
    reasons = []
    if facts.seams is Seams.NONE:
        reasons.append("no seam: each part needs what another one is about to decide")
    if facts.shared_state:
        reasons.append("the pieces share state: somebody must decide it once")
    if facts.integration is Fit.HARD:
        reasons.append("fitting the result in is the hard part, and it stays yours")
    if facts.verification is Proof.NONE:
        reasons.append("nothing can show that it is done: the result could only be unverified")
    return reasons


def _in_favour(facts: Facts, rules: AdviceRules, tasks: int, checks: bool) -> list[str]:
    reasons = []
    if facts.size_lines is not None and facts.size_lines >= rules.delegate_lines:
        reasons.append(f"about {many(facts.size_lines, 'line')} of work (advice.delegate_lines)")
    if facts.seams is Seams.CLEAR:
        reasons.append("a clear seam")
    if checks or facts.verification is Proof.COMMAND:
        reasons.append("a command shows that it is done")
    if tasks > 1 and not facts.shared_state and facts.seams is not Seams.NONE:
        reasons.append(f"{tasks} pieces can go on at once")
    return reasons
