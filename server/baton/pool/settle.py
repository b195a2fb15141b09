"""From policy, earlier configuration files and flags to the settings of one pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from baton.contract.errors import InvalidInput
from baton.policy.layer import LayerName, Origin, read_own_layer, read_project_layer
from baton.policy.load import LayeredPolicy, load_layers
from baton.policy.model import Policy
from baton.policy.narrowing import shown
from baton.policy.pool_rules import PoolRules
from baton.pool.earlier import Earlier, ModeName, read_earlier
from baton.pool.project import EARLIER_FILE, find_project
from baton.pool.settings import BackendName, PoolSettings


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line says; None where it says nothing."""

    config: Path | None = None
    run_dir: Path | None = None
    project: Path | None = None
    mode: ModeName | None = None
    concurrency: int | None = None
    write_concurrency: int | None = None
    allow_disjoint_parallel_writers: bool = False
    timeout_seconds: float | None = None
    total_seconds: float | None = None
    retries: int | None = None
    backoff_seconds: float | None = None
    backend: BackendName | None = None
    token_budget: int | None = None

    def shown(self) -> dict[str, JsonValue]:
        """What is said, as JSON; `recorded_flags` reads it again."""
        # By identity: no retries and no backoff are said too.
        said = {name: value for name, value in vars(self).items() if value is not None and value is not False}
        return {name: str(value) if isinstance(value, Path) else value for name, value in said.items()}


def recorded_flags(shown: Mapping[str, JsonValue]) -> Flags:
    """Flags as a pool's record keeps them. Raises `InvalidInput` for what this version does not know."""
    try:
        return TypeAdapter(Flags).validate_python(dict(shown))
    except ValidationError:
        raise InvalidInput("the pool was run by another version; run its job file again instead") from None


def arguments(shown: Mapping[str, JsonValue]) -> list[str]:
    """Recorded flags as a person would type them."""
    typed: list[str] = []
    for name, value in shown.items():
        option = "--" + name.removesuffix("_seconds").replace("_", "-")
        typed += (
            [option] if value is True else [option, f"{value:g}" if isinstance(value, float) else str(value)]
        )
    return typed


@dataclass(frozen=True)
class Settled:
    """The settings of one pool, and the policy that the rest is read from."""

    settings: PoolSettings
    policy: Policy


@dataclass(frozen=True)
class _State:
    """The values so far, each layer laid over the one before."""

    rules: PoolRules
    concurrency: int
    chosen: bool
    """The person has chosen a mode or a number, which a project may then only lower."""
    run_root: Path


def settle(jobs_file: Path, flags: Flags, codex_home: Path, folder: Path, home: Path) -> Settled:
    """The settings for a job file, started in `folder` by the owner of `home`.

    Weakest first: the shipped policy, the person's, their `orchestration.toml`, the project's, the file of
    `--config`, the flags. A project's files may only narrow. Raises `InvalidInput`, one line.
    """
    project = flags.project.resolve() if flags.project else find_project(folder, home)
    trusted, layered = load_layers(codex_home, None), load_layers(codex_home, project)
    rules = trusted.policy.pool
    chosen = any(
        trusted.origin(f"pool.{key}").layer is not LayerName.SHIPPED
        for key in ("mode", f"modes.{rules.mode}")
    )
    state = _State(rules, _at_once(rules, rules.mode), chosen, project / Path(rules.run_root).expanduser())
    sources = [str(origin.file) for origin in _policy_files(layered)]
    notes: list[str] = []
    own = read_own_layer(LayerName.PERSON, codex_home / EARLIER_FILE)
    if own is not None:
        state = _lay_over(state, read_earlier(own), project)
        sources.append(str(own.origin.file))
    state = _narrowed(state, trusted.policy.pool, layered.policy.pool)
    foreign = read_project_layer(project, Path(".codex") / EARLIER_FILE)
    if foreign is not None:
        earlier = read_earlier(foreign)
        wrong = list(_widening(state, earlier, project, flags))
        if wrong:
            raise InvalidInput(f"{foreign.origin.file}: " + "; ".join(wrong))
        if earlier.runner.backend in ("exec", "codex-exec") and state.rules.backend != "exec":
            notes.append(
                f"{foreign.origin.file}: runner.backend is passed over: a project may not give up attested"
                " routes; --backend exec does"
            )
        state = _lay_over(state, _without_backend(earlier), project)
        writers = min(state.rules.write_concurrency, state.concurrency)
        state = replace(state, rules=state.rules.model_copy(update={"write_concurrency": writers}))
        sources.append(str(foreign.origin.file))
    if flags.config is not None:
        named = read_own_layer(LayerName.PERSON, (folder / flags.config.expanduser()).absolute())
        if named is None:
            raise InvalidInput(f"--config {flags.config}: no such file")
        state = _lay_over(state, read_earlier(named), project)
        sources.append(str(named.origin.file))
    state = _with_flags(state, flags)
    return Settled(
        _settings(state, flags, layered.policy, jobs_file, folder, project, sources, notes), layered.policy
    )


