"""Several reviewers of one review, and a person's own way to look at it."""

from __future__ import annotations

import re
from pathlib import Path

from consult.waiting import until
from review.conftest import FINDING, Desk


def test_reviewers_are_asked_side_by_side(desk: Desk, test_root: Path) -> None:
    gate = test_root / "gate"
    desk.script.says("codex", {"gate": str(gate), "findings": [FINDING]})
    desk.script.says("claude", {"gate": str(gate), "findings": []})
    plan = desk.plan(mode="deep", ownFindings=[], reviewers=["codex", "claude"])
    assert desk.run(plan, waitSeconds=0)["state"] == "running"
    # Neither has answered, and both were asked.
    until(lambda: [len(desk.script.prompts(name)) for name in ("codex", "claude")] == [1, 1])
    gate.touch()
    done = desk.review("status", plan["reviewId"])
    assert (done["state"], sorted(done["reviewers"])) == ("awaiting_synthesis", ["claude", "codex"])
    # The same question, but for the mark that sets its material apart.
    asked = [desk.script.prompts(name)[0] for name in ("codex", "claude")]
    assert len({re.sub(r"material-[0-9a-f]{16}", "material", one) for one in asked}) == 1


def test_a_persons_own_persona_stands_beside_the_shipped_ones(desk: Desk) -> None:
    desk.add_policy('[consult.personas]\nlocks = "Look at every lock first."\n')
    desk.reviewed(persona="locks")
    assert "Look at every lock first." in desk.script.prompts("codex")[0]
    desk.reviewed(persona="skeptic")
    assert "Doubt the premise" in desk.script.prompts("codex")[1]
