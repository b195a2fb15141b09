"""No test sees a real home: every one gets its own HOME, Codex home and state folder."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_codex import real_codex

_REAL_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

# Here and not in a hook: the conftest files below this one load the package before any hook is called. What
# is compiled, and Hypothesis's notes, stay out of the checkout, since Codex copies all of it as a plugin.
if sys.pycache_prefix is None:
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(_REAL_CACHE / "baton" / "hypothesis"))

# Whoever started the tests may be deaf to these (nohup, a background job), and everything below inherits it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _deaf in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_deaf) is signal.SIG_IGN:
        signal.signal(_deaf, signal.SIG_DFL)

_SCRUBBED = ("BATON_", "CODEX_", "GIT_", "XDG_", "OPENAI_")


@pytest.fixture(scope="session")
def codex_binary() -> Path:
    """The real Codex; a missing one is a failure, never a skip."""
    return real_codex()


@pytest.fixture
def test_root() -> Iterator[Path]:
    """A throw-away folder outside the system's temporary one, where Codex will not keep a home."""
    parent = _REAL_CACHE / "baton" / "tests"
    parent.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(dir=parent, prefix="t-"))
    yield root
    _remove(root)


@pytest.fixture(autouse=True)
def own_home(test_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point HOME, CODEX_HOME and BATON_STATE into the test's own folder; returns the home."""
    codex = os.environ.get("BATON_TEST_CODEX")
    for name in list(os.environ):
        if name.startswith(_SCRUBBED):
            monkeypatch.delenv(name)
    if codex is not None:
        monkeypatch.setenv("BATON_TEST_CODEX", codex)
    home = test_root / "home"
    (home / ".codex").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    monkeypatch.setenv("BATON_STATE", str(test_root / "state"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Test Author")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "author@example.invalid")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "Test Author")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "author@example.invalid")
    return home


def _remove(root: Path) -> None:
    """Remove a tree even where a test left folders without write permission."""
    for folder, _, _ in os.walk(root):
        Path(folder).chmod(0o700)
    shutil.rmtree(root)
