"""The doctor on this machine: Codex, its login and models, git, the sandbox, the disk."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio

from baton.codex.binary import codex_remedy, find_codex
from baton.codex.bubblewrap import REMEDY, outdated
from baton.codex.home import Login, prepare_worker_home
from baton.codex.probe import Probe, forget, probe
from baton.codex.rules import allow_rules
from baton.contract.errors import BatonError
from baton.contract.wording import many
from baton.install.findings import Finding, failure, note, ok, warning
from baton.install.places import Places
from baton.install.surroundings import Codex, models
from baton.ledger.state import StateFolder
from baton.policy.load import load_policy
from baton.policy.model import Policy
from baton.policy.tiers import resolve_tier
from baton.process.environment import tool_environment
from baton.workspace.git import Git

LOW_SPACE = 2 * 2**30
"""Free bytes below which runs may soon fail."""

_LOGINS = {
    Login.FILE: "workers use your login, through a link to its file",
    Login.KEYRING: "your login is in the keyring, so workers use your own Codex home",
    Login.PROVIDER: "your model provider brings its own key or needs none",
    Login.ENVIRONMENT: "workers use the key in your environment",
}


def check_git(env: Mapping[str, str]) -> Finding:
    """git is there and new enough."""
    try:
        git = Git.find(env)
    except BatonError as error:
        return failure("git", error.message, "have `git version` say 2.38 or newer")
    return ok("git", f"{'.'.join(map(str, git.version))} at {git.binary}")


def check_state(env: Mapping[str, str]) -> tuple[StateFolder | None, Finding]:
    """The state folder can be used."""
    try:
        state = StateFolder.find(env)
    except BatonError as error:
        return None, failure("state", error.message)
    free = shutil.disk_usage(state.root).free
    message = f"{state.root}, {free / 2**30:.1f} GiB free"
    if free < LOW_SPACE:
        return state, warning("state", message, "make room, or see what `baton gc --dry-run` would free")
    return state, ok("state", message)


def check_codex(
    env: Mapping[str, str], places: Places, state: StateFolder
) -> tuple[Codex | None, list[Finding]]:
    """Codex, the way to the model, and the models."""
    try:
        binary = find_codex({**env, "CODEX_HOME": str(state.codex_home)}, cache=state.codex_versions)
    except BatonError as error:
        return None, [failure("codex", error.message, codex_remedy(env))]
    found = [ok("codex", f"{binary.version} at {binary.path} ({binary.origin})")]
    try:
        home = prepare_worker_home(state.codex_home, places.home, env, temporary=state.scratch / "codex")
    except BatonError as error:
        return None, [*found, failure("config", error.message, "mend the file; Codex cannot read it either")]
    if home.login is Login.NONE:
        found.append(failure("login", home.why or "no login was found", "run `codex login`"))
    else:
        found.append(ok("login", _LOGINS[home.login]))
    for name in home.left_out:
        found.append(note("login", f"{name} in config.toml is unknown to Baton; workers do without it"))
    try:
        listed = models(binary.path, home, env, state.root / "catalogue.json")
    except BatonError as error:
        return None, [*found, failure("models", error.message, "see what `codex debug models` says")]
    return Codex(binary, home, listed), found


def check_policy(
    places: Places, project: Path | None, bundle: Path | None = None
) -> tuple[Policy | None, Finding]:
    """Every layer of the policy can be read."""
    try:
        policy = load_policy(places.home, project, bundle)
    except BatonError as error:
        return None, failure("policy", error.message, "mend the file that it names")
    return policy, ok("policy", f"root mode {policy.root.mode}")


def check_models(codex: Codex, policy: Policy) -> Iterator[Finding]:
    """Every tier leads to a model of this Codex."""
    named = []
    for tier in policy.tiers:
        try:
            named.append(f"{tier} {resolve_tier(policy, tier, codex.models).slug}")
        except BatonError as error:
            yield failure(
                "models", error.message, "name one of the candidates in your policy, or update Codex"
            )
    if named:
        yield ok("models", f"{many(len(codex.models), 'model')}; {', '.join(named)}")


def check_sandbox(codex: Codex, env: Mapping[str, str], state: StateFolder) -> Finding:
    """What the sandbox was seen to do, tried again now."""
    forget(state.scratch)
    tools = tool_environment(env)

    async def attempt() -> Probe:
        return await probe(codex.binary, codex.home, cache=state.scratch, env=tools)

    seen = anyio.run(attempt)
    if seen.prevents and seen.why is None:
        return ok("sandbox", "holds: a write outside, a denied read and a connection out all failed")
    if seen.prevents:
        return warning("sandbox", f"scopes are held; {seen.why}")
    old = None if seen.runs else outdated(tools, codex.binary.path)
    fix = "allow unprivileged user namespaces" if old is None else REMEDY
    until = "until then scopes are detected afterwards, not prevented"
    return failure("sandbox", seen.why or "does not hold", f"{fix}; {until}")


def check_rules(codex: Codex, places: Places, project: Path | None) -> Iterator[Finding]:
    """Rules by which commands may leave any sandbox, and whether that concerns workers."""
    if codex.home.allow_rules_apply:
        yield warning(
            "rules",
            f"{codex.home.why}: such rules let commands out of any sandbox, so scopes are only detected",
            "remove the rules, or keep the login in a file (cli_auth_credentials_store)",
        )
        return
    folders = [places.home, *([project / ".codex"] if project is not None else [])]
    files = [file for folder in folders for file in allow_rules(folder)]
    if files:
        named = ", ".join(map(str, files))
        yield ok(
            "rules", f"{named} may let commands out of your own sessions' sandbox; never out of a worker's"
        )
    else:
        yield ok("rules", "none lets a command out of the sandbox")


def check_command(places: Places, env: Mapping[str, str]) -> Iterator[Finding]:
    """The `baton` command is found, and is this one."""
    if not places.command.exists():
        return
    found = shutil.which("baton", path=env.get("PATH", os.defpath))
    if found is None:
        yield warning(
            "command", f"{places.commands} is not on PATH", f'add it: PATH="{places.commands}:$PATH"'
        )
    elif not Path(found).samefile(places.command):
        yield note("command", f"`baton` is {found}, which comes before {places.command} on PATH")
    else:
        yield ok("command", str(places.command))


def check_platform() -> Iterator[Finding]:
    """Whether Baton is tested here."""
    if platform.system() != "Linux":
        yield note("platform", f"Baton is not tested on {platform.system()}: the sandbox is tried, see below")
