"""What Codex answers to a start or resume, held against what was asked for. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from baton.codex.settings import ThreadSettings
from baton.contract.evidence import Route


def boundary_fault(answered: Mapping[str, Any], settings: ThreadSettings) -> str | None:
    """What in the answer to a start or resume differs from the boundary asked for; None when nothing does."""
    active = answered.get("activePermissionProfile")
    name = active.get("id") if isinstance(active, Mapping) else None
    if name != settings.profile.name:
        return f"the worker's permission profile is not in force (Codex reports {name or 'none'})"
    if answered.get("approvalPolicy") != "never":
        return f"the worker may ask for approvals ({answered.get('approvalPolicy')})"
    if _real(answered.get("cwd")) != _real(settings.cwd):
        return f"the worker's directory is {answered.get('cwd')} instead of {settings.cwd}"
    sandbox = answered.get("sandbox")
    sandbox = sandbox if isinstance(sandbox, Mapping) else {}
    if sandbox.get("type") not in ("workspaceWrite", "readOnly"):
        return f"the worker's sandbox is {sandbox.get('type') or 'unknown'}"
    if sandbox.get("networkAccess") and not settings.profile.network.get("enabled"):
        return "the worker has network access that its profile does not give"
    roots = sandbox.get("writableRoots")
    found = {str(root) for root in roots} if isinstance(roots, list) else set()
    expected = set(settings.profile.writable_roots)
    # Codex counts the working directory as understood and does not list it.
    expected -= {str(settings.cwd)} - found
    if found != expected:
        more, less = sorted(found - expected), sorted(expected - found)
        parts = [
            f"{word}: {', '.join(paths[:3])}" for word, paths in (("also", more), ("not", less)) if paths
        ]
        return f"the worker's writable folders differ from its scope ({'; '.join(parts)})"
    return None


def reported_route(answered: Mapping[str, Any], settings: ThreadSettings) -> Route:
    """The route as the answer reports it."""

    def text(key: str) -> str | None:
        value = answered.get(key)
        return value if isinstance(value, str) else None

    route = Route(
        role=settings.role,
        tier=settings.tier,
        asked_model=settings.model,
        asked_effort=settings.effort,
        model=text("model"),
        effort=text("reasoningEffort"),
        provider=text("modelProvider"),
    )
    return route.model_copy(update={"deviates": deviates(route)})


def deviates(route: Route) -> bool:
    """True when what is known to be effective is not what was asked for."""
    other_effort = route.asked_effort is not None and route.effort not in (None, route.asked_effort)
    other_claim = route.server_claimed not in (None, route.asked_model)
    return route.model not in (None, route.asked_model) or other_effort or other_claim


def _real(path: object) -> str:
    return os.path.realpath(str(path))
