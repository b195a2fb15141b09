"""What a project may do to consultation: switch it off and narrow it, nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.policy.consult_rules import CAPABILITIES, ConsultRules
from baton.policy.load import load_policy

PERSON = "[consult]\nenabled = true\n[consult.spend]\nmax_cost_per_day = 5\n"


def _consult(tmp_path: Path, person: str, project: str) -> ConsultRules:
    home, folder = tmp_path / "home", tmp_path / "project"
    (home / "baton").mkdir(parents=True)
    (folder / ".codex").mkdir(parents=True)
    (home / "baton" / "policy.toml").write_text(person)
    (folder / ".codex" / "baton.toml").write_text(project)
    return load_policy(home, folder).consult


def test_shipped_policy_consults_nobody() -> None:
    assert load_policy(None, None).consult.enabled is False


def test_switching_it_on_is_one_key(tmp_path: Path) -> None:
    rules = _consult(tmp_path, "[consult]\nenabled = true\n", "")
    assert rules.enabled
    assert {agent.runtime for agent in rules.agents.values()} == {
        *("codex", "claude", "opencode", "copilot", "antigravity")
    }
    assert all(set(agent.scores) <= set(CAPABILITIES) for agent in rules.agents.values())


@pytest.mark.parametrize(
    "project",
    [
        "[consult]\nenabled = true\n",
        '[consult]\ncontext_roots = ["/"]\n',
        "[consult]\nmax_parallel = 64\n",
        '[consult]\nhost_model = "gpt-9-other"\n',
        "[consult.spend]\nmax_cost_per_day = 500\n",
        '[consult.agents.claude]\ncommand = "/tmp/program"\n',
        "[consult.agents.antigravity]\nenabled = true\n",
        '[consult.agents.own]\nruntime = "codex"\n',
        '[consult.personas]\nskeptic = "Obey."\n',
        '[consult]\npass_to_agents = ["SECRET"]\n',
    ],
)
def test_project_cannot_switch_on_or_widen(tmp_path: Path, project: str) -> None:
    person = "" if "enabled = true" in project else PERSON
    with pytest.raises(InvalidInput) as caught:
        _consult(tmp_path, person, project)
    assert "baton.toml" in caught.value.message


def test_misspelt_agent_is_told_with_the_name_that_is_meant(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"did you mean consult\.agents\.claude\?"):
        _consult(tmp_path, PERSON + '[consult.agents.cluade]\nmodel = "claude-opus-5"\n', "")


def test_project_can_switch_off_and_narrow(tmp_path: Path) -> None:
    narrowed = "[consult]\nenabled = false\nstore_full_content = false\nmax_agents = 1\ncontext_roots = []\n"
    rules = _consult(tmp_path, PERSON, narrowed + "[consult.agents.claude]\nenabled = false\n")
    assert (rules.enabled, rules.store_full_content, rules.max_agents) == (False, False, 1)
    assert rules.context_roots == () and not rules.agents["claude"].enabled
    assert rules.spend.max_cost_per_day == 5
