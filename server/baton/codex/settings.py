"""What a worker's thread is started with, and how it is put to Codex."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from baton.process.environment import WORKER_MARKER


class Profile(Protocol):
    """A permission profile under a name nobody can guess.

    `config` is the per-thread configuration that defines it, `network` its network part. `writable_roots` is
    what Codex must name as writable when it has understood the profile, in any order; `workspace_roots` are
    given to the thread as its own roots.
    """

    @property
    def name(self) -> str: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def network(self) -> Mapping[str, object]: ...
    @property
    def writable_roots(self) -> tuple[str, ...]: ...
    @property
    def workspace_roots(self) -> tuple[str, ...] | None: ...


@dataclass(frozen=True)
class ThreadSettings:
    """One worker's route, boundary and surroundings. Given again on every resume."""

    cwd: Path
    model: str
    effort: str | None
    profile: Profile
    environment: Mapping[str, str]
    """All that the worker's commands see. Codex adds variables of its own, nothing of the person's."""
    developer_instructions: str | None = None
    base_instructions: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More per-thread configuration; unknown keys are refused."""
    role: str | None = None
    tier: str | None = None
    """Role and tier are only noted in the route."""
    ephemeral: bool = False
    """Codex keeps nothing of a thread that is started so: it cannot be resumed."""

    def params(self, skills: tuple[str, ...] = ()) -> dict[str, Any]:
        """The parameters that start and resume have in common.

        `skills` are the names of those to switch off: a `$name` in a brief would otherwise put the text of
        that skill, which may come from the repository, before the model as an instruction.
        """
        roots = self.profile.workspace_roots
        optional = {
            "runtimeWorkspaceRoots": None if roots is None else list(roots),
            "developerInstructions": self.developer_instructions,
            "baseInstructions": self.base_instructions,
        }
        return {
            "cwd": str(self.cwd),
            "model": self.model,
            "approvalPolicy": "never",
            "permissions": self.profile.name,
            "config": self._config(skills),
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _config(self, skills: tuple[str, ...]) -> dict[str, Any]:
        # With the level already set, bash does not take a socket on its input for a remote login and does not
        # read the person's .bashrc.
        environment = {"SHLVL": "1", **self.environment, WORKER_MARKER: "1"}
        own: dict[str, Any] = {
            "default_permissions": self.profile.name,
            # Tables merge, lists do not: the list of names keeps out what a home's config sets besides.
            "shell_environment_policy": {
                "inherit": "none",
                "set": environment,
                "include_only": sorted(environment),
                "experimental_use_profile": False,
            },
            # In the repository's own configuration nothing is to be found for a worker.
            "projects": {str(self.cwd): {"trust_level": "untrusted"}},
        }
        if skills:
            own["skills"] = {"config": [{"name": name, "enabled": False} for name in skills]}
        if self.effort is not None:
            own["model_reasoning_effort"] = self.effort
        return merge(merge(self.extra, self.profile.config), own)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both tables, tables inside them merged in turn; `over` wins."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[key] = merge(old, value) if both and old is not None else value
    return merged
