"""What git says of a workflow: trees of the workspace, patches that apply or do not, commits that hold them.

Everything is done in the private repository with an index of its own; in the person's repository nothing is
written but the pin of the workflow. Paths in patches are relative to the workspace.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from baton.contract.errors import InvalidInput
from baton.contract.task import Task
from baton.contract.tree import Merge, Snapshot, show_path
from baton.engine.house import House
from baton.workspace.git import Git, GitFailed, Output
from baton.workspace.limits import Limits
from baton.workspace.listing import GITLINK
from baton.workspace.locate import Site, locate, read_head
from baton.workspace.repository import PrivateRepository
from baton.workspace.scope import read_scope
from baton.workspace.tree_links import leaving_links

SHOWN = 5

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")


class DoesNotApply(Exception):
    """Raised for a patch that does not apply; `reason` says where, in one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = " ".join(reason.split())[:400]


@dataclass(frozen=True)
class Ground:
    """The workspace of one workflow, as git has it. All methods block."""

    repo: PrivateRepository
    workflow_id: str

    @classmethod
    def open(cls, house: House, workspace: Path, workflow_id: str) -> Ground:
        """Open it. Raises `InvalidInput` for what is no git repository with a commit."""
        git = Git.find()
        site = locate(workspace, git)
        if site.kind != "git" or site.head is None:
            raise InvalidInput(
                f"workspace {workspace} is not a git repository with a commit, which a workflow needs"
            )
        policy = house.policy(workspace)
        limits = Limits(
            plain_folder_files=policy.limits.plain_folder_files,
            plain_folder_bytes=policy.limits.plain_folder_bytes,
            kept_bytes=policy.limits.kept_bytes,
        )
        return cls(PrivateRepository.open(house.state, site, limits, git), workflow_id)

    @property
    def site(self) -> Site:
        return self.repo.site

    def ref(self, name: str | int) -> str:
        return f"refs/runs/{self.workflow_id}/{name}"

    def snapshot(self, name: str | int = "now") -> Snapshot:
        """The workspace as it is now, kept under a name."""
        return self.repo.snapshot(self.ref(name), self.workflow_id)

    def remember(self) -> Snapshot:
        """The workspace as it is now, for a record: kept for as long as the workflow is."""
        now = self.snapshot()
        self.keep(f"seen-{now.commit}", now.commit)
        return now

    def keep(self, name: str | int, commit: str) -> None:
        """Keep a commit under a name for as long as the workflow is kept."""
        self.repo.set_ref(self.ref(name), commit)

    def dirty(self) -> list[str]:
        """Paths that differ from HEAD or are untracked."""
        asked = [*self._inert(), "status", "--porcelain=v1", "-z", "--no-renames"]
        listed = self.repo.git.theirs(asked, cwd=self.site.root).stdout
        return [show_path(line[3:]) for line in listed.split(b"\0") if line]

    def head(self) -> str | None:
        return read_head(self.repo.git, self.site.root)

    def diff(self, old: str, new: str) -> str:
        """What changed between two commits or trees, as a patch."""
        return self.repo.diff(old, new).decode("utf-8", "replace")

    def changed(self, old: str, new: str) -> list[bytes]:
        """Paths that differ, both ends of a rename, relative to the workspace."""
        return sorted({path for change in self.repo.changes(old, new) for path in change.touched})

    # -- patches -----------------------------------------------------------------------------------

    def patched(self, base: str, patch: str, allowed: list[str], name: str | int) -> str:
        """A commit with the patch on top of `base`, kept under a name.

        Raises `DoesNotApply` for a patch that git does not apply, that changes nothing, or that leaves the
        scope.
        """
        tree = self._applied(base, patch)
        return self.kept_tree(base, tree, allowed, name)

    def kept_tree(self, base: str, tree: str, allowed: list[str], name: str | int) -> str:
        """A commit of a tree on top of `base`, kept under a name, in scope. Raises `DoesNotApply`."""
        paths = self.changed(base, tree)
        outside = self.repo.outside(base, tree)
        if outside:
            raise DoesNotApply(f"it changes {show_path(outside[0])}, which is outside the workspace")
        if not paths:
            raise DoesNotApply("it changes nothing")
        refused = out_of_scope(paths, allowed)
        if refused:
            raise DoesNotApply(f"it leaves the scope: {'; '.join(refused[:SHOWN])}")
        changes = self.repo.changes(base, tree)
        nested = [change.path for change in changes if GITLINK in (change.old_mode, change.new_mode)]
        if nested:
            raise DoesNotApply(f"{show_path(nested[0])} is a submodule, which a patch cannot change")
        leaving = leaving_links(self.repo, base, tree, changes)
        if leaving:
            raise DoesNotApply(f"the link {show_path(leaving[0])} leads out of the workspace")
        commit = self.repo.commit_tree(tree, [base], f"{self.workflow_id} step {name}\n")
        self.keep(name, commit)
        return commit

    def fits(self, base: str, result: str, onto: str) -> str | None:
        """Why the change from `base` to `result` cannot be carried over to `onto`; None when it can.

        Carried over as by `git cherry-pick`.
        """
        conflicts = self._merged(base, onto, result).conflicts
        told = "; ".join(f"{show_path(one.path)} ({one.detail})" for one in conflicts[:SHOWN])
        return f"conflict in {told}" if conflicts else None

    def holds(self, commit: str, base: str, result: str) -> str | None:
        """Why a commit does not hold the change from `base` to `result`; None when it does.

        It does when carrying the change over to it changes nothing: other changes beside it do not matter.
        """
        merged = self._merged(base, commit, result)
        if merged.tree is None:
            held = self._held_among_others(commit, base, result)
        else:
            held = merged.tree == self.repo.tree_of(commit)
        if held:
            return None
        changed = ", ".join(show_path(path) for path in self.changed(base, result)[:SHOWN])
        return f"it does not hold the change in {changed}"

    def _merged(self, base: str, ours: str, theirs: str) -> Merge:
        return self.repo.merge(base, ours, theirs, "judged\n", self.ref("judged"))

    def _held_among_others(self, commit: str, base: str, result: str) -> bool:
        """Whether every changed path was touched, and the change can be taken back out of the commit.

        For edits that touch lines next to the change, which a merge cannot tell from a conflict.
        """
        changed = self.changed(base, result)
        if set(changed) - set(self.changed(base, commit)):
            return False
        patch = self.repo.diff(base, result, binary=True)
        # The last option lets lines be added before and after a change at the ends of a file.
        done = self._apply(commit, patch, "--reverse", "--check", "--unidiff-zero")
        return isinstance(done, Output) and done.exit_code == 0

    def committed(self, commit: str, base: str, result: str, now: str) -> str | None:
        """Why a commit of the person's does not hold the change; None when it does.

        Where git converts files (line endings, LFS), a commit differs from what is on disk. Then the files on
        disk must hold the change and be, as git sees them, those of the commit.
        """
        missing = self.holds(commit, base, result)
        if missing is None or self.holds(now, base, result) is not None:
            return missing
        paths = [self.site.prefix + path for path in self.changed(base, result)]
        same: list[str | bytes] = [*self._inert(), "diff", "--quiet", "--no-ext-diff", "--no-textconv"]
        same += [commit, "--", *paths]
        compared = self.repo.git.theirs(same, cwd=self.site.root, ok=(0, 1, 128))
        return None if compared.exit_code == 0 else missing

    def _inert(self) -> list[str]:
        """Options with which git starts none of the filters that a configuration names."""
        listed = self.repo.git.theirs(
            ["config", "-z", "--name-only", "--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"],
            cwd=self.site.root,
            ok=(0, 1),
        ).stdout.decode("utf-8", "surrogateescape")
        options: list[str] = []
        for name in filter(None, listed.split("\0")):
            value = "false" if name.endswith(".required") else ""
            options += ["-c", f"{name}={value}"]
        return options

    def commit_given(self, named: str, since: str | None) -> str:
        """The full id of a commit of the person's that was not there at `since`.

        Raises `InvalidInput` for what is no commit, is not on HEAD, or was there before.
        """
        root = self.site.root
        if not _COMMIT.fullmatch(named):
            raise InvalidInput(f"commit: {named!r} is not the id of a commit")
        found = self.repo.git.theirs(
            ["rev-parse", "--verify", "--quiet", f"{named}^{{commit}}"], cwd=root, ok=(0, 1, 128)
        )
        commit = found.stdout.decode().strip()
        # A branch may be named like an id.
        if found.exit_code != 0 or not commit.startswith(named.lower()):
            raise InvalidInput(f"commit: there is no commit {named} in {root}")
        if not self._is_ancestor(commit, "HEAD"):
            raise InvalidInput(f"commit: {named} is not in the history of HEAD")
        if since is not None and self._is_ancestor(commit, since):
            raise InvalidInput(f"commit: {named} was there before the step began")
        return commit

    def _is_ancestor(self, commit: str, of: str) -> bool:
        done = self.repo.git.theirs(
            ["merge-base", "--is-ancestor", commit, of], cwd=self.site.root, ok=(0, 1, 128)
        )
        return done.exit_code == 0

    def _applied(self, base: str, patch: str | bytes) -> str:
        """The tree with the patch on it. Raises `DoesNotApply`."""
        data = patch.encode("utf-8", "surrogateescape") if isinstance(patch, str) else patch
        # The line counts of a patch written by a model are often wrong while its lines are right.
        tree = self._apply(base, data)
        if isinstance(tree, Output):
            counted = self._apply(base, data, "--recount")
            if isinstance(counted, Output):
                raise DoesNotApply(_why(tree) + self._line_ends(base, data, tree))
            tree = counted
        return tree

    def _line_ends(self, base: str, patch: bytes, refused: Output) -> str:
        """Which file of those that a patch does not fit has other line ends than the patch."""
        if b"\r\n" in patch:
            return ""
        for path in re.findall(rb"(?m)^error: patch failed: (.+):\d+$", refused.stderr):
            path = path.removeprefix(self.site.prefix)
            if b"\r\n" in (self.repo.read_file(base, path) or b""):
                return f"; {show_path(path)} ends its lines with CRLF, and the patch does not"
        return ""

    def _apply(self, base: str, patch: bytes, *options: str) -> str | Output:
        """The tree after `git apply` on an index of its own, or what git said when it did not apply.

        With `--check` nothing but whether it applies: the output in any case.
        """
        prefix = [b"--directory=" + self.site.prefix.rstrip(b"/")] if self.site.prefix else []
        with tempfile.TemporaryDirectory(dir=self.repo.path / "indexes", prefix="capture-") as folder:
            index = Path(folder) / "index"
            self.repo.run(["read-tree", base], index=index)
            try:
                done = self.repo.run(
                    ["apply", "--cached", "--whitespace=nowarn", *options, *prefix, "-"],
                    index=index,
                    input=patch,
                    ok=(0, 1, 128),
                )
            except GitFailed as error:
                return Output(error.exit_code, b"", error.stderr)
            if done.exit_code != 0 or "--check" in options:
                return done
            return self.repo.run(["write-tree"], index=index).stdout.decode().strip()


def out_of_scope(paths: list[bytes], allowed: list[str]) -> list[str]:
    """Which changes the scope of a workflow does not permit; an empty scope permits all but git's own."""
    scope = read_scope(Task(objective="scope", allowed_files=allowed or ["**"]))
    broken = [(path, scope.permits(path)) for path in paths]
    return [f"{show_path(path)} ({rule})" for path, rule in broken if rule is not None]


def patch_in(text: str) -> str | None:
    """The patch in an answer: all of it, or its fenced parts; None when there is none."""
    fenced = re.findall(r"(?ms)^```(?:diff|patch)?[ \t]*\n(.*?)^```[ \t]*$", text)
    parts = [part for part in fenced if _looks_like_patch(part)] or (
        [text] if _looks_like_patch(text) else []
    )
    if not parts:
        return None
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)


def _looks_like_patch(text: str) -> bool:
    return bool(re.search(r"(?m)^(?:diff --git |--- )", text))


def _why(done: Output) -> str:
    lines = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return "; ".join(told[:SHOWN]) or (lines[0] if lines else "git does not apply it")
