"""What a child may see of the environment: allow-lists, because secrets do not follow naming rules.

Pure functions over a mapping, usually `os.environ`. No value is ever logged or put into a message. A name
that a person adds may end in `*` and then stands for every variable that starts so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

WORKER_MARKER = "BATON_WORKER"
"""Set to 1 in every child: a server of ours that finds it is inside a worker and registers no tools."""

RUN_MARKER = "BATON_RUN"
"""The run a child belongs to: how the next start finds what a dead runner left."""

SYSTEM = ("PATH", "LANG", "LC_*", "TERM", "TZ", "USER", "LOGNAME", "SHELL")
"""What any program needs to behave as it does for the person."""

LOOKS = ("COLORTERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI")

BUILD = (
    *("GIT_AUTHOR_*", "GIT_COMMITTER_*", "SOURCE_DATE_EPOCH"),
    *("CC", "CXX", "AR", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS"),
    *("CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH"),
    *("SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET"),
)
"""What builds read besides: identity of commits, compilers and where their libraries are."""

REACH = (
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"),
    *("http_proxy", "https_proxy", "no_proxy", "all_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    "CODEX_CA_CERTIFICATE",
)
"""How a program of ours reaches the network: proxies and certificate authorities."""

HOMES = ("HOME", "TMPDIR", "XDG_RUNTIME_DIR")


def worker_environment(
    base: Mapping[str, str],
    extra_names: Iterable[str] = (),
    *,
    home: Path | None = None,
    tmpdir: Path | None = None,
    run_id: str | None = None,
) -> dict[str, str]:
    """What a worker's commands see: the system's variables, a home and temp folder of their own, markers.

    Neither proxies nor keys: a worker has no network unless the person's policy opens it. Without `home`
    there is no HOME at all.
    """
    kept = pick(base, (*SYSTEM, *LOOKS, *BUILD, *extra_names))
    return _with_own(kept, home, tmpdir, run_id)


def check_environment(
    base: Mapping[str, str],
    extra_names: Iterable[str] = (),
    *,
    home: Path,
    tmpdir: Path,
    run_id: str | None = None,
) -> dict[str, str]:
    """What a verification command sees; toolchain variables are the caller's to add."""
    kept = pick(base, (*SYSTEM, *LOOKS, *BUILD, *extra_names))
    return _with_own(kept, home, tmpdir, run_id)


def tool_environment(
    base: Mapping[str, str], extra_names: Iterable[str] = (), *, run_id: str | None = None
) -> dict[str, str]:
    """What programs that work for Baton itself see (git, codex): the person's home, proxies and authorities.

    Every `GIT_*` variable is left out, so that none can redirect evidence.
    """
    kept = pick(base, (*SYSTEM, *HOMES, *REACH, *extra_names))
    return _marked({name: value for name, value in kept.items() if not name.startswith("GIT_")}, run_id)


def pick(base: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Those variables of `base` that `names` lists; a trailing `*` lists every one that starts so.

    A bare `*` is taken as a name, never as everything.
    """
    listed = list(names)
    exact = {name for name in listed if not name.endswith("*") or name == "*"}
    starts = tuple(name[:-1] for name in listed if name.endswith("*") and name != "*")
    return {
        name: value for name, value in base.items() if name in exact or (starts and name.startswith(starts))
    }


def _with_own(
    kept: dict[str, str], home: Path | None, tmpdir: Path | None, run_id: str | None
) -> dict[str, str]:
    # The person's own are never handed on, even when their names were added: that is where secrets lie.
    for name in HOMES:
        kept.pop(name, None)
    if home is not None:
        kept["HOME"] = str(home)
    if tmpdir is not None:
        kept["TMPDIR"] = str(tmpdir)
    return _marked(kept, run_id)


def _marked(kept: dict[str, str], run_id: str | None) -> dict[str, str]:
    kept[WORKER_MARKER] = "1"
    if run_id is not None:
        kept[RUN_MARKER] = run_id
    return kept
