"""Rendered files: equal to what is tracked, within their budgets, and honest about what exists."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest

from baton.contract.catalogue import ModelEntry
from baton.contract.errors import InvalidInput
from baton.contract.job import JobRow
from baton.policy.bundle import bundle_root
from baton.policy.ladder import TABLE, ladder_table
from baton.policy.load import load_policy
from baton.policy.model import Policy
from baton.policy.render import check, render, render_command, role_instructions

SKILLS = {
    "compose-delegation",
    "integrate-and-verify",
    "orchestrate-work",
    "route-subagents",
    "scale-agent-pool",
}
AGENTS = {"luna-worker", "terra-explorer", "terra-worker", "sol-specialist", "independent-reviewer"}

TOOLS = {
    "delegate_task",
    "delegate_tasks",
    "explore",
    "continue_task",
    "wait_run",
    "inspect_run",
    "control_run",
}
"""What a skill may mention of the server."""


@pytest.fixture
def policy() -> Policy:
    return load_policy(None, None)


@pytest.fixture
def bundle(test_root: Path) -> Path:
    copy = test_root / "bundle"
    for folder in ("policy", "skills", "agents"):
        shutil.copytree(bundle_root() / folder, copy / folder)
    return copy


@pytest.fixture
def files(policy: Policy) -> dict[str, str]:
    return render(policy, bundle_root())


def test_tracked_files_are_what_the_templates_give() -> None:
    said: list[str] = []
    assert render_command(True, said.append) == 0
    assert said == []


def test_every_skill_and_agent_is_rendered(files: dict[str, str]) -> None:
    assert {name for name in files if name.endswith("/SKILL.md")} == {
        f"skills/{name}/SKILL.md" for name in SKILLS
    }
    assert {name for name in files if name.endswith("/openai.yaml")} == {
        f"skills/{name}/agents/openai.yaml" for name in SKILLS
    }
    assert {name for name in files if name.startswith("agents/")} == {
        f"agents/{name}.toml" for name in AGENTS
    }
    assert "skills/route-subagents/references/model-matrix.md" in files


def test_difference_is_told_by_file_and_line_and_mended(bundle: Path) -> None:
    edited = bundle / "skills" / "orchestrate-work" / "SKILL.md"
    lines = edited.read_text().split("\n")
    lines[2] += " edited"
    edited.write_text("\n".join(lines))
    (bundle / "agents" / "luna-worker.toml").unlink()
    said: list[str] = []
    assert render_command(True, said.append, bundle) == 1
    assert said == [
        "agents/luna-worker.toml: missing; run `baton policy render`",
        "skills/orchestrate-work/SKILL.md: differs from line 3 on; run `baton policy render`",
    ]
    assert render_command(False, said.append, bundle) == 0
    assert render_command(True, said.append, bundle) == 0


def test_file_that_no_template_makes_is_told_and_left_alone(bundle: Path) -> None:
    stray = bundle / "agents" / "retired.toml"
    stray.write_text("")
    said: list[str] = []
    assert render_command(False, said.append, bundle) == 1
    assert said == ["agents/retired.toml: no template makes it; remove it"]
    assert stray.exists()


def test_rendering_twice_writes_nothing(bundle: Path) -> None:
    before = {file: file.stat().st_mtime_ns for file in bundle.rglob("*") if file.is_file()}
    assert render_command(False, lambda line: None, bundle) == 0
    assert {file: file.stat().st_mtime_ns for file in bundle.rglob("*") if file.is_file()} == before


def test_new_skill_is_a_template_and_nothing_else(bundle: Path, policy: Policy) -> None:
    template = bundle / "policy" / "templates" / "skills" / "greet" / "SKILL.md.j2"
    template.parent.mkdir()
    template.write_text("Hello from {{ policy.root.mode }}.\n")
    assert render(policy, bundle)["skills/greet/SKILL.md"] == "Hello from adaptive.\n"


def test_role_of_a_person_becomes_an_agent(codex_home: Path) -> None:
    own = codex_home / "baton" / "policy.toml"
    own.parent.mkdir()
    own.write_text(
        '[roles.typist]\ndescription = "Types \\"fast\\"."\ntier = "luna"\neffort = "low"\n'
        'change_intent = "required"\ntemplate = "worker"\ninstructions = "Say \'\'\' and \\"\\"\\"."\n'
    )
    files = render(load_policy(codex_home, None), bundle_root())
    agent = tomllib.loads(files["agents/typist.toml"])
    assert agent["description"] == 'Types "fast".'
    assert "Say ''' and \"\"\"." in agent["developer_instructions"]
    assert "| `typist` |" in files["skills/route-subagents/references/model-matrix.md"]


def test_unknown_template_of_a_role_is_refused_with_the_nearest(policy: Policy) -> None:
    role = policy.roles["luna-worker"].model_copy(update={"template": "wroker"})
    with pytest.raises(
        InvalidInput, match=r"roles\.mine\.template: no template 'wroker'; did you mean 'worker'"
    ):
        role_instructions("mine", role)


def test_tracked_agents_have_the_pinned_model_and_an_install_what_the_machine_has(
    policy: Policy, catalogue: list[ModelEntry]
) -> None:
    tracked = tomllib.loads(render(policy, bundle_root())["agents/sol-specialist.toml"])
    assert (tracked["model"], tracked["model_reasoning_effort"]) == ("gpt-5.6-sol", "high")
    files = render(policy, bundle_root(), catalogue)
    assert tomllib.loads(files["agents/luna-worker.toml"])["model"] == "gpt-6-luna"
    # This machine's sol knows medium only.
    assert tomllib.loads(files["agents/sol-specialist.toml"])["model_reasoning_effort"] == "medium"
    assert "`gpt-6-luna`" in files["skills/route-subagents/references/model-matrix.md"]


def test_agent_has_only_the_keys_that_codex_takes(files: dict[str, str]) -> None:
    for name in AGENTS:
        agent = tomllib.loads(files[f"agents/{name}.toml"])
        assert set(agent) == {
            "name",
            "description",
            "developer_instructions",
            "model",
            "model_reasoning_effort",
        }
        assert agent["name"] == name
        assert len(agent["description"]) <= 150


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_skill_keeps_to_its_budget(files: dict[str, str], name: str) -> None:
    text = files[f"skills/{name}/SKILL.md"]
    front = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", text)
    assert front is not None
    assert front[1] == name
    # Quoted, because a colon in a plain YAML value would end it.
    assert 40 < len(json.loads(front[2])) <= 150
    assert len(text.splitlines()) < 80
    assert "\n\n\n" not in text


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_skill_tells_baton_tasks_from_native_subagents(files: dict[str, str], name: str) -> None:
    text = files[f"skills/{name}/SKILL.md"]
    assert re.search(r"^## .*[Nn]ative subagent|Without the Baton tools", text, re.M)
    assert "delegate_task" in text or "control_run" in text


def test_skills_mention_only_what_exists(files: dict[str, str]) -> None:
    text = "\n".join(content for name, content in files.items() if name.startswith("skills/"))
    assert all(f"`{tool}`" in text for tool in TOOLS)
    named = set(re.findall(r"`([a-z]+_[a-z]+)`", text)) | set(re.findall(r"mcp__baton__([a-z_]+)", text))
    known = (
        TOOLS | {"no_change", "not_found"} | {trouble.value for trouble in TABLE} | set(JobRow.model_fields)
    )
    assert named <= known
    assert set(re.findall(r"\$baton:([a-z-]+)", text)) <= SKILLS
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert any(name.endswith(link) for name in files), link


def test_skill_says_the_root_mode_in_force(codex_home: Path) -> None:
    own = codex_home / "baton" / "policy.toml"
    own.parent.mkdir()
    own.write_text("[root]\nmode = 'control-plane'\n")
    policy = load_policy(codex_home, None)
    strict, usual = (
        {name: text for name, text in render(one, bundle_root()).items() if name.endswith("SKILL.md")}
        for one in (policy, load_policy(None, None))
    )
    assert "Root mode here: **control-plane**.\n" in strict["skills/orchestrate-work/SKILL.md"]
    assert max(len(text.splitlines()) for text in strict.values()) < 80
    alone = ("do it yourself when", "you, no worker", "take it back", "merge by hand")
    for words in (*alone, "0: you", "do them yourself", "do them last yourself", "rows yourself first"):
        assert any(words in text for text in usual.values()), words
        assert not any(words in text for text in strict.values()), words
    assert any(line.startswith("skills/orchestrate-work/SKILL.md: ") for line in check(policy, bundle_root()))


def test_ladder_in_the_skills_is_the_one_that_is_followed(files: dict[str, str], policy: Policy) -> None:
    text = files["skills/route-subagents/references/escalation.md"]
    assert ladder_table() in text
    assert f"effort at most {policy.escalation.max_effort}" in text
