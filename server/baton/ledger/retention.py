"""What is kept and for how long: references to artifacts, and the questions that `baton gc` asks."""

from __future__ import annotations

from collections.abc import Iterator

from baton.contract.states import RunState
from baton.ledger.artifacts import Artifacts
from baton.ledger.base import Part, expect_state, now
from baton.ledger.records import ArtifactRef
from baton.ledger.tables import ARTIFACT_REFS, RUNS

AT_REST = tuple(state for state in RunState if state.at_rest)

YOUNG_SECONDS = 24 * 3600.0
"""An artifact is kept before it is referred to; within this time it is nobody's garbage."""


class Retention(Part):
    """Who needs which artifact, and which runs have had their time."""

    def refer_to_artifact(self, ref: ArtifactRef) -> None:
        """Record that a run needs an artifact; idempotent. Call it after the artifact is kept."""
        made = ref if ref.created_at else ref.model_copy(update={"created_at": now()})
        with self.db.transaction() as db:
            known = self.db.read(
                "SELECT 1 FROM artifact_refs WHERE run_id = ? AND name = ? AND artifact = ?"
                " AND task_id IS ? AND attempt IS ?",
                [ref.run_id, ref.name, ref.artifact, ref.task_id, ref.attempt],
            )
            if not known:
                ARTIFACT_REFS.insert(db, made)

    def artifact_refs(self, run_id: str, task_id: str | None = None) -> list[ArtifactRef]:
        """What a run, or one task of it, refers to, oldest first."""
        if task_id is None:
            return self._many(ARTIFACT_REFS, "run_id = ?", [run_id], "created_at, name")
        return self._many(ARTIFACT_REFS, "run_id = ? AND task_id = ?", [run_id, task_id], "created_at, name")

    def artifact_bytes(self, run_id: str | None = None) -> int:
        """Bytes of the artifacts that one run, or all runs, refer to; each counted once."""
        where, values = ("run_id = ?", [run_id]) if run_id is not None else ("1", [])
        counted = f"SELECT artifact, max(size) AS size FROM artifact_refs WHERE {where} GROUP BY artifact"
        return int(self.db.read(f"SELECT ifnull(sum(size), 0) FROM ({counted})", values)[0][0])

    def unneeded_artifacts(
        self, artifacts: Artifacts, young_seconds: float = YOUNG_SECONDS
    ) -> Iterator[tuple[str, int]]:
        """Artifacts on disk, with their bytes, that nothing refers to and that are no longer young."""
        before = now() - young_seconds
        for name, size, kept_at in artifacts.all():
            if kept_at < before and not self.db.read(
                "SELECT 1 FROM artifact_refs WHERE artifact = ?1"
                " UNION ALL SELECT 1 FROM pool_artifacts WHERE artifact = ?1"
                " UNION ALL SELECT 1 FROM consult_artifacts WHERE artifact = ?1 LIMIT 1",
                [name],
            ):
                yield name, size

    def delete_run(self, run_id: str) -> None:
        """Forget a run with all that is recorded of it; its artifacts become unneeded, refs are not touched.

        Raises `NotFound`, and `WrongState` while it is not at rest.
        """
        with self.db.transaction() as db:
            run = self._one(RUNS, run_id, what=f"run {run_id!r}")
            expect_state(f"run {run_id}", run.state, AT_REST)
            db.execute("DELETE FROM runs WHERE run_id = ?", [run_id])
