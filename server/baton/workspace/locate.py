"""Finds out what a workspace is: a repository or a plain folder, where its top is, and what is unusual."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from baton.contract.errors import InvalidInput, Unsupported
from baton.workspace.git import Git, GitFailed


@dataclass(frozen=True)
class Site:
    """A workspace and the repository or plain folder it lies in. All paths are real paths."""

    workspace: Path
    root: Path
    """Top of the work tree, or the plain folder itself."""
    prefix: bytes
    """The workspace relative to the root: empty, or ending in a slash."""
    kind: Literal["git", "plain"]
    git_dir: Path | None = None
    common_dir: Path | None = None
    """The git directory that linked worktrees share; None for a plain folder."""
    head: str | None = None
    """HEAD's commit when located, None when unborn."""
    object_format: str = "sha1"
    shallow: bool = False
    partial: bool = False
    """Objects may be missing on purpose: a partial clone."""
    file_mode: bool = True
    """False when the repository says that executable bits on disk mean nothing."""
    exclude_files: tuple[Path, ...] = field(default=())
    """Ignore rules outside the work tree: the person's own and the repository's."""

    @property
    def key(self) -> str:
        """Name of the private repository: stands for the root's real path."""
        return hashlib.sha256(os.fsencode(self.root)).hexdigest()[:24]


def locate(workspace: Path, git: Git) -> Site:
    """Describe the workspace.

    Raises `InvalidInput` for what is no folder, or is `/` or a home without a repository, and
    `Unsupported` for a bare repository, the inside of a git directory, a repository that git does not
    trust because another user owns it, and a damaged one.
    """
    if not workspace.is_absolute():
        raise InvalidInput(f"workspace {workspace} must be an absolute path")
    try:
        real = workspace.resolve(strict=True)
    except ValueError:
        raise InvalidInput(f"workspace {str(workspace)!a} cannot be a path") from None
    except (OSError, RuntimeError):
        raise InvalidInput(f"workspace {workspace} does not exist") from None
    if not real.is_dir():
        raise InvalidInput(f"workspace {workspace} is not a folder")
    if not os.access(real, os.R_OK | os.X_OK):
        raise InvalidInput(f"workspace {workspace} cannot be read")
    kind = _describe_repository(real, git)
    if kind is None:
        _refuse_wide(real)
        return Site(workspace=real, root=real, prefix=b"", kind="plain")
    return _repository_site(real, git, kind)


def read_head(git: Git, root: Path) -> str | None:
    """The commit that HEAD names now, None when unborn."""
    found = git.theirs(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"], cwd=root, ok=(0, 1, 128))
    if found.exit_code == 0:
        return found.stdout.decode().strip()
    symbolic = git.theirs(["rev-parse", "--verify", "--quiet", "HEAD"], cwd=root, ok=(0, 1, 128))
    if symbolic.exit_code == 0:
        raise Unsupported(f"HEAD of {root} names {symbolic.stdout.decode().strip()}, which cannot be read")
    return None


def _describe_repository(workspace: Path, git: Git) -> list[bytes] | None:
    questions = [
        "--is-bare-repository",
        "--is-inside-git-dir",
        "--show-object-format",
        "--is-shallow-repository",
    ]
    answer = git.theirs(["rev-parse", *questions], cwd=workspace, ok=(0, 128))
    if answer.exit_code == 0:
        return answer.stdout.split()
    said = answer.stderr.decode("utf-8", "replace")
    if "dubious ownership" in said:
        raise Unsupported(
            f"the repository at {workspace} belongs to another user and git does not trust it; "
            f"if you do: git config --global --add safe.directory <its top folder>"
        )
    if "not a git repository" in said and not _has_git_entry(workspace):
        return None
    first = next((line for line in said.splitlines() if line.strip()), "no reason given")
    raise Unsupported(f"git cannot use the repository at {workspace}: {first}")


def _has_git_entry(workspace: Path) -> bool:
    # A broken repository must not be taken for a plain folder: its history would be ignored in silence.
    # An empty folder of that name is what some sandboxes leave behind.
    entry = workspace / ".git"
    if entry.is_dir() and not entry.is_symlink():
        return any(entry.iterdir())
    return os.path.lexists(entry)


def _repository_site(workspace: Path, git: Git, facts: list[bytes]) -> Site:
    bare, inside, object_format, shallow = facts
    if bare == b"true":
        raise Unsupported(f"{workspace} is a bare repository; give a work tree of it")
    if inside == b"true":
        raise Unsupported(f"{workspace} lies inside a git directory; give the work tree")
    root = _path(git, workspace, "--show-toplevel").resolve()
    if not workspace.is_relative_to(root):
        raise Unsupported(f"{workspace} is not in the work tree of its repository, which is {root}")
    settings = _settings(git, root)
    common = _path(git, workspace, "--git-common-dir").resolve()
    relative = os.fsencode(workspace.relative_to(root))
    return Site(
        workspace=workspace,
        root=root,
        prefix=b"" if relative == b"." else relative + b"/",
        kind="git",
        git_dir=_path(git, workspace, "--git-dir").resolve(),
        common_dir=common,
        head=read_head(git, root),
        object_format=object_format.decode(),
        shallow=shallow == b"true",
        partial=_is_partial(settings),
        file_mode=settings.get("core.filemode", "true").lower() not in ("false", "no", "off", "0"),
        exclude_files=_exclude_files(settings, git, common),
    )


def _path(git: Git, cwd: Path, question: str) -> Path:
    try:
        answer = git.theirs(["rev-parse", "--path-format=absolute", question], cwd=cwd).stdout
    except GitFailed as error:
        raise Unsupported(f"git cannot use the repository at {cwd}: {error.message}") from None
    # One question at a time, because the answer itself may hold a line feed.
    return Path(os.fsdecode(answer.removesuffix(b"\n")))


def _settings(git: Git, root: Path) -> dict[str, str]:
    wanted = r"^(core\.(filemode|excludesfile)|extensions\.partialclone|remote\..*\.promisor)$"
    listed = git.theirs(["config", "-z", "--get-regexp", wanted], cwd=root, ok=(0, 1)).stdout
    settings = {}
    for item in listed.decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = item.partition("\n")
        if name:
            settings[name] = value
    return settings


def _is_partial(settings: dict[str, str]) -> bool:
    return any(
        name == "extensions.partialclone" or (name.endswith(".promisor") and value.lower() != "false")
        for name, value in settings.items()
    )


def _exclude_files(settings: dict[str, str], git: Git, common: Path) -> tuple[Path, ...]:
    named = settings.get("core.excludesfile")
    if named is not None:
        own = Path(named).expanduser() if named else None
    else:
        home = Path(git.environment.get("HOME", "/nonexistent"))
        config = git.environment.get("XDG_CONFIG_HOME") or str(home / ".config")
        own = Path(config) / "git" / "ignore"
    # Later rules win: the repository's come after the person's, as git itself reads them.
    candidates = ([own] if own is not None and own.is_absolute() else []) + [common / "info" / "exclude"]
    return tuple(candidates)


def _refuse_wide(folder: Path) -> None:
    homes = {Path.home().resolve()}
    if folder == Path(folder.anchor):
        raise InvalidInput("the workspace is the root of the file system; choose a project folder")
    if folder in homes or any(folder in home.parents for home in homes):
        raise InvalidInput(
            f"the workspace {folder} is or holds a home folder; choose a project folder inside it"
        )
