"""Where the text of a consultation is: in the ledger and its artifacts, or held apart and then removed.

With `store_full_content = false` no text goes into the database. Questions, prompts, answers and raw output
are files in the state folder instead, which the process that asks and whoever reads the answer need; an hour
after the consultation came to rest the next thing that Baton does removes them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from baton.contract.consult import Answer
from baton.contract.errors import NotFound, StateUnavailable
from baton.engine.house import House
from baton.ledger.consult_records import ConsultArtifact, ConsultationRecord, ConsultTurnRecord

HELD_SECONDS = 3600.0
"""How long text that is not kept can be read after the answer."""


class Content:
    """The texts of one consultation: `question`, `prompt`, `answer`, `stdout` and `stderr` of each turn."""

    def __init__(self, house: House, consultation: ConsultationRecord) -> None:
        self._house = house
        self._id = consultation.consultation_id
        self._keeps = consultation.keeps_text

    def put_text(self, number: int, name: str, text: str) -> ConsultArtifact | None:
        """Keep a text; the reference to be recorded where it is kept for good."""
        data = text.encode("utf-8", "backslashreplace")
        if self._keeps:
            artifact = self._house.artifacts.put_bytes(data)
            return self._reference(number, name, artifact, len(data))
        self._hold(number, name, data)
        return None

    def put_raw(self, number: int, files: Mapping[str, Path]) -> list[ConsultArtifact]:
        """Keep what a program wrote, by name; files that are not there are left out.

        Those stay where the references are still to be recorded: `drop_raw` removes them after that.
        """
        kept = []
        for name, path in files.items():
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            if self._keeps:
                artifact = self._house.artifacts.put_file(path)
                kept.append(self._reference(number, name, artifact, size))
            else:
                path.replace(self._held(number, name))
        return kept

    def drop_raw(self, files: Mapping[str, Path]) -> None:
        """Remove what is kept elsewhere by now."""
        for path in files.values():
            path.unlink(missing_ok=True)

    def put_answer(self, number: int, answer: Answer | None) -> Answer | None:
        """The answer as the ledger is to have it: itself, or None when it is held apart."""
        if self._keeps or answer is None:
            return answer
        self._hold(number, "answer", answer.model_dump_json().encode("utf-8", "backslashreplace"))
        return None

    def question(self, turn: ConsultTurnRecord) -> str:
        """Raises `NotFound` when it is not kept any more."""
        if turn.question is not None:
            return turn.question
        return self.read(turn.number, "question").decode("utf-8", "replace")

    def answer(self, turn: ConsultTurnRecord) -> Answer | None:
        """None when there is none, or none any more."""
        if turn.answer is not None or self._keeps:
            return turn.answer
        with contextlib.suppress(NotFound):
            return Answer.model_validate_json(self.read(turn.number, "answer"))
        return None

    def read(self, number: int, name: str) -> bytes:
        """Raises `NotFound`, saying whether it is not there or not there any more."""
        if not self._keeps:
            with contextlib.suppress(FileNotFoundError):
                return self._held(number, name, make=False).read_bytes()
            raise NotFound(
                f"{name} of {self._id} turn {number} is not kept (consult.store_full_content = false)"
            )
        for kept in self._house.ledger.consult_artifacts(self._id, number):
            if kept.name == name:
                return self._house.artifacts.read(kept.artifact)
        raise NotFound(f"consultation {self._id} has no {name} of turn {number}")

    def _reference(self, number: int, name: str, artifact: str, size: int) -> ConsultArtifact:
        return ConsultArtifact(
            consultation_id=self._id, number=number, name=name, artifact=artifact, size=size
        )

    def _hold(self, number: int, name: str, data: bytes) -> None:
        path = self._held(number, name)
        temporary = path.with_name(path.name + ".new")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(data)
            temporary.replace(path)
        except OSError as error:
            raise StateUnavailable(f"{path} cannot be written: {error.strerror}") from None

    def _held(self, number: int, name: str, *, make: bool = True) -> Path:
        folder = held_folder(self._house, self._id)
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / f"{number}.{name}"


def held_folder(house: House, consultation_id: str) -> Path:
    """Where the text of a consultation is that the ledger does not keep."""
    return house.state.root / "held" / consultation_id


def work_folder(house: House, consultation_id: str) -> Path:
    """Where the programs of a consultation work; it stays, because they go on with it in a follow-up."""
    return house.state.root / "consult" / consultation_id


def remove_held(house: House, at: float | None = None) -> int:
    """Remove the text that is held and has had its time, and what programs worked on with it; how many."""
    moment = time.time() if at is None else at
    removed = 0
    root = house.state.root / "held"
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        try:
            ended = house.ledger.consultation(folder.name).ended_at
        except NotFound:
            # It may be about to be recorded.
            ended = folder.stat().st_mtime
        if ended is not None and moment - ended >= HELD_SECONDS:
            for place in (folder, work_folder(house, folder.name)):
                shutil.rmtree(place, ignore_errors=True)
            removed += 1
    return removed
