"""The Codex home of the workers: the person's way to the model, and nothing else of theirs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import tomlkit

from baton.codex.launch import FEATURES_OFF
from baton.codex.person_config import PersonConfig, read_person_config
from baton.codex.rules import allow_rules
from baton.contract.errors import StateUnavailable
from baton.contract.evidence import TurnFailure
from baton.contract.states import FailureClass
from baton.ledger.locks import FileLock
from baton.process.there import is_there

LOCK_SECONDS = 10.0
"""How long to wait for another process that is writing the same home."""

OPENAI_VARIABLES = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY")
"""Variables by which Codex itself accepts a login, when the provider is OpenAI's."""

_BARE = "bare"

_NEVER = ("rules", "AGENTS.md", "AGENTS.override.md", "hooks.json", "hooks", "agents", "prompts", "plugins")
"""What must not be in a workers' home, whoever put it there."""

_SET: Mapping[str, object] = {
    "check_for_update_on_startup": False,
    "history": {"persistence": "none"},
}
"""Set in every workers' home; what makes a worker a worker is set at launch."""


NO_LOGIN = "no login was found: run `codex login`"


class Login(StrEnum):
    """How the workers reach the model."""

    FILE = "file"
    """The person's auth.json, linked: a renewed token is written through."""
    KEYRING = "keyring"
    """Bound to the person's own Codex home, which the workers then have to use."""
    PROVIDER = "provider"
    """The provider's own key or none at all."""
    ENVIRONMENT = "environment"
    """A key in a variable that Codex reads."""
    NONE = "none"
    """None that we can see."""


@dataclass(frozen=True)
class WorkerHome:
    """Where the workers' app-server keeps itself, and what its process needs."""

    path: Path
    login: Login
    allow_rules_apply: bool
    """True when rules that let commands out of the sandbox are in force there: scope is only detected."""
    why: str | None
    """One line on what is not as it should be; None when all is."""
    environment: Mapping[str, str]
    """Variables to set for every Codex process that talks to the model."""
    sandbox_environment: Mapping[str, str]
    """Variables to set for a Codex process that only runs a command in the sandbox. It has an empty home:
    Codex reads a home's `.env` into its own environment, and the command would inherit that."""
    env_names: tuple[str, ...] = ()
    """Variables to pass on to the app-server where the person has set them; never to a worker's commands."""
    secrets: tuple[Path, ...] = ()
    """Files and folders that a worker's commands must not be able to read."""
    foreign_servers: tuple[str, ...] = ()
    """MCP servers configured in the home that is used, each to be disabled by its name for a thread."""
    left_out: tuple[str, ...] = field(default=())
    """Keys of the person's provider that were not taken over because they are unknown."""

    def explained(self, failure: TurnFailure) -> TurnFailure:
        """With what to do, where Codex did not get through to the service and no login was found."""
        beyond = failure.failure_class in (FailureClass.NETWORK, FailureClass.AUTH)
        if self.login is not Login.NONE or not beyond or NO_LOGIN in failure.message:
            return failure
        return failure.model_copy(update={"message": f"{failure.message}; {NO_LOGIN}"})


def prepare_worker_home(
    home: Path, person_home: Path, env: Mapping[str, str], *, temporary: Path
) -> WorkerHome:
    """Make or refresh the workers' home at `home` from the person's Codex home.

    `temporary` is a folder for Codex's own temporary files; it must not be above `home`, because Codex keeps
    no helpers in a home below the temporary folder. Files are replaced atomically under a lock, so any number
    of processes may call this at once, also while app-servers run there; sessions in the home are kept.

    Raises `InvalidInput` when the person's config.toml cannot be read, `Busy` when the lock is not to be had,
    `StateUnavailable` when the home cannot be written.
    """
    config = read_person_config(person_home)
    login = _login(config, person_home, env)
    bare = home / _BARE
    for_sandbox = {"CODEX_HOME": str(bare), "TMPDIR": str(temporary)}
    try:
        for folder in (home, bare, temporary):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if login is Login.KEYRING:
            return _person_home(config, person_home, for_sandbox)
        with FileLock(home / ".baton.lock", timeout=LOCK_SECONDS):
            _sweep(home)
            _write(home / "config.toml", tomlkit.dumps({**_SET, **_taken(config)}))
            for name in ("auth.json", ".env"):
                _link(home / name, person_home / name)
    except OSError as error:
        raise StateUnavailable(f"the workers' Codex home {home} cannot be written: {error}") from error
    system_rules = allow_rules(Path("/etc/codex"))
    return WorkerHome(
        path=home,
        login=login,
        allow_rules_apply=bool(system_rules),
        why=_why_rules(system_rules)
        or (f"no login was found in {person_home}" if login is Login.NONE else None),
        environment={"CODEX_HOME": str(home), "TMPDIR": str(temporary)},
        sandbox_environment=for_sandbox,
        env_names=_env_names(config),
        secrets=_secrets(person_home, home),
        left_out=config.left_out,
    )


