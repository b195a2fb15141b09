"""From a capture to evidence: what changed, what is out of scope, and how the scope was held."""

from __future__ import annotations

from collections.abc import Sequence

from baton.codex.profile import PermissionProfile
from baton.contract.evidence import ChangeShown, ScopeEvidence, Violation
from baton.contract.scope import ScopePlan
from baton.contract.states import Enforcement
from baton.contract.tree import Capture, TreeChange, show_path
from baton.workspace.scope import Scope


def shown_changes(changes: Sequence[TreeChange]) -> list[ChangeShown]:
    """Changes as people and models see them."""
    return [
        ChangeShown(
            path=show_path(change.path),
            kind=change.kind.value,
            old_path=None if change.old_path is None else show_path(change.old_path),
            mode=_mode(change),
        )
        for change in changes
    ]


def shown(paths: Sequence[bytes]) -> list[str]:
    return [show_path(path) for path in paths]


def violations_of(capture: Capture, scope: Scope) -> list[Violation]:
    """Everything in the captured tree that the scope does not allow."""
    found = []
    for change in capture.changes:
        for path in change.touched:
            rule = scope.permits(path)
            if rule is not None:
                found.append(Violation(path=show_path(path), rule=rule))
    found += [
        Violation(path=show_path(path), rule="a link that leaves the workspace")
        for path in capture.leaving_links
    ]
    found += [Violation(path=show_path(path), rule="outside the workspace") for path in capture.outside]
    if capture.over_limit is not None:
        # The tree is not all that the worker made, so it stands for nothing.
        found.append(Violation(path=".", rule=f"more than can be captured: {capture.over_limit}"))
    return found


def scope_evidence(
    plan: ScopePlan, profile: PermissionProfile | None, why_detected: str | None, found: list[Violation]
) -> ScopeEvidence:
    """How the scope was held. `why_detected` is the machine's reason for not preventing anything."""
    reasons = [
        why_detected,
        plan.why_detected,
        *(profile.not_held if profile is not None else ()),
    ]
    named = [reason for reason in reasons if reason]
    prevented = plan.enforcement is Enforcement.PREVENTED and not named
    readings = plan.readings
    if why_detected is not None:
        readings = tuple(
            reading.model_copy(update={"enforcement": Enforcement.DETECTED}) for reading in readings
        )
    return ScopeEvidence(
        enforcement=Enforcement.PREVENTED if prevented else Enforcement.DETECTED,
        why_detected=None if prevented else "; ".join(named),
        patterns=list(readings),
        violations=found,
    )


def _mode(change: TreeChange) -> str | None:
    if not change.old_mode or not change.new_mode or change.old_mode == change.new_mode:
        return None
    return f"{change.old_mode:06o} → {change.new_mode:06o}"