def _policy_files(layered: LayeredPolicy) -> list[Origin]:
    return list(dict.fromkeys(layered.origins.values()))


def _lay_over(state: _State, earlier: Earlier, project: Path) -> _State:
    """The values with those of one earlier file over them."""
    wanted = {
        "retries": earlier.pool.max_retries,
        "timeout_seconds": earlier.pool.job_timeout_seconds,
        "backoff_seconds": earlier.pool.retry_backoff_seconds,
        "write_concurrency": earlier.writes.max_write_concurrency,
        "allow_disjoint_parallel_writers": earlier.writes.allow_disjoint_parallel_writers,
        "backend": {"codex-exec": "exec"}.get(earlier.runner.backend or "", earlier.runner.backend),
    }
    rules = state.rules.model_copy(update={key: value for key, value in wanted.items() if value is not None})
    root = earlier.runner.run_root
    return _State(
        rules=rules,
        # A mode named later stands for its number; a number beside it is more exact.
        concurrency=_asked(earlier, state.rules) or state.concurrency,
        chosen=state.chosen or _asked(earlier, state.rules) is not None,
        run_root=project / Path(root).expanduser() if root else state.run_root,
    )


def _asked(earlier: Earlier, rules: PoolRules) -> int | None:
    """How many jobs at once a file asks for; None when it does not say."""
    if earlier.pool.concurrency is not None:
        return earlier.pool.concurrency
    return _at_once(rules, earlier.mode) if earlier.mode is not None else None


def _at_once(rules: PoolRules, mode: ModeName) -> int:
    by_mode = {
        "conservative": rules.modes.conservative,
        "balanced": rules.modes.balanced,
        "large": rules.modes.large,
    }
    return by_mode[mode]


def _narrowed(state: _State, trusted: PoolRules, with_project: PoolRules) -> _State:
    """The values with what the project's policy narrows, where that is still stricter."""
    if with_project == trusted:
        return state
    stricter: dict[str, object] = {}
    for key in ("write_concurrency", "timeout_seconds", "total_seconds", "retries", "pause_seconds"):
        stricter[key] = min(getattr(state.rules, key), getattr(with_project, key))
    stricter["breaker_failures"] = min(state.rules.breaker_failures, with_project.breaker_failures)
    stricter["backoff_seconds"] = max(state.rules.backoff_seconds, with_project.backoff_seconds)
    stricter["allow_disjoint_parallel_writers"] = (
        state.rules.allow_disjoint_parallel_writers and with_project.allow_disjoint_parallel_writers
    )
    if "app-server" in (with_project.backend, state.rules.backend):
        stricter["backend"] = "app-server"
    at_most = _at_once(with_project, with_project.mode)
    narrower = state.concurrency > at_most
    return replace(
        state,
        rules=state.rules.model_copy(update=stricter),
        concurrency=at_most if narrower else state.concurrency,
        chosen=state.chosen or narrower,
    )


