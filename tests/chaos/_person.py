"""A person at work in a repository: edits, and git commands, each of which may come at any moment.

Every edit brings a token of its own. What they can expect afterwards is noted: a token of an edit that they
have not undone themselves must still be in its file, or where their own git commands have put it.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path


class Person:
    """One person in one workspace."""

    def __init__(self, root: Path, env: Mapping[str, str], chance: random.Random, name: str) -> None:
        self.root, self.env, self.chance, self.name = root, env, chance, name
        self.tokens: dict[str, set[str]] = {}
        """Path to the tokens that must be found there."""
        self.deleted: set[str] = set()
        """Paths that must be gone."""
        self.folders: set[str] = set()
        self.used_git = False
        """Whether a command of theirs moved edits elsewhere (a stash, a commit, another branch)."""
        self.did: list[str] = []
        self._count = 0

    def act(self, actions: list[Callable[[], None]] | None = None) -> None:
        """Do one thing at random."""
        action = self.chance.choice(actions or self.everything)
        self.did.append(action.__name__)
        action()

    @property
    def edits(self) -> list[Callable[[], None]]:
        return [
            *(self.append, self.append, self.save_by_rename, self.save_by_rename, self.write_new),
            *(self.delete, self.make_folder, self.replace_own_file),
        ]

    @property
    def everything(self) -> list[Callable[[], None]]:
        return [*self.edits, self.commit, self.amend, self.stash, self.switch_branch, self.collect_garbage]

    # -- edits -------------------------------------------------------------------------------------

    def append(self) -> None:
        """Write at the end of a file, in place."""
        path = self._some_file()
        if path is not None:
            with (self.root / path).open("a") as file:
                file.write(self._token(path) + "\n")

    def save_by_rename(self) -> None:
        """Save as an editor does: a new file, renamed over the old one."""
        path = self._some_file()
        if path is not None:
            text = (self.root / path).read_text()
            new = self.root / f"{path}.{self.name}~"
            new.write_text(self._token(path) + "\n" + text)
            new.replace(self.root / path)

    def write_new(self) -> None:
        path = f"src/{self.name}-{self._next()}.txt"
        (self.root / "src").mkdir(exist_ok=True)
        (self.root / path).write_text(self._token(path) + "\n")

    def replace_own_file(self) -> None:
        """Write a whole file of their own anew: what it held before is given up."""
        path = f"{self.name}.txt"
        self.tokens.pop(path, None)
        (self.root / path).write_text(self._token(path) + "\n")

    def delete(self) -> None:
        path = self._some_file()
        if path is not None:
            (self.root / path).unlink()
            self.tokens.pop(path, None)
            self.deleted.add(path)

    def make_folder(self) -> None:
        path = f"src/{self.name}-folder-{self._next()}"
        (self.root / path).mkdir(parents=True)
        self.folders.add(path)

    # -- git ---------------------------------------------------------------------------------------

    def commit(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", f"{self.name} {self._next()}")

    def amend(self) -> None:
        self._git("commit", "-q", "-a", "--amend", "--allow-empty", "-m", f"amended {self._next()}")

    def stash(self) -> None:
        self._git("stash", "push", "-q", "--include-untracked")

    def switch_branch(self) -> None:
        if self.chance.random() < 0.5:
            self._git("checkout", "-q", "-b", f"{self.name}-{self._next()}")
        else:
            branches = self._git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()
            self._git("checkout", "-q", self.chance.choice(branches))

    def collect_garbage(self) -> None:
        # Not of the stash, which they would lose by that themselves.
        branches = self._git("for-each-ref", "--format=%(refname)", "refs/heads").split()
        self._git("reflog", "expire", "--expire=now", "HEAD", *branches)
        self._git("gc", "-q", "--prune=now")

    # -- afterwards --------------------------------------------------------------------------------

    def lost(self) -> list[str]:
        """Edits that are nowhere to be found, and deleted files that are back."""
        missing = [
            f"{token} in {path}"
            for path, tokens in self.tokens.items()
            for token in tokens
            if token not in self._text(path) and not (self.used_git and self._in_git(path, token))
        ]
        back = [
            f"{path} is back"
            for path in self.deleted
            if path not in self.tokens and (self.root / path).exists() and not self.used_git
        ]
        gone = [
            f"folder {path}" for path in self.folders if not (self.root / path).is_dir() and not self.used_git
        ]
        return [*missing, *back, *gone]

    def _in_git(self, path: str, token: str) -> bool:
        found = self._git("log", "--all", "-m", "--format=%H", f"-S{token}", "--", path)
        stashed = self._git("log", "-g", "--format=%H %P", "refs/stash")
        trees = [commit for line in stashed.split("\n") for commit in line.split()]
        return bool(found.strip()) or any(token in self._git("show", f"{tree}:{path}") for tree in trees)

    def _text(self, path: str) -> str:
        try:
            return (self.root / path).read_text()
        except OSError:
            return ""

    def _some_file(self) -> str | None:
        files = sorted(
            path.relative_to(self.root).as_posix()
            for path in (self.root / "src").rglob("*.txt")
            if path.is_file()
        )
        return self.chance.choice(files) if files else None

    def _token(self, path: str) -> str:
        token = f"{self.name}:{self._next()}"
        self.tokens.setdefault(path, set()).add(token)
        self.deleted.discard(path)
        return token

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _git(self, *args: str) -> str:
        self.used_git = True
        done = subprocess.run(
            ["git", *args],
            cwd=self.root,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.stdout.decode(errors="replace")
