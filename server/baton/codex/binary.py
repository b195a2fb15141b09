"""Finds the Codex program: the one that is named, or else the newest of those that are installed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from baton.codex.ask import ask
from baton.codex.version_cache import VersionCache
from baton.contract.errors import Unsupported
from baton.process.there import is_folder, is_there

MINIMUM = (0, 163, 0)
"""The oldest Codex whose permission profiles and app-server behave as this package needs."""

NAMED_BY = ("BATON_CODEX_BIN", "CODEX_BIN")
"""Variables that name the program; the first one set decides, whatever else is installed."""

INSTALL = "npm install -g @openai/codex"
"""The command that installs one."""

ANSWER_SECONDS = 15.0
"""How long `--version` may take; a node shim on a cold disk needs a few."""

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?")


@dataclass(frozen=True)
class CodexVersion:
    """A Codex version; a pre-release sorts before its release."""

    number: tuple[int, int, int]
    prerelease: str = ""

    @classmethod
    def read(cls, text: str) -> CodexVersion | None:
        """The first version in a text such as `codex-cli 0.171.0`, or None."""
        hit = _VERSION.search(text)
        if hit is None:
            return None
        return cls((int(hit[1]), int(hit[2]), int(hit[3])), hit[4] or "")

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, list[tuple[bool, int, str]]]:
        parts = re.split(r"[.-]", self.prerelease) if self.prerelease else []
        natural = [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
        return self.number, not self.prerelease, natural

    @property
    def supported(self) -> bool:
        return self.order >= CodexVersion(MINIMUM).order

    def __str__(self) -> str:
        number = ".".join(str(part) for part in self.number)
        return f"{number}-{self.prerelease}" if self.prerelease else number


@dataclass(frozen=True)
class CodexBinary:
    """A Codex program that answered `--version`.

    `path` is to be executed as it stands: some installations are one program that looks at the name by which
    it was called, so links are not resolved.
    """

    path: Path
    version: CodexVersion
    origin: str
    """Where it was found, for people: `PATH`, `this session`, `BATON_CODEX_BIN` …"""


def find_codex(
    env: Mapping[str, str], launcher: str | None = None, *, cache: Path | None = None
) -> CodexBinary:
    """The Codex program to use.

    A program named by `BATON_CODEX_BIN` or `CODEX_BIN` is used or refused, nothing else is looked at.
    Otherwise the newest of the session's launcher, PATH, `~/.local/bin`, the app bundles and the `codex`
    extra wins; of equal ones the first in that order. `cache` is a file that remembers the versions of native
    programs.

    Raises `Unsupported` with one line that names what was looked at.
    """
    versions = VersionCache(cache)
    for variable in NAMED_BY:
        if env.get(variable):
            return _named(variable, Path(env[variable]).expanduser(), env, versions)
    found: list[CodexBinary] = []
    looked_at: list[str] = []
    seen: set[str] = set()
    for origin, path in _candidates(env, launcher):
        real = os.path.realpath(path)
        if real in seen:
            continue
        seen.add(real)
        if not os.access(path, os.X_OK) or is_folder(path):
            looked_at.append(f"{path} (not there)")
            continue
        version = _version(path, env, versions)
        if version is None:
            looked_at.append(f"{path} (no answer to --version)")
        elif not version.supported:
            looked_at.append(f"{path} ({version}, too old)")
        else:
            found.append(CodexBinary(_native(path, version, env, versions), version, origin))
    if not found:
        minimum = CodexVersion(MINIMUM)
        raise Unsupported(
            f"no Codex {minimum} or newer found; looked at {', '.join(looked_at) or 'PATH (no codex)'};"
            f" install it ({INSTALL}) or name one in {NAMED_BY[0]}"
        )
    return max(found, key=lambda binary: binary.version.order)


def codex_remedy(env: Mapping[str, str]) -> str:
    """What to do where `find_codex` found none: a program that was named is never looked past."""
    for variable in NAMED_BY:
        if env.get(variable):
            return f"name another program in {variable}, or unset it"
    return INSTALL


def _named(variable: str, path: Path, env: Mapping[str, str], versions: VersionCache) -> CodexBinary:
    if not path.is_absolute():
        raise Unsupported(f"{variable} must be an absolute path, not {str(path)!r}")
    if not is_there(path):
        raise Unsupported(f"{variable} names {path}, which does not exist")
    if is_folder(path) or not os.access(path, os.X_OK):
        raise Unsupported(f"{variable} names {path}, which cannot be executed")
    version = _version(path, env, versions)
    if version is None:
        raise Unsupported(f"{variable} names {path}, which did not answer --version as Codex does")
    if not version.supported:
        raise Unsupported(f"{variable} names Codex {version}; {CodexVersion(MINIMUM)} or newer is needed")
    return CodexBinary(_native(path, version, env, versions), version, variable)


def _candidates(env: Mapping[str, str], launcher: str | None) -> Iterator[tuple[str, Path]]:
    if launcher:
        yield "this session", Path(launcher)
    for folder in env.get("PATH", "").split(os.pathsep):
        # A relative entry would let the folder one happens to be in decide which program runs.
        if Path(folder).is_absolute() and is_there(Path(folder, "codex")):
            yield "PATH", Path(folder, "codex")
    home = env.get("HOME")
    if home:
        yield "~/.local/bin", Path(home, ".local/bin/codex")
    if sys.platform == "darwin":
        for root in (Path("/Applications"), Path(home or "/", "Applications")):
            for app in ("Codex.app", "ChatGPT.app"):
                yield "app bundle", root / app / "Contents/Resources/codex"
    bundled = _bundled()
    if bundled is not None:
        yield "codex extra", bundled


def _bundled() -> Path | None:
    """The program of the PyPI package `openai-codex-cli-bin`, when it is installed beside us."""
    try:
        path = import_module("codex_cli_bin").bundled_codex_path()
    except (ImportError, AttributeError, OSError):
        return None
    return Path(path)


def _version(path: Path, env: Mapping[str, str], versions: VersionCache) -> CodexVersion | None:
    shim = _npm_package(path)
    if shim is not None:
        native = _native_of(shim)
        if native is not None:
            return _version(native, env, versions)
    known = versions.get(path)
    if known is not None:
        return CodexVersion.read(known)
    version = _ask(path, env)
    if version is not None and _is_native(path):
        # Only for programs that are the Codex itself: a version manager's shim stays the same file while the
        # version behind it changes.
        versions.put(path, str(version))
    return version


def _ask(path: Path, env: Mapping[str, str]) -> CodexVersion | None:
    text = ask(path, "--version", env, ANSWER_SECONDS)
    if text is None or "codex" not in text.lower():
        return None
    return CodexVersion.read(text)


def _native(path: Path, version: CodexVersion, env: Mapping[str, str], versions: VersionCache) -> Path:
    """The native program behind npm's node shim when it is the same version: it starts 100 ms sooner."""
    shim = _npm_package(path)
    native = _native_of(shim) if shim is not None else None
    if native is not None and _version(native, env, versions) == version:
        return native
    return path


def _npm_package(path: Path) -> Path | None:
    """The folder of the npm package `@openai/codex` when `path` leads to its node shim."""
    real = Path(os.path.realpath(path))
    if real.name == "codex.js" and real.parent.name == "bin" and real.parent.parent.name == "codex":
        return real.parent.parent
    return None


def _native_of(package: Path) -> Path | None:
    """The one native program that npm installed with the shim: beside it, below it, or inside it."""
    places = (
        package.parent.glob("codex-*/vendor/*/bin/codex"),
        package.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"),
        package.glob("vendor/*/bin/codex"),
    )
    for place in places:
        programs = [program for program in place if os.access(program, os.X_OK)]
        if len(programs) == 1:
            return programs[0]
    return None


def _is_native(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError:
        return False
    is_program = head == b"\x7fELF" or head in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
    return is_program and Path(os.path.realpath(path)).name.startswith("codex")