def _widening(state: _State, wanted: Earlier, project: Path, flags: Flags) -> Iterator[str]:
    """What a project's file asks for beyond what the person allows, each in a few words."""
    rules = state.rules
    asked = _asked(wanted, rules)
    most = state.concurrency if state.chosen else max(rules.modes.large, state.concurrency)
    if asked is not None and asked > most:
        key, value = ("mode", wanted.mode) if wanted.pool.concurrency is None else ("pool.concurrency", asked)
        yield _refused(key, value, f"at most {most} at once")
    limits = (
        ("pool.max_retries", wanted.pool.max_retries, rules.retries),
        ("pool.job_timeout_seconds", wanted.pool.job_timeout_seconds, rules.timeout_seconds),
    )
    for key, asked, limit in limits:
        if asked is not None and asked > limit:
            yield _refused(key, asked, f"at most {shown(limit)}")
    backoff = wanted.pool.retry_backoff_seconds
    if backoff is not None and backoff < rules.backoff_seconds:
        yield _refused("pool.retry_backoff_seconds", backoff, f"at least {shown(rules.backoff_seconds)}")
    allowed = rules.allow_disjoint_parallel_writers or flags.allow_disjoint_parallel_writers
    if wanted.writes.allow_disjoint_parallel_writers and not allowed:
        yield _refused(
            "writes.allow_disjoint_parallel_writers",
            True,
            "false; parallel writers are the person's choice: --allow-disjoint-parallel-writers",
        )
    writers = wanted.writes.max_write_concurrency
    if writers is not None and writers > rules.write_concurrency and not allowed:
        yield _refused("writes.max_write_concurrency", writers, f"at most {rules.write_concurrency}")
    root = wanted.runner.run_root
    if root is not None and not (project / Path(root).expanduser()).resolve().is_relative_to(project):
        yield _refused("runner.run_root", root, "a folder inside the project")


def _refused(key: str, wanted: object, allowed: str) -> str:
    return f"{key}: a project may not set {shown(wanted)}; allowed: {allowed}"


def _without_backend(earlier: Earlier) -> Earlier:
    """A project's file without the back end that every earlier file names, unless it names the strict one."""
    if earlier.runner.backend == "app-server":
        return earlier
    return earlier.model_copy(update={"runner": earlier.runner.model_copy(update={"backend": None})})


def _with_flags(state: _State, flags: Flags) -> _State:
    if (flags.write_concurrency or 1) > 1 and not flags.allow_disjoint_parallel_writers:
        raise InvalidInput(
            f"--write-concurrency {flags.write_concurrency}: more than one writer at once needs"
            " --allow-disjoint-parallel-writers as well"
        )
    wanted = {
        "write_concurrency": flags.write_concurrency,
        "allow_disjoint_parallel_writers": flags.allow_disjoint_parallel_writers or None,
        "timeout_seconds": flags.timeout_seconds,
        "total_seconds": flags.total_seconds,
        "retries": flags.retries,
        "backoff_seconds": flags.backoff_seconds,
        "backend": flags.backend,
        "token_budget": flags.token_budget,
    }
    rules = state.rules.model_copy(update={key: value for key, value in wanted.items() if value is not None})
    by_mode = _at_once(rules, flags.mode) if flags.mode else state.concurrency
    return replace(state, rules=rules, concurrency=flags.concurrency or by_mode)


def _settings(
    state: _State,
    flags: Flags,
    policy: Policy,
    jobs_file: Path,
    folder: Path,
    project: Path,
    sources: list[str],
    notes: list[str],
) -> PoolSettings:
    rules = state.rules
    writers, at_once = rules.write_concurrency, state.concurrency
    if writers > 1 and not rules.allow_disjoint_parallel_writers:
        raise InvalidInput(
            f"write concurrency {writers}: more than one writer at once needs"
            " allow_disjoint_parallel_writers = true, or --allow-disjoint-parallel-writers"
        )
    if writers > at_once:
        raise InvalidInput(f"write concurrency {writers} is above the concurrency {at_once}; lower it")
    run_dir = folder / flags.run_dir.expanduser() if flags.run_dir else state.run_root / jobs_file.stem
    given = flags.shown()
    return PoolSettings(
        project=project,
        run_dir=run_dir.resolve(),
        concurrency=at_once,
        write_concurrency=writers,
        allow_disjoint_parallel_writers=rules.allow_disjoint_parallel_writers,
        timeout_seconds=rules.timeout_seconds,
        start_seconds=policy.deadlines.start_seconds,
        idle_seconds=policy.deadlines.idle_seconds,
        total_seconds=rules.total_seconds,
        retries=rules.retries,
        backoff_seconds=rules.backoff_seconds,
        pause_seconds=rules.pause_seconds,
        breaker_failures=rules.breaker_failures,
        backend=rules.backend,
        token_budget=rules.token_budget or None,
        sources=(*dict.fromkeys(sources), *(["flags"] if given else [])),
        # Paths as they are now: the next command may be given in another folder.
        flags={
            **given,
            **({"config": str((folder / flags.config.expanduser()).absolute())} if flags.config else {}),
            **({"run_dir": str(run_dir.resolve())} if flags.run_dir else {}),
            "project": str(project),
        },
        notes=tuple(notes),
    )
