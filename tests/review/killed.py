"""Plans, runs and finalises a review, and is killed right after its nth commit to the ledger."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from baton.consult.service import ConsultService
from baton.contract.base import parse
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.engine.house import House
from baton.ledger.database import Database
from baton.review.service import ReviewService
from consult.scripted import look
from review import scripted

KILLED = 77


def kill_after(commits: int) -> None:
    """End this process, with nothing tidied up, when that many transactions have been committed."""
    original: Any = Database.transaction
    depth, done = 0, 0

    @contextmanager
    def transaction(self: Database, **options: Any) -> Iterator[Any]:
        nonlocal depth, done
        depth += 1
        try:
            with original(self, **options) as connection:
                yield connection
        finally:
            depth -= 1
        if depth == 0:
            done += 1
            if done == commits:
                os._exit(KILLED)

    Database.transaction = transaction  # type: ignore[method-assign]


async def review(house: House, folder: Path) -> None:
    consulting = ConsultService(house, look, scripted.start, scripted.adapter_of)
    service = ReviewService(consulting)

    async def call(action: str, **arguments: Any) -> dict[str, Any]:
        given = parse(ReviewCall, {"action": action, "waitSeconds": 60, **arguments}, "review")
        return await service.review(given, Session(cwd=str(folder), model="gpt-6.2-sol"))

    plan = await call("plan", goal="Is it right?", diffRef="main..work")
    name = plan["reviewId"]
    await call("run", id=name, confirm=plan["confirm"])
    await call("finalise", id=name, dispositions=[{"finding": "F1", "disposition": "fixed"}])


if __name__ == "__main__":
    with House.open() as opened:
        kill_after(int(sys.argv[1]))
        anyio.run(review, opened, Path(sys.argv[2]))
