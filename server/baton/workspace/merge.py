"""Merges a result onto another state of the same workspace, without any work tree."""

from __future__ import annotations

from baton.contract.tree import Merge, MergeConflict
from baton.workspace.git import GitFailed, Output
from baton.workspace.sparse import inherit_absent
from baton.workspace.store import PrivateGit


def merge_commits(repo: PrivateGit, base: str, ours: str, theirs: str, message: str, ref: str) -> Merge:
    """Carry what `theirs` changed since `base` over to `ours`; a clean result is named by `ref`.

    The result's parents are `ours` and `theirs`. A change follows a renamed file only where `theirs` itself
    renamed it: work never lands on a path that its author did not touch. On conflicts nothing is recorded,
    and both sides stay as they are.
    """
    sides = _with_base(repo, base, ours, theirs)
    output = _merge_tree(repo, sides, renames=True)
    if output.exit_code not in (0, 1) or _strays(repo, base, ours, theirs, output):
        output = _merge_tree(repo, sides, renames=False)
        if output.exit_code not in (0, 1):
            raise GitFailed(
                f"git merge-tree failed: {output.stderr.decode(errors='replace')}", output.exit_code, b""
            )
    tree, conflicts = parse_merge(output.stdout)
    if output.exit_code == 1:
        return Merge(commit=None, tree=None, conflicts=conflicts)
    repo.keep(tree, repo.tree_of(ours))
    commit = repo.commit_tree(tree, [ours, theirs], message)
    inherit_absent(repo, commit, ours)
    repo.set_ref(ref, commit)
    return Merge(commit=commit, tree=tree)


def parse_merge(raw: bytes) -> tuple[str, tuple[MergeConflict, ...]]:
    """Read `git merge-tree --write-tree -z --messages`: the tree, and each path in conflict with its kind."""
    tree, _, rest = raw.partition(b"\0")
    stages, _, messages = rest.partition(b"\0\0") if not rest.startswith(b"\0") else (b"", b"", rest[1:])
    unmerged = {line.split(b"\t", 1)[1] for line in stages.split(b"\0") if b"\t" in line}
    kinds: dict[bytes, list[str]] = {}
    fields = iter(messages.split(b"\0"))
    for count in fields:
        if not count.strip():
            continue
        paths = [next(fields) for _ in range(int(count))]
        kind = next(fields).decode("utf-8", "replace")
        next(fields, b"")
        if kind.startswith("CONFLICT"):
            # The first path is where the conflict lies; others tell where it came from.
            kinds.setdefault(paths[0], []).append(kind.removeprefix("CONFLICT").strip(" ()"))
    named = unmerged | (kinds.keys() if not unmerged else set())
    conflicts = tuple(
        MergeConflict(path=path, detail=", ".join(dict.fromkeys(kinds.get(path, ["content"]))))
        for path in sorted(named)
    )
    return tree.decode(), conflicts


def _with_base(repo: PrivateGit, base: str, ours: str, theirs: str) -> tuple[str, str]:
    """Two commits whose only common history is the base.

    Git 2.38 takes the merge base from history alone; and history would name the person's HEAD, not the
    snapshot that the work began from.
    """
    root = repo.commit_tree(repo.tree_of(base), [], "base\n")
    return (
        repo.commit_tree(repo.tree_of(ours), [root], "ours\n"),
        repo.commit_tree(repo.tree_of(theirs), [root], "theirs\n"),
    )


def _merge_tree(repo: PrivateGit, sides: tuple[str, str], *, renames: bool) -> Output:
    settings = ["-c", f"merge.renames={'true' if renames else 'false'}", "-c", "merge.directoryRenames=false"]
    return repo.run([*settings, "merge-tree", "--write-tree", "-z", "--messages", *sides], ok=(0, 1, 2, 128))


def _strays(repo: PrivateGit, base: str, ours: str, theirs: str, output: Output) -> bool:
    """Whether the merge changed a path of `ours` that `theirs` did not touch."""
    tree, conflicts = parse_merge(output.stdout)
    touched = _names(repo, base, theirs)
    reached = _names(repo, repo.tree_of(ours), tree) if output.exit_code == 0 else set()
    return not (reached | {conflict.path for conflict in conflicts}) <= touched


def _names(repo: PrivateGit, old: str, new: str) -> set[bytes]:
    listed = repo.run(["diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new]).stdout
    return {name for name in listed.split(b"\0") if name}
