"""Makes a private repository, whole or not at all, and keeps it in step with the one it borrows from."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from baton.contract.errors import StateUnavailable
from baton.workspace.git import Git
from baton.workspace.locate import Site
from baton.workspace.store import quoted_path

_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding -export-subst -export-ignore\n"

_CONFIG = """\
[core]
\tbare = true
\tfileMode = true
\tsymlinks = true
\tignoreCase = false
\tprecomposeUnicode = false
\tprotectNTFS = false
\tautocrlf = false
\tsafecrlf = false
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tlogAllRefUpdates = false
\tquotePath = false
\tfsync = committed,loose-object
\tfsyncMethod = batch
[gc]
\tauto = 0
[maintenance]
\tauto = false
[checkout]
\tworkers = 0
\tthresholdForParallelism = 100
[diff]
\tignoreSubmodules = all
[merge]
\tdirectoryRenames = false
\tconflictStyle = merge
"""


MOUNT_POINTS = (".git", ".agents", ".codex", ".aws")
"""What Codex's sandbox keeps read-only in every writable folder. Where one is missing, each command makes it
and takes it away again; commands of several workers at once would take it from each other and not start."""


def create(git: Git, site: Site, path: Path) -> None:
    """Make the bare repository when it is not there yet, whole or not at all, and bring it up to date."""
    if not (path / "HEAD").exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        try:
            _initialise(git, site, made)
            made.rename(path)
        except OSError as error:
            if not (path / "HEAD").exists():  # otherwise another process was quicker
                raise StateUnavailable(f"cannot make {path}: {error.strerror}") from None
        finally:
            shutil.rmtree(made, ignore_errors=True)
    for name in MOUNT_POINTS:
        (path.parent / name).mkdir(mode=0o700, exist_ok=True)
    _refresh(site, path)


def _initialise(git: Git, site: Site, path: Path) -> None:
    git.own(["init", "-q", "--bare", "--template=", f"--object-format={site.object_format}"], git_dir=path)
    config = path / "config"
    config.write_text(config.read_text() + _CONFIG)
    (path / "info").mkdir(exist_ok=True)
    (path / "info" / "attributes").write_text(_ATTRIBUTES)
    for folder in ("store/pack", "store/info", "absent", "indexes"):
        (path / folder).mkdir(parents=True)


def _refresh(site: Site, path: Path) -> None:
    alternates = [quoted_path(path / "store")]
    if site.common_dir is not None:
        alternates.append(quoted_path(site.common_dir / "objects"))
    (path / "objects" / "info").mkdir(parents=True, exist_ok=True)
    _write(path / "objects" / "info" / "alternates", "\n".join(alternates).encode() + b"\n")
    _write(path / "root", os.fsencode(site.root) + b"\n")
    rules = b"\n".join(_read(file) for file in site.exclude_files)
    _write(path / "info" / "exclude", rules)
    shallow = _read(site.common_dir / "shallow") if site.common_dir is not None else b""
    if shallow or (path / "shallow").exists():
        _write(path / "shallow", shallow)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _write(path: Path, data: bytes) -> None:
    """Replace a file in one step, only when it differs."""
    if path.exists() and path.read_bytes() == data:
        return
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(name).replace(path)
