"""Why a turn failed, told from what Codex says of it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass

MAX_MESSAGE = 2000
"""Characters of Codex's own message that are kept."""

_BY_INFO = {
    "modelNotFound": FailureClass.UNKNOWN_MODEL,
    "contextWindowExceeded": FailureClass.CONTEXT_OVERFLOW,
    "sessionBudgetExceeded": FailureClass.USAGE_LIMIT,
    "usageLimitExceeded": FailureClass.USAGE_LIMIT,
    "rateLimitExceeded": FailureClass.RATE_LIMIT,
    "serverOverloaded": FailureClass.OVERLOADED,
    "flexUnavailable": FailureClass.OVERLOADED,
    "policyCapacityUnavailable": FailureClass.OVERLOADED,
    "unauthorized": FailureClass.AUTH,
}
"""What Codex names plainly. Its other names say little, and the message and HTTP status decide."""

_BY_STATUS = {
    401: FailureClass.AUTH,
    402: FailureClass.USAGE_LIMIT,
    403: FailureClass.AUTH,
    408: FailureClass.NETWORK,
    409: FailureClass.OTHER,
    429: FailureClass.RATE_LIMIT,
    503: FailureClass.OVERLOADED,
    529: FailureClass.OVERLOADED,
}

_BY_TEXT: tuple[tuple[str, FailureClass], ...] = (
    (r"usage limit|insufficient_quota|exceeded your current quota|quota exceeded|out of credits|spend cap",
     FailureClass.USAGE_LIMIT),
    (r"model_not_found|model .{1,80} does not exist|unknown model|model .{1,80}not (found|supported)",
     FailureClass.UNKNOWN_MODEL),
    (r"context (window|length)|context_length_exceeded|maximum context", FailureClass.CONTEXT_OVERFLOW),
    (r"rate.?limit|too many requests", FailureClass.RATE_LIMIT),
    (r"overloaded|at capacity|no capacity|slow_down", FailureClass.OVERLOADED),
    (r"unauthori[sz]ed|not logged in|log ?in again|invalid.api.key|refresh token|authentication",
     FailureClass.AUTH),
)  # fmt: skip

_BAD_REQUEST_TEXT = r"invalid_request_error|invalid prompt|invalid request"

_NETWORK_TEXT = (
    r"stream disconnected|connection (failed|refused|reset|closed)|error sending request|"
    r"network|timed? ?out|dns|failed to connect|unreachable"
)

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SPAN = r"(?:\d+(?:\.\d+)?\s*(?:ms|milli|[smhd])[a-z]*[\s,]*(?:and\s+)?)"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def classify(error: Mapping[str, Any] | None, *, now: datetime | None = None) -> TurnFailure:
    """The failure of a turn from its `error` member: `message`, `codexErrorInfo`, `additionalDetails`.

    `now` is what a stated time of day is measured from (default: the local time); the wait is None when the
    error states none. Codex does not pass on the `Retry-After` header, only what the message says.
    """
    error = error or {}
    message = str(error.get("message") or "").strip()
    details = str(error.get("additionalDetails") or "").strip()
    text = " ".join(part for part in (message, details) if part)
    name, status = _info(error.get("codexErrorInfo"), text)
    shown = (text or name or "Codex gave no reason")[:MAX_MESSAGE]
    return TurnFailure(
        failure_class=_class(name, status, text),
        message=shown,
        retry_after_seconds=retry_after(text, now or datetime.now().astimezone()),
    )


def retry_after(text: str, now: datetime) -> float | None:
    """Seconds to wait that a message states: "try again in 1m 5.5s", "try again at 3:05 PM", an ISO time."""
    within = re.search(rf"(?:again|retry|retrying|resets?)\s+(?:in|after)\s+({_SPAN}+)", text, re.I)
    if within:
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|milli|[smhd])", within.group(1), re.I)
        return sum(float(value) * _UNITS[_unit(unit)] for value, unit in parts)
    moment = _moment(text, now)
    return max(0.0, (moment - now).total_seconds()) if moment else None


def _class(name: str, status: int | None, text: str) -> FailureClass:
    if name in _BY_INFO:
        return _BY_INFO[name]
    for pattern, found in _BY_TEXT:
        if re.search(pattern, text, re.I):
            return found
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    # A service that answers is no network that fails, though Codex calls it a failed connection.
    refused = status is not None and 400 <= status < 500
    if refused or name == "badRequest" or re.search(_BAD_REQUEST_TEXT, text, re.I):
        return FailureClass.BAD_REQUEST
    if status is not None and status >= 500:
        return FailureClass.OVERLOADED
    if name in ("httpConnectionFailed", "responseStreamConnectionFailed", "responseStreamDisconnected"):
        return FailureClass.NETWORK
    if re.search(_NETWORK_TEXT, text, re.I):
        return FailureClass.NETWORK
    return FailureClass.OVERLOADED if name == "internalServerError" else FailureClass.OTHER


def _info(info: object, text: str) -> tuple[str, int | None]:
    """The name of Codex's error kind and the HTTP status, which may stand in the message alone."""
    name, status = (info, None) if isinstance(info, str) else ("", None)
    if isinstance(info, Mapping) and info:
        name, value = next(iter(info.items()))
        status = value.get("httpStatusCode") if isinstance(value, Mapping) else None
    if not isinstance(status, int):
        found = re.search(r"(?:status|http)\D{0,12}([1-5]\d\d)\b", text, re.I)
        status = int(found.group(1)) if found else None
    return str(name), status


def _unit(word: str) -> str:
    word = word.lower()
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _moment(text: str, now: datetime) -> datetime | None:
    """The moment after which to try again, as Codex words it: local time, with a date when not today."""
    iso = re.search(r"again (?:at|after) (\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)", text)
    if iso:
        try:
            moment = datetime.fromisoformat(iso.group(1).rstrip("."))
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    found = re.search(
        r"again at (?:([A-Z][a-z]{2})[a-z]* (\d{1,2})[a-z]{2}, (\d{4}),? (?:at )?)?(\d{1,2}):(\d\d) ([AP])M",
        text,
    )
    if not found:
        return None
    month, day, year, hour, minute, half = found.groups()
    try:
        # Seconds are cut off in the text: the next full minute is the one that is surely late enough.
        moment = now.replace(
            hour=int(hour) % 12 + (12 if half == "P" else 0), minute=int(minute), second=0, microsecond=0
        ) + timedelta(minutes=1)
        if year:
            return moment.replace(year=int(year), month=_MONTHS.index(month) + 1, day=int(day))
    except ValueError:
        return None
    return moment + timedelta(days=1) if now - moment > timedelta(hours=1) else moment
