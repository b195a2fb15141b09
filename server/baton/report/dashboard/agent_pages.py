"""The page of the agents that may be asked, where the person changes them in their own policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.contract.errors import BatonError, InvalidInput, NotFound, WrongState
from baton.engine.house import House
from baton.policy.faults import PolicyRefused
from baton.policy.hard_link import hard_link_note
from baton.policy.person import PersonPolicy, read_person, write_keys
from baton.report.dashboard.agent_fields import faults_beside, fields_of, wanted
from baton.report.dashboard.query import Query

TEMPLATE = "dashboard/agents.html"

SEEN = "seen"
"""The field that says which file the page was made from."""

Shown = tuple[str, dict[str, Any]]


def agents(house: House, query: Query, form_token: str) -> Shown:
    """All agents of the policy in force. Raises `InvalidInput` for a policy that cannot be read."""
    read = read_person(house.codex_home)
    saved = query.text("saved")
    return TEMPLATE, _context(
        read, form_token, saved=saved if saved in read.layered.policy.consult.agents else None
    )


def save(house: House, name: str, form: Mapping[str, str], form_token: str) -> tuple[int, dict[str, Any]]:
    """Write what a form changes; 303 when it is written, or else a status with the page to be shown.

    Raises `NotFound` for an agent that there is none of, `InvalidInput` for a policy that cannot be read and
    for a form that is none of ours.
    """
    read = read_person(house.codex_home)
    if name not in read.layered.policy.consult.agents:
        known = ", ".join(read.layered.policy.consult.agents)
        raise NotFound(f"no agent {name[:40]!r}; there are {known}")
    typed = {key: text for key, text in form.items() if key != SEEN}
    changes = wanted(name, fields_of(name, read), typed)
    if form.get(SEEN) != read.fingerprint:
        return 409, _stale(read, form_token, name, typed)
    try:
        written = write_keys(read, changes)
    except WrongState:
        return 409, _stale(read_person(house.codex_home), form_token, name, typed)
    except PolicyRefused as refused:
        beside, others = faults_beside(name, refused, read)
        beside_fields = {key: fault for key, fault in beside.items() if key in typed}
        others += [f"{key}: {fault}" for key, fault in beside.items() if key not in typed]
        return 400, _context(
            read, form_token, at=name, typed=typed, faults=beside_fields, notices=others, refused=True
        )
    except BatonError as error:
        status = 400 if isinstance(error, InvalidInput) else 503
        return status, _context(read, form_token, at=name, typed=typed, notices=[error.message], refused=True)
    return (303, {}) if written else (200, _context(read, form_token, at=name, same=True))


def _stale(read: PersonPolicy, form_token: str, name: str, typed: Mapping[str, str]) -> dict[str, Any]:
    """The page as the file is now, with what was typed told beside it."""
    lost = [
        f"{field.name}: the form said {typed[field.name]!r}"
        for field in fields_of(name, read)
        if field.name in typed and typed[field.name] != field.value
    ]
    return _context(read, form_token, at=name, notices=lost, stale=True)


def _context(
    read: PersonPolicy,
    form_token: str,
    *,
    at: str | None = None,
    typed: Mapping[str, str] | None = None,
    faults: Mapping[str, str] | None = None,
    notices: list[str] | None = None,
    saved: str | None = None,
    refused: bool = False,
    stale: bool = False,
    same: bool = False,
) -> dict[str, Any]:
    rules = read.layered.policy.consult
    return {
        "file": str(read.file),
        "backup": str(read.backup),
        "hard_link": hard_link_note(read.file),
        "fingerprint": read.fingerprint,
        "form_token": form_token,
        "is_on": rules.enabled,
        "agents": [(name, agent, fields_of(name, read)) for name, agent in rules.agents.items()],
        "at": at,
        "typed": typed or {},
        "faults": faults or {},
        "notices": notices or [],
        "saved": saved,
        "refused": refused,
        "stale": stale,
        "same": same,
        "live": None,
    }
