"""What stands behind the tools: the engine, and the door to other agents, opened when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baton.contract.consult import ConsultCall, RecordsCall
from baton.contract.review import ReviewCall
from baton.contract.session import Session
from baton.contract.workflow import WorkflowCall
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

    async def workflow(self, call: WorkflowCall, session: Session, person: Person) -> dict[str, Any]:
        from baton.review.service import ReviewService
        from baton.workflow.service import WorkflowService

        consulting = self._door()
        service = WorkflowService(consulting, ReviewService(consulting), self)
        return await service.workflow(call, session, person)

    def consultation(self, consultation_id: str) -> dict[str, Any]:
        """One consultation with all its answers. Raises `NotFound`."""
        from baton.consult.export import exported

        return exported(self.house, consultation_id)

    def review_record(self, review_id: str) -> dict[str, Any]:
        """One review with its findings and their history. Raises `NotFound`."""
        from baton.review.export import exported

        return exported(self.house, review_id)

    def workflow_record(self, workflow_id: str) -> dict[str, Any]:
        """One workflow with its steps. Raises `NotFound`."""
        from baton.workflow.export import exported

        return exported(self.house, workflow_id)

    def recent_ids(self) -> list[str]:
        """Of consultations, reviews and workflows."""
        ledger = self.house.ledger
        return [
            *(one.consultation_id for one in ledger.consultations(RECENT)),
            *(one.review_id for one in ledger.reviews(RECENT)),
            *self.recent_workflows(),
        ]

    def recent_workflows(self) -> list[str]:
        return [one.workflow_id for one in self.house.ledger.workflows(RECENT)]

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
