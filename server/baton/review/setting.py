"""Who reviews for whom, and under which rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from baton.consult.plan import rules_for, workspace_of
from baton.contract.errors import NotAllowed
from baton.contract.session import Session
from baton.engine.house import House
from baton.engine.machine import bounds_of
from baton.policy.consult_rules import ConsultRules
from baton.policy.load import load_policy
from baton.policy.review_rules import ReviewRules
from baton.review.material import Bounds


@dataclass(frozen=True)
class Setting:
    """Who reviews for whom, under which rules."""

    house: House
    session: Session
    workspace: Path | None
    consult: ConsultRules
    rules: ReviewRules

    @property
    def bounds(self) -> Bounds:
        return Bounds(
            self.house, self.rules, self.workspace, bounds_of(self.session, self.house.env).may_read
        )


def setting_for(house: House, workspace: str | None, session: Session) -> Setting:
    """The rules in force. Raises `NotAllowed` while reviews are switched off."""
    folder = workspace_of(workspace, session)
    rules = load_policy(house.codex_home, folder).review
    if not rules.enabled:
        raise NotAllowed(
            "reviews by other agents are switched off; the person switches them on with [review] enabled ="
            f" true in {house.codex_home / 'baton' / 'policy.toml'}"
        )
    consult = rules_for(house, folder)
    if not consult.store_full_content:
        raise NotAllowed(
            "a review is its findings, and consult.store_full_content = false keeps no text; set it to true"
        )
    return Setting(house, session, folder, consult, rules)