def _login(config: PersonConfig, person_home: Path, env: Mapping[str, str]) -> Login:
    if not config.uses_openai_login:
        return Login.PROVIDER
    if any(env.get(name) for name in OPENAI_VARIABLES[:2]):
        return Login.ENVIRONMENT
    store = config.top.get("cli_auth_credentials_store", "file")
    if store in ("file", "auto") and is_there(person_home / "auth.json"):
        return Login.FILE
    return Login.KEYRING if store in ("keyring", "auto") else Login.NONE


def _person_home(config: PersonConfig, person_home: Path, for_sandbox: Mapping[str, str]) -> WorkerHome:
    rules = (*allow_rules(person_home), *allow_rules(Path("/etc/codex")))
    why = "the login is in the keyring, bound to the person's Codex home, so workers use that home"
    return WorkerHome(
        path=person_home,
        login=Login.KEYRING,
        allow_rules_apply=bool(rules),
        why=f"{why}; {_why_rules(rules)}" if rules else why,
        environment={"CODEX_HOME": str(person_home)},
        sandbox_environment=for_sandbox,
        env_names=_env_names(config),
        secrets=_secrets(person_home),
        foreign_servers=config.mcp_servers,
    )


def _secrets(person_home: Path, *others: Path) -> tuple[Path, ...]:
    """Both homes, and where the person's login and keys really lie when they are links to elsewhere."""
    files = (person_home / name for name in ("auth.json", ".env", "config.toml"))
    real = [Path(os.path.realpath(path)) for path in (person_home, *others, *files)]
    homes = real[: 1 + len(others)]
    linked = [
        path for path in real[len(homes) :] if not any(map(path.is_relative_to, homes)) and is_there(path)
    ]
    return tuple(dict.fromkeys((*homes, *linked)))


def _why_rules(rules: tuple[Path, ...]) -> str | None:
    if not rules:
        return None
    return f"rules in {', '.join(map(str, rules))} may let commands run outside the sandbox"


def _env_names(config: PersonConfig) -> tuple[str, ...]:
    table = config.provider_table or {}
    headers = table.get("env_http_headers")
    named = [table.get("env_key"), *(headers.values() if isinstance(headers, dict) else ())]
    own = OPENAI_VARIABLES if config.uses_openai_login else ()
    return tuple(dict.fromkeys([*own, *(name for name in named if isinstance(name, str) and name)]))


def _taken(config: PersonConfig) -> dict[str, object]:
    taken: dict[str, object] = dict(config.top)
    # The worker's home has no keyring entry of its own; its login is the linked file.
    taken["cli_auth_credentials_store"] = "file"
    taken["features"] = {**dict.fromkeys(FEATURES_OFF, False), **config.features}
    if config.provider is not None and config.provider_table is not None:
        taken["model_providers"] = {config.provider: dict(config.provider_table)}
    return taken


def _sweep(home: Path) -> None:
    for name in _NEVER:
        path = home / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Replace a file atomically, unless it already holds this text and is readable by its owner alone."""
    data = text.encode()
    try:
        if path.read_bytes() == data and not path.is_symlink():
            return
    except OSError:
        pass
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".baton-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    Path(name).replace(path)


def _link(path: Path, target: Path) -> None:
    """Make `path` a link to `target`, or remove it when there is no such file."""
    if not is_there(target):
        path.unlink(missing_ok=True)
        return
    if path.is_symlink() and path.readlink() == target:
        return
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".baton-") as folder:
        fresh = Path(folder, path.name)
        fresh.symlink_to(target)
        fresh.replace(path)
