"""A review with everything it owns, as plain data: for resources."""

from __future__ import annotations

from typing import Any

from baton.engine.house import House


def exported(house: House, review_id: str) -> dict[str, Any]:
    """The record with findings, their history, and what was made of each answer; without its token.

    The answers themselves are in the consultation that it names. Raises `NotFound`.
    """
    ledger = house.ledger
    review = ledger.review(review_id).model_dump(mode="json", exclude={"token", "approval"})
    return {
        **review,
        "findings": [one.model_dump(mode="json") for one in ledger.review_findings(review_id)],
        "history": [one.model_dump(mode="json") for one in ledger.dispositions(review_id)],
        "reads": [one.model_dump(mode="json") for one in ledger.review_reads(review_id)],
    }
