"""A run as a folder of plain files, which needs neither Baton nor its state to be read."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from baton.contract.errors import InvalidInput
from baton.engine.house import House
from baton.engine.results import evidence, kept_text, patches
from baton.ledger.records import AttemptRecord, RunRecord

PAGE = 1000


def export_run(house: House, run: RunRecord, folder: Path) -> list[str]:
    """Write everything known of a run into a new folder; the relative paths of the files, in order.

    The folder appears when it is complete. Raises `InvalidInput` when it is there already, `OSError` when it
    cannot be written.
    """
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"{folder} is there already; name a folder that is not")
    parent = folder.parent
    if not parent.is_dir():
        raise InvalidInput(f"{parent} is no folder; make it first")
    partial = parent / f".{folder.name}.{secrets.token_hex(4)}"
    partial.mkdir(mode=0o700)
    try:
        for name, content in _files(house, run):
            path = partial / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _files(house: House, run: RunRecord) -> Iterator[tuple[str, bytes]]:
    tasks = house.ledger.tasks(run.run_id)
    yield "evidence.json", _json(evidence(house, run, tasks))
    yield "run.json", _json(run.model_dump(mode="python"))
    yield "events.jsonl", b"".join(_events(house, run.run_id))
    attempts = house.ledger.attempts(run.run_id)
    for attempt in attempts:
        where = f"tasks/{attempt.task_id}/{attempt.attempt}"
        for name in ("brief", "report"):
            text = kept_text(house, run, name, attempt)
            if text is not None:
                yield f"{where}/{name}.txt", text
        yield from _checks(house, where, attempt)
    for patch in patches(house, run, attempts):
        yield f"tasks/{patch.task_id}/{patch.attempt}/changes.patch", patch.data
    for one in house.ledger.integrations(run.run_id):
        for number, check in enumerate(one.checks, start=1):
            if check.output is not None:
                output = house.artifacts.read(check.output)
                yield f"integrations/{one.number}/check-{number}.txt", output


def _checks(house: House, where: str, attempt: AttemptRecord) -> Iterator[tuple[str, bytes]]:
    checks = attempt.result.evidence.checks if attempt.result is not None else []
    for number, check in enumerate(checks, start=1):
        if check.output is not None:
            yield f"{where}/check-{number}.txt", house.artifacts.read(check.output)


def _events(house: House, run_id: str) -> Iterator[bytes]:
    after = 0
    while events := house.ledger.events(run_id, after=after, limit=PAGE):
        for event in events:
            line = {
                "seq": event.seq,
                "at": event.created_at,
                "kind": event.kind,
                "taskId": event.task_id,
                "attempt": event.attempt,
                "data": event.data,
            }
            yield json.dumps(line).encode() + b"\n"
        after = events[-1].seq


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"
