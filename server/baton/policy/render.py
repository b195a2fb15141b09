"""Skills, agents and the schema: rendered from the policy and the templates, written or compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.catalogue import ModelEntry
from baton.contract.errors import InvalidInput
from baton.contract.nearest import did_you_mean
from baton.policy.bundle import bundle_root
from baton.policy.ladder import ladder_table
from baton.policy.load import load_layers
from baton.policy.model import Policy
from baton.policy.routing_rules import Role
from baton.policy.schema import SCHEMA_FILE, schema_text
from baton.policy.templating import TEMPLATES, environment, render_template
from baton.policy.tiers import nearest_effort, resolve_tier

__all__ = ["check", "render", "render_command", "render_template", "role_instructions"]

RENDERED_FOLDERS = ("skills", "agents")
"""Folders of the bundle in which every file is rendered."""


@dataclass(frozen=True)
class RoleView:
    """A role as templates see it, with its tier resolved."""

    name: str
    role: Role
    model: str
    effort: str | None
    instructions: str


def render(policy: Policy, bundle: Path, catalogue: Sequence[ModelEntry] | None = None) -> dict[str, str]:
    """Every rendered file: its path below the bundle, with `/`, and its text.

    Without a catalogue tiers stand for their pinned models, as in the tracked files; with one, for what the
    installed Codex has. A skill is whatever lies below `templates/skills/`; an agent is whatever the policy
    has as a role. Raises `InvalidInput` for a role that cannot be rendered.
    """
    templates = environment(bundle)
    roles = [_view(policy, bundle, name, role, catalogue) for name, role in policy.roles.items()]
    files = {SCHEMA_FILE: schema_text()}
    for name in templates.list_templates(filter_func=lambda name: name.startswith("skills/")):
        files[name.removesuffix(".j2")] = templates.get_template(name).render(
            policy=policy, roles=roles, ladder=ladder_table()
        )
    for view in roles:
        files[f"agents/{view.name}.toml"] = templates.get_template("agent.toml.j2").render(view=view)
    return dict(sorted(files.items()))


def check(policy: Policy, bundle: Path, catalogue: Sequence[ModelEntry] | None = None) -> list[str]:
    """How the files in the bundle differ from what would be rendered: one line for each file, sorted."""
    wanted = render(policy, bundle, catalogue)
    differences = {name: _difference(bundle / name, text) for name, text in wanted.items()}
    for folder in RENDERED_FOLDERS:
        for file in sorted((bundle / folder).rglob("*")):
            name = file.relative_to(bundle).as_posix()
            if name not in wanted and not file.is_dir():
                differences[name] = "no template makes it; remove it"
    return [f"{name}: {text}" for name, text in sorted(differences.items()) if text]


def render_command(check_only: bool, say: Callable[[str], None], bundle: Path | None = None) -> int:
    """`baton policy render`: write the bundle's files from its own policy, or only tell how they differ.

    Gives the exit status: 1 when a file differs, or is left that no template makes.
    """
    root = bundle or bundle_root()
    policy = load_layers(None, None, root).policy
    if not check_only:
        for name, text in render(policy, root).items():
            file = root / name
            if _difference(file, text):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text.encode())
                say(f"{name}: written")
    remaining = check(policy, root)
    for line in remaining:
        say(line)
    return 1 if remaining else 0


def role_instructions(role_name: str, role: Role, bundle: Path | None = None) -> str:
    """A role's standing instructions: its template's text, then the person's own words.

    Raises `InvalidInput` when the policy names a template that does not exist.
    """
    root = bundle or bundle_root()
    known = sorted(file.name.removesuffix(".md.j2") for file in (root / TEMPLATES / "roles").glob("*.md.j2"))
    if role.template not in known:
        advice = did_you_mean(role.template, known)
        raise InvalidInput(f"roles.{role_name}.template: no template {role.template!r}; {advice}")
    text = environment(root).get_template(f"roles/{role.template}.md.j2").render(role=role)
    return "\n\n".join(part.strip() for part in (text, role.instructions) if part.strip()) + "\n"


def _view(
    policy: Policy, bundle: Path, name: str, role: Role, catalogue: Sequence[ModelEntry] | None
) -> RoleView:
    instructions = role_instructions(name, role, bundle)
    if catalogue is None:
        return RoleView(name, role, policy.tier(role.tier).pinned, role.effort, instructions)
    model = resolve_tier(policy, role.tier, catalogue)
    return RoleView(name, role, model.slug, nearest_effort(role.effort, model).effort, instructions)


def _difference(file: Path, wanted: str) -> str | None:
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        return "missing; run `baton policy render`"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if found == wanted.encode():
        return None
    ours, theirs = wanted.encode().split(b"\n"), found.split(b"\n")
    same = 0
    while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
        same += 1
    return f"differs from line {same + 1} on; run `baton policy render`"
