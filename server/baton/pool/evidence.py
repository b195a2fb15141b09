"""Whether an attempt has succeeded: by what it left, not by what it says. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from baton.contract.evidence import CheckResult, CheckStatus
from baton.contract.json_schema import value_fault
from baton.contract.states import FailureClass
from baton.pool.backend import AttemptOutcome
from baton.pool.trouble import Evidence, Trouble

MAX_SHOWN = 300
"""Characters of what is wrong with a message."""


def outcome_trouble(outcome: AttemptOutcome) -> tuple[Trouble, str] | None:
    """What the attempt itself came to other than its end; None for a completed one."""
    if outcome.failure is not None:
        return outcome.failure.failure_class, outcome.failure.message
    if outcome.refusal is not None:
        return Evidence.NOT_MERGED, outcome.refusal
    if not outcome.completed:
        return FailureClass.OTHER, "the turn did not complete"
    return None


def message_trouble(message: str | None, schema: Mapping[str, Any] | None) -> tuple[Trouble, str] | None:
    """What is wrong with a final message."""
    if message is None or not message.strip():
        return Evidence.NO_MESSAGE, "the turn completed without a final message"
    if schema is None:
        return None
    why = schema_fault(message, schema)
    return None if why is None else (Evidence.SCHEMA, why)


def schema_fault(message: str, schema: Mapping[str, Any]) -> str | None:
    """Where a message does not satisfy a JSON schema, in one line; None when it does."""
    try:
        value = json.loads(message)
    except (ValueError, RecursionError) as error:
        return f"the final message is not JSON ({error})"[:MAX_SHOWN]
    found = value_fault(value, schema)
    return None if found is None else f"the final message does not satisfy output_schema {found}"[:MAX_SHOWN]


def checks_trouble(checks: Sequence[CheckResult]) -> tuple[Trouble, str] | None:
    """The first check that did not pass."""
    for check in checks:
        if check.status is not CheckStatus.PASSED:
            said = f": {check.detail}" if check.detail else ""
            return Evidence.CHECK_FAILED, f"{check.command} {check.status.value}{said}"
    return None
