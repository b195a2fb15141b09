"""The core of a private repository: how git is run in it, its refs, and which objects are its own.

Two object folders: `store/` holds what Baton wrote and borrows nothing; `objects/` is empty and lists the
store and the person's objects as alternates, so that plain git commands on the repository see everything.
Writing with the store alone in sight keeps every object that is beyond the person's history out of the reach
of their `git gc`, and leaves even the time stamps of their objects alone.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import StateUnavailable
from baton.ledger.locks import FileLock
from baton.workspace.git import DEADLINE, Git, Output
from baton.workspace.limits import Limits
from baton.workspace.locate import Site
from baton.workspace.loose import is_oid, write_object, write_ref

LOCK_SECONDS = 120.0
"""How long a caller waits for another process in the same private repository."""


@dataclass(frozen=True)
class PrivateGit:
    """Git in one private repository. Safe to use from several threads and processes."""

    git: Git
    site: Site
    path: Path
    """The bare repository."""
    worktrees: Path
    """Folder under which worktrees are made."""
    limits: Limits

    @property
    def store(self) -> Path:
        """Objects that Baton wrote itself."""
        return self.path / "store"

    @property
    def zero(self) -> str:
        """The object id that stands for "none"."""
        return "0" * (64 if self.site.object_format == "sha256" else 40)

    def run(
        self,
        args: Sequence[str | bytes],
        *,
        git_dir: Path | None = None,
        work_tree: Path | None = None,
        index: Path | None = None,
        input: bytes | None = None,
        borrow: bool = True,
        ok: Sequence[int] = (0,),
        max_output: int | None = None,
        timeout: float = DEADLINE,
        env: Mapping[str, str] | None = None,
    ) -> Output:
        """Run git here. With `borrow` false the person's objects are out of sight."""
        variables = {"GIT_OBJECT_DIRECTORY": str(self.store), **(env or {})}
        if borrow and self.site.common_dir is not None:
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = quoted_path(self.site.common_dir / "objects")
        if index is not None:
            variables["GIT_INDEX_FILE"] = str(index)
        return self.git.own(
            args,
            git_dir=git_dir or self.path,
            work_tree=work_tree,
            env=variables,
            input=input,
            ok=ok,
            max_output=max_output,
            timeout=timeout,
        )

    def lock(self, name: str) -> FileLock:
        """A lock between processes for one kind of work here; `with` waits at most two minutes."""
        return FileLock(self.path / f"{name}.lock", timeout=LOCK_SECONDS)

    # -- refs -------------------------------------------------------------------------------------

    def resolve(self, ref: str) -> str | None:
        """The commit that a ref or revision names, None when there is none."""
        found = self.run(["rev-parse", "--verify", "--quiet", ref + "^{commit}"], ok=(0, 1, 128))
        return found.stdout.decode().strip() if found.exit_code == 0 else None

    def set_ref(self, ref: str, commit: str) -> None:
        """Let a ref name a commit, durably."""
        with _writing(self.path):
            written = write_ref(self.path, ref, commit)
        if not written:
            self.run(["update-ref", "--no-deref", ref, commit])

    def delete_ref(self, ref: str) -> None:
        """Forget a ref; does nothing when there is none."""
        self.run(["update-ref", "--no-deref", "-d", ref])

    def refs(self, prefix: str) -> dict[str, str]:
        """Refs below a prefix (`refs/runs/<run>`), with their commits."""
        listed = self.run(["for-each-ref", "--format=%(refname) %(objectname)", prefix]).stdout.decode()
        pairs = (line.partition(" ") for line in listed.splitlines())
        return {name: oid for name, _, oid in pairs}

    def tree_of(self, commit: str) -> str:
        """The tree of a commit (or of a tree)."""
        if (self.path, commit) not in _TREES:
            tree = self.run(["rev-parse", "--verify", commit + "^{tree}"]).stdout.decode().strip()
            if not is_oid(commit):
                return tree
            _remember(self.path, commit, tree)
        return _TREES[self.path, commit]

    def commit_tree(self, tree: str, parents: Iterable[str], message: str) -> str:
        """Record a tree as a commit of Baton's, durably."""
        who = f"Baton <baton@localhost> {int(time.time())} +0000"
        lines = [f"tree {tree}", *(f"parent {self._commit_named(parent)}" for parent in parents)]
        lines += [f"author {who}", f"committer {who}", "", message]
        commit = self.write("commit", "\n".join(lines).encode())
        _remember(self.path, commit, tree)
        return commit

    def _commit_named(self, name: str) -> str:
        """The id of a commit given by id or ref: what stands in a commit is never checked by git."""
        found = name if is_oid(name) else self.resolve(name)
        if found is None:
            raise StateUnavailable(f"{self.path} has no commit {name}")
        return found

    def fetch_command(self, ref: str) -> str:
        """What a person types in their repository to get a result as FETCH_HEAD, or here to look at it."""
        if self.site.kind == "git":
            return f"git fetch {shlex.quote(str(self.path))} {shlex.quote(ref)}"
        return f"git --git-dir={shlex.quote(str(self.path))} show {shlex.quote(ref)}"

    # -- objects ----------------------------------------------------------------------------------

    def write(self, kind: str, content: bytes) -> str:
        """Write an object into the store, durably; its id. Raises `StateUnavailable`."""
        with _writing(self.path):
            return write_object(self.store, kind, content, self.site.object_format)

    def read_blobs(self, oids: Sequence[bytes | str]) -> list[bytes | None]:
        """Contents of objects in the order given, None for one that is missing. For small ones."""
        if not oids:
            return []
        names = b"\n".join(oid if isinstance(oid, bytes) else oid.encode() for oid in oids) + b"\n"
        raw = self.run(["cat-file", "--batch"], input=names).stdout
        contents: list[bytes | None] = []
        at = 0
        for _ in oids:
            end = raw.index(b"\n", at)
            facts = raw[at:end].split(b" ")
            at = end + 1
            if facts[-1] == b"missing":
                contents.append(None)
                continue
            size = int(facts[2])
            contents.append(raw[at : at + size])
            at += size + 1
        return contents

    def missing(self, oids: Iterable[str], *, borrow: bool) -> list[str]:
        """Those of the objects that are not in the store (nor, with `borrow`, among the person's)."""
        wanted = "\n".join(oid for oid in oids if not self.loose(oid))
        if not wanted:
            return []
        listed = self.run(
            ["cat-file", "--batch-check=%(objectname)"], input=wanted.encode() + b"\n", borrow=borrow
        ).stdout
        return [line[:-8].decode() for line in listed.splitlines() if line.endswith(b" missing")]

    def loose(self, oid: str) -> Path | None:
        """The file of an object that lies in the store by itself; None for one in a pack, or none."""
        path = self.store / oid[:2] / oid[2:]
        with contextlib.suppress(OSError):
            if path.stat().st_size:  # an empty one is what a loss of power leaves
                return path
        return None

    def raw_changes(self, old: str, new: str) -> bytes:
        """How two trees differ, as `git diff-tree --raw -z` tells it: folders too, a move as two changes."""
        if old == new:
            return b""
        options = ["-r", "-t", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none"]
        return self.run(["diff-tree", *options, old, new]).stdout

    def keep(self, tree: str, basis: str | None, raw: bytes | None = None) -> list[str]:
        """Copy into the store what `tree` needs beyond `basis`, a tree of the person's that is pinned.

        `raw` is how the two differ, where that is known. Returns the objects that are nowhere to be found.
        """
        if tree == basis:
            return []
        return self.copy(
            new_objects(self.raw_changes(basis or self._empty_tree(), tree) if raw is None else raw) | {tree}
        )

    def copy(self, oids: Iterable[str]) -> list[str]:
        """Copy objects from the person's into the store; returns those that are nowhere to be found."""
        borrowed = self.missing(sorted(oids), borrow=False)
        lost = self.missing(borrowed, borrow=True)
        found = sorted(set(borrowed) - set(lost))
        if found:
            self._pack("\n".join(found) + "\n", [])
        return lost

    def copy_commits(self, commit: str, pinned: str) -> None:
        """Copy into the store what a commit's history has beyond the pinned commit's."""
        self._pack(f"{commit}\n^{pinned}\n", ["--revs"])

    def _pack(self, wanted: str, options: Sequence[str]) -> None:
        (self.store / "pack").mkdir(exist_ok=True)
        # Deltas may only be against objects of the same pack, or the pack would borrow again.
        self.run(
            [
                "pack-objects",
                "-q",
                "--no-reuse-delta",
                "--window=0",
                *options,
                str(self.store / "pack" / "pack"),
            ],
            input=wanted.encode(),
        )

    def _empty_tree(self) -> str:
        return (
            self.run(["hash-object", "-t", "tree", "-w", "--stdin"], input=b"", borrow=False)
            .stdout.decode()
            .strip()
        )


_TREES: dict[tuple[Path, str], str] = {}
"""Trees of commits, by repository: they never change."""

_MOST_TREES = 10_000


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateUnavailable(f"cannot write in {path}: {error.strerror}") from None


def _remember(path: Path, commit: str, tree: str) -> None:
    if len(_TREES) >= _MOST_TREES:
        _TREES.clear()
    _TREES[path, commit] = tree


def new_objects(raw: bytes) -> set[str]:
    """The objects that come with the changes of `raw_changes`; a submodule's commit is none of them."""
    found = set()
    for head in raw.split(b"\0")[:-1:2]:
        _, mode, _, oid, _ = head.decode().split(" ")
        if mode not in ("160000", "000000"):
            found.add(oid)
    return found


def quoted_path(path: Path) -> str:
    """A path as git's lists of alternates want it."""
    raw = os.fsencode(path)
    if not any(byte < 32 or byte in b'":\\#' or byte > 126 for byte in raw):
        return str(path)
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:03o}" for b in raw) + '"'
