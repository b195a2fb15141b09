"""The doctor: looks at everything between a person and their first delegated task, and says what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.contract.errors import BatonError, InvalidInput
from baton.install import check_agents, check_files, check_machine, check_server
from baton.install.config_text import read_text
from baton.install.findings import Finding, failure
from baton.install.installer import Installer, Wish, read_config
from baton.install.owned import Owned, read_owned
from baton.install.places import Places
from baton.install.plugin import CodexCommands
from baton.install.shipped import Package
from baton.install.surroundings import Codex
from baton.ledger.state import StateFolder


@dataclass(frozen=True)
class Doctor:
    """One look at a home, and at a project where one is named."""

    env: Mapping[str, str]
    places: Places
    package: Package
    project: Path | None = None

    def examine(self) -> Iterator[Finding]:
        """Every finding as it is made; none raises. Codex sessions cost nothing: their model is scripted."""
        yield from check_machine.check_platform()
        yield check_machine.check_git(self.env)
        state, found = check_machine.check_state(self.env)
        yield found
        codex: Codex | None = None
        if state is not None:
            codex, several = check_machine.check_codex(self.env, self.places, state)
            yield from several
        yield from self._files(codex)
        if codex is not None and state is not None:
            yield check_machine.check_sandbox(codex, self.env, state)
            yield from check_machine.check_rules(codex, self.places, self.project)
            yield from self._server(codex, state)
        yield from check_machine.check_command(self.places, self.env)
        yield from check_files.check_leftovers(self.places)

    def reinstall(self) -> str:
        """Complete what was cut short and put back what is damaged; edits and deletions of presets stay.

        Raises as `Installer.install` does.
        """
        owned = read_owned(self.places.owned)
        presets = self.package.presets(self.places, None) if owned is None else self._presets()
        upgrade = owned is not None and owned.content != self.package.content()
        report = Installer(self.places, self.package, presets).install(Wish(upgrade=upgrade))
        return "; ".join([*report.notes, "installed again" if report.changed else "nothing was damaged"])

    def _presets(self) -> dict[str, str]:
        from baton.install.surroundings import find_or_why

        codex, _ = find_or_why(self.env, self.places)
        return self.package.presets(self.places, codex.models if codex else None)

    def _files(self, codex: Codex | None) -> Iterator[Finding]:
        policy, found = check_machine.check_policy(self.places, self.project, self.package.root)
        yield found
        if codex is not None and policy is not None:
            yield from check_machine.check_models(codex, policy)
        if policy is not None:
            yield from check_agents.check_agents(self.env, policy.consult)
        try:
            owned, config = self._recorded()
        except BatonError as error:
            yield failure("installed", error.message)
            return
        try:
            yield from check_files.check_installed(self.places, owned, config, self.package, self.reinstall)
            if codex is not None and policy is not None:
                presets = self.package.presets(self.places, codex.models)
                yield from check_files.check_presets(self.places, owned, presets, codex.models, self.project)
            if self.project is not None:
                yield check_files.check_trust(self.project, config)
        except BatonError as error:
            yield failure("installed", error.message)

    def _server(self, codex: Codex, state: StateFolder) -> Iterator[Finding]:
        commands = CodexCommands(codex.binary.path, self.places, self.env)
        served = True
        for finding in check_server.check_server(commands, self.places, self.env):
            served = served and finding.grade.value != "failure"
            yield finding
        yield from check_server.check_environment(commands, self.places, self.env)
        if served:
            yield from check_server.check_session(commands, self.project, state.scratch)

    def _recorded(self) -> tuple[Owned | None, dict[str, Any]]:
        try:
            config = read_text(read_config(self.places.config) or b"", self.places.config).data
        except InvalidInput:
            # Said already, of the same file.
            config = {}
        return read_owned(self.places.owned), config
