"""What stands behind the tools: the engine, and the door to other agents, opened when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baton.contract.consult import ConsultCall, RecordsCall
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.engine.service import Service as EngineService
from baton.policy.load import load_policy

if TYPE_CHECKING:
    from baton.consult.service import ConsultService
    from baton.review.confirm import Person

RECENT = 100


class SessionService(EngineService):
    """All tools of one session over one open state folder."""

    def __init__(self) -> None:
        super().__init__(keeps_spare=True)
        self._consulting: ConsultService | None = None

    async def consult(self, call: ConsultCall, session: Session) -> dict[str, Any]:
        return await self._door().consult(call, session)

    async def records(self, call: RecordsCall, session: Session) -> dict[str, Any]:
        return await self._door().records(call, session)

    async def review(self, call: ReviewCall, session: Session, person: Person) -> dict[str, Any]:
        from baton.review.service import ReviewService

        return await ReviewService(self._door()).review(call, session, person)

    def consultation(self, consultation_id: str) -> dict[str, Any]:
        """One consultation with all its answers. Raises `NotFound`."""
        from baton.consult.export import exported

        return exported(self.house, consultation_id)

    def recent_ids(self) -> list[str]:
        return [one.consultation_id for one in self.house.ledger.consultations(RECENT)]

    def agent_names(self) -> list[str]:
        rules = load_policy(self.house.codex_home, None).consult
        return sorted(name for name, agent in rules.agents.items() if agent.enabled)

    def persona_names(self) -> list[str]:
        return sorted(load_policy(self.house.codex_home, None).consult.personas)

    def _door(self) -> ConsultService:
        if self._consulting is None:
            # Imported here: a session that only delegates needs none of it.
            from baton.consult.service import ConsultService

            self._consulting = ConsultService(self.house)
        return self._consulting
