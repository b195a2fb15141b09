"""Where build tools find the person's caches and toolchains, although a check has a home of its own.

The table says for each tool which variables lead to the person's folders (read-only in the sandbox), which
need a folder of the check's own, and which settings make the tool work without a network. Variables are set
whatever the command is: `make test` may run any of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from baton.process.there import is_file, is_folder
from baton.verify.shadow import shadow_cargo, shadow_gradle, shadow_npm


@dataclass(frozen=True)
class Shared:
    """A variable that leads to the person's own folder when it exists: named by them, or the default."""

    variable: str
    default: str
    """Below the person's home."""


@dataclass(frozen=True)
class Own:
    """A variable that leads to a folder of the check's own: the tool insists on writing there."""

    variable: str
    name: str


@dataclass(frozen=True)
class Shadow:
    """A folder of the check's own, filled with links to the person's: written and read alike."""

    variable: str
    default: str
    fill: Callable[[Path, Path], None]


@dataclass(frozen=True)
class Tool:
    """One row of the table."""

    name: str
    folders: tuple[Shared | Own | Shadow, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    """Variables of the person's that are handed on as they are."""


TOOLS = (
    Tool("rustup", (Shared("RUSTUP_HOME", ".rustup"),), {"RUSTUP_AUTO_INSTALL": "0"}, ("RUSTUP_TOOLCHAIN",)),
    Tool("cargo", (Shadow("CARGO_HOME", ".cargo", shadow_cargo),), {"CARGO_NET_OFFLINE": "true"}),
    Tool(
        "go",
        (Shared("GOMODCACHE", "go/pkg/mod"), Own("GOCACHE", "go-build"), Own("GOPATH", "go")),
        {"GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off"},
        ("GOROOT", "GOFLAGS", "GOPRIVATE", "CGO_ENABLED"),
    ),
    Tool("java", kept=("JAVA_HOME", "JDK_HOME")),
    Tool("gradle", (Shadow("GRADLE_USER_HOME", ".gradle", shadow_gradle),)),
    Tool("android", (Own("ANDROID_USER_HOME", "android"),), kept=("ANDROID_HOME", "ANDROID_SDK_ROOT")),
    Tool("scala", (Shared("COURSIER_CACHE", ".cache/coursier/v1"),), {"COURSIER_MODE": "offline"}),
    Tool(
        "npm",
        (Shadow("npm_config_cache", ".npm", shadow_npm),),
        {
            "npm_config_offline": "true",
            "npm_config_update_notifier": "false",
            "npm_config_audit": "false",
            "npm_config_fund": "false",
        },
    ),
    Tool(
        "corepack",
        (Shared("COREPACK_HOME", ".cache/node/corepack"),),
        {"COREPACK_ENABLE_NETWORK": "0", "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0"},
    ),
    Tool("pnpm", (Shared("npm_config_store_dir", ".local/share/pnpm/store"),)),
    Tool(
        "yarn",
        (Shared("YARN_CACHE_FOLDER", ".cache/yarn"),),
        {"YARN_ENABLE_NETWORK": "0", "YARN_ENABLE_TELEMETRY": "0"},
    ),
    Tool("bun", (Shared("BUN_INSTALL_CACHE_DIR", ".bun/install/cache"),), {"DO_NOT_TRACK": "1"}),
    Tool("deno", (Shared("DENO_DIR", ".cache/deno"),), {"DENO_NO_UPDATE_CHECK": "1"}),
    Tool("node versions", (Shared("VOLTA_HOME", ".volta"), Shared("NVM_DIR", ".nvm"))),
    Tool("browsers", (Shared("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"),)),
    Tool(
        "pip",
        (Shared("PIP_CACHE_DIR", ".cache/pip"),),
        {"PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    ),
    Tool("python versions", (Shared("PYENV_ROOT", ".pyenv"),), kept=("PYENV_VERSION",)),
    Tool(
        "uv",
        # Its cache is locked and written even when everything is there; a linked environment needs none.
        (Own("UV_CACHE_DIR", "uv"), Shared("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python")),
        {"UV_OFFLINE": "1", "UV_NO_SYNC": "1", "UV_PYTHON_DOWNLOADS": "never"},
    ),
    Tool(
        "poetry",
        (Own("POETRY_CACHE_DIR", "poetry"), Shared("POETRY_VIRTUALENVS_PATH", ".cache/pypoetry/virtualenvs")),
        {"POETRY_VIRTUALENVS_CREATE": "false", "POETRY_NO_INTERACTION": "1"},
    ),
    Tool("hatch", (Shared("HATCH_DATA_DIR", ".local/share/hatch"), Own("HATCH_CACHE_DIR", "hatch"))),
    Tool("mypy", (Own("MYPY_CACHE_DIR", "mypy"),)),
    Tool(
        "ruby",
        (Shared("RBENV_ROOT", ".rbenv"), Own("BUNDLE_USER_HOME", "bundle"), Own("GEM_SPEC_CACHE", "gem")),
        {"BUNDLE_FROZEN": "true", "BUNDLE_DISABLE_VERSION_CHECK": "true"},
        ("BUNDLE_PATH", "GEM_HOME", "GEM_PATH"),
    ),
    Tool(
        "dotnet",
        (Shared("NUGET_PACKAGES", ".nuget/packages"), Own("DOTNET_CLI_HOME", "dotnet")),
        {"DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1", "MSBUILDDISABLENODEREUSE": "1"},
        ("DOTNET_ROOT",),
    ),
    Tool(
        "composer",
        (Shared("COMPOSER_CACHE_DIR", ".cache/composer"), Own("COMPOSER_HOME", "composer")),
        {"COMPOSER_DISABLE_NETWORK": "1"},
    ),
    Tool("elixir", (Shared("MIX_HOME", ".mix"), Shared("HEX_HOME", ".hex")), {"HEX_OFFLINE": "1"}),
    Tool("zig", (Own("ZIG_GLOBAL_CACHE_DIR", "zig"),)),
    Tool(
        "version managers", (Shared("ASDF_DATA_DIR", ".asdf"), Shared("MISE_DATA_DIR", ".local/share/mise"))
    ),
)
"""The table. Defaults are where the tools keep things on Linux."""

_PROGRAM_FOLDERS = (".venv/bin", "venv/bin", "node_modules/.bin", "vendor/bin")
"""Of the worktree, first on PATH."""


@dataclass(frozen=True)
class Toolchain:
    """What a check's process gets besides its allow-listed environment."""

    variables: Mapping[str, str]
    path: str
    """The value of PATH."""


def toolchain(
    base: Mapping[str, str],
    *,
    scratch: Path,
    cwd: Path,
    worktree: Path,
    workspace_root: Path | None = None,
) -> Toolchain:
    """Variables and PATH for checks in `cwd` of `worktree`; folders of their own are made below `scratch`.

    `base` is the person's environment. Entries of their PATH that lie in their own tree (`workspace_root`, an
    activated environment for instance) are turned into the worktree's.
    """
    home = Path(base.get("HOME") or "/nonexistent")
    variables: dict[str, str] = {}
    for tool in TOOLS:
        variables.update(tool.settings)
        variables.update({name: base[name] for name in tool.kept if name in base})
        for place in tool.folders:
            variables.update(_folder(place, base, home, scratch))
    variables.update(_maven(base, home, scratch))
    variables.update(_gradle(base, home))
    return Toolchain(variables, _path(base, cwd, worktree, workspace_root))


def _folder(
    place: Shared | Own | Shadow, base: Mapping[str, str], home: Path, scratch: Path
) -> dict[str, str]:
    if isinstance(place, Own):
        own = scratch / place.name
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {place.variable: str(own)}
    theirs = Path(base.get(place.variable) or home / place.default)
    if not is_folder(theirs):
        return {}
    if isinstance(place, Shared):
        return {place.variable: str(theirs)}
    shadow = scratch / place.default.lstrip(".")
    shadow.mkdir(mode=0o700, parents=True, exist_ok=True)
    place.fill(theirs, shadow)
    return {place.variable: str(shadow)}


def _maven(base: Mapping[str, str], home: Path, scratch: Path) -> dict[str, str]:
    """Maven takes its folders from Java's idea of the home, which is the account's, not the variable's."""
    local = home / ".m2"
    options = [f"-Duser.home={scratch / 'maven'}"]
    (scratch / "maven" / ".m2").mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("settings.xml", "settings-security.xml", "toolchains.xml"):
        link = scratch / "maven" / ".m2" / name
        if is_file(local / name) and not link.is_symlink():
            link.symlink_to(local / name)
    if is_folder(local / "repository"):
        options.append(f"-Dmaven.repo.local={local / 'repository'}")
    given = base.get("MAVEN_OPTS")
    return {"MAVEN_OPTS": " ".join([*([given] if given else []), *options]), "MAVEN_ARGS": "--offline"}


def _gradle(base: Mapping[str, str], home: Path) -> dict[str, str]:
    """Gradle reads another's dependency cache in place; its daemon would outlive the check."""
    theirs = Path(base.get("GRADLE_USER_HOME") or home / ".gradle") / "caches"
    given = base.get("GRADLE_OPTS")
    variables = {"GRADLE_OPTS": " ".join([*([given] if given else []), "-Dorg.gradle.daemon=false"])}
    return variables | ({"GRADLE_RO_DEP_CACHE": str(theirs)} if is_folder(theirs) else {})


def _path(base: Mapping[str, str], cwd: Path, worktree: Path, theirs: Path | None) -> str:
    folders = [root / name for root in dict.fromkeys((cwd, worktree)) for name in _PROGRAM_FOLDERS]
    present = [str(folder) for folder in folders if is_folder(folder)]
    for entry in base.get("PATH", os.defpath).split(os.pathsep):
        folder = Path(entry)
        if not folder.is_absolute():
            continue
        if theirs is not None and folder.is_relative_to(theirs):
            folder = worktree / folder.relative_to(theirs)
        present.append(str(folder))
    return os.pathsep.join(dict.fromkeys(present))
