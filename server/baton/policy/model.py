"""The shape of the policy. It holds no defaults: the shipped `policy/policy.toml` supplies them all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.policy.consult_rules import ConsultRules
from baton.policy.narrowing import FIXED
from baton.policy.pool_rules import PoolRules
from baton.policy.review_rules import ReviewRules
from baton.policy.routing_rules import AdviceRules, Escalation, Price, Role, Root, Routing, Tier
from baton.policy.run_rules import (
    Checks,
    Concurrency,
    Deadlines,
    Dependencies,
    EnforcementRules,
    Environment,
    Limits,
    Network,
    Retention,
)
from baton.policy.section import Name, Section, Slug
from baton.policy.workflow_rules import WorkflowRules


class Policy(Section):
    """Baton's policy. A person's file and a project's name only the keys that they change."""

    root: Root
    routing: Routing
    tiers: Annotated[dict[Name, Tier], Field(min_length=1), FIXED]
    """Tiers by name."""
    roles: Annotated[dict[Name, Role], Field(min_length=1), FIXED]
    """Roles by name."""
    advice: AdviceRules
    escalation: Escalation
    concurrency: Concurrency
    deadlines: Deadlines
    limits: Limits
    environment: Environment
    network: Network
    enforcement: EnforcementRules
    dependencies: Dependencies
    checks: Checks
    retention: Retention
    pool: PoolRules
    consult: ConsultRules
    review: ReviewRules
    workflow: WorkflowRules
    prices: Annotated[dict[Slug, Price], FIXED]
    """Prices by model; a model that is not here has an unknown cost."""

    def role(self, name: str | None) -> tuple[str, Role]:
        """The role of that name, or the default one for None. Raises `InvalidInput` naming the nearest."""
        wanted = self.routing.default_role if name is None else name
        if wanted not in self.roles:
            raise InvalidInput(f"role: no role {wanted!r}; {did_you_mean(wanted, sorted(self.roles))}")
        return wanted, self.roles[wanted]

    def tier(self, name: str) -> Tier:
        """The tier of that name. Raises `InvalidInput` naming the nearest."""
        if name not in self.tiers:
            raise InvalidInput(f"tier: no tier {name!r}; {did_you_mean(name, sorted(self.tiers))}")
        return self.tiers[name]
