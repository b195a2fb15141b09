"""Pauses that a service asked for: what one worker is told holds for all who ask for the same model."""

from __future__ import annotations

from baton.ledger.base import Part, now
from baton.ledger.records import PauseRecord
from baton.ledger.tables import PAUSES


class Pauses(Part):
    """Pauses of this machine, one for each model. None is durable: after a restart who asks is told again."""

    def pause_model(self, model: str, until: float, why: str) -> None:
        """Nobody should ask for the model before `until`, seconds since 1970; a longer pause stays."""
        with self.db.transaction(durable=False) as db:
            db.execute("DELETE FROM pauses WHERE until <= ?", (now(),))
            known = self._many(PAUSES, "model = ?", [model], "model")
            if known and known[0].until >= until:
                return
            db.execute("DELETE FROM pauses WHERE model = ?", (model,))
            PAUSES.insert(db, PauseRecord(model=model, until=until, why=why, noted_at=now()))

    def model_pause(self, model: str) -> PauseRecord | None:
        """The pause of a model; None when there is none, or it is over."""
        found = self._many(PAUSES, "model = ? AND until > ?", [model, now()], "model")
        return found[0] if found else None

    def model_pauses(self) -> list[PauseRecord]:
        """The pauses of all models that are not over yet."""
        return self._many(PAUSES, "until > ?", [now()], "model")
