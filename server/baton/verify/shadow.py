"""Fills a tool's own folder with links to the person's, for tools that write where they read.

What is linked is read-only to the check; what the tool adds lands beside the links. Only what the tool needs
is linked: credentials are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from baton.process.there import is_file, is_folder, is_there

GRADLE_OFFLINE = "gradle.startParameter.offline = true\n"


def shadow_cargo(theirs: Path, own: Path) -> None:
    """Registry and git sources as links, crate by crate where cargo may still unpack one; settings too."""
    _link(theirs, own, "config.toml", "config", "bin", "env")
    for folder in ("registry/index", "registry/cache", "git/db"):
        _link(theirs, own, folder)
    # A crate that the person downloaded but never built is unpacked here, beside the linked ones.
    for folder in ("registry/src", "git/checkouts"):
        for source in _folders(theirs / folder):
            for unpacked in _folders(source):
                _link(theirs, own, str(unpacked.relative_to(theirs)))


def shadow_gradle(theirs: Path, own: Path) -> None:
    """Wrapper distributions and settings as links, offline by an init script; the cache is read in place."""
    _link(theirs, own, "gradle.properties", "jdks")
    for distribution in _folders(theirs / "wrapper" / "dists"):
        for build in _folders(distribution):
            # The wrapper locks a file in this very folder before it looks at what is there.
            for part in _children(build):
                if part.suffix not in (".lck", ".part"):
                    _link(theirs, own, str(part.relative_to(theirs)))
    init = own / "init.d"
    init.mkdir(mode=0o700, exist_ok=True)
    (init / "offline.gradle").write_text(GRADLE_OFFLINE, encoding="ascii")
    for script in _files(theirs / "init.d"):
        _link(theirs, own, str(script.relative_to(theirs)))


def shadow_npm(theirs: Path, own: Path) -> None:
    """The content cache as a link; logs and notices are written beside it."""
    _link(theirs, own, "_cacache")


def _link(theirs: Path, own: Path, *names: str) -> None:
    for name in names:
        target, link = theirs / name, own / name
        if not is_there(target) or link.is_symlink():
            continue
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.symlink_to(target)


def _folders(parent: Path) -> Iterator[Path]:
    return (child for child in _children(parent) if is_folder(child))


def _files(parent: Path) -> Iterator[Path]:
    return (child for child in _children(parent) if is_file(child))


def _children(parent: Path) -> list[Path]:
    """What lies in a folder of the person's; nothing where it cannot be read, as another user's."""
    try:
        return sorted(parent.iterdir())
    except OSError:
        return []
