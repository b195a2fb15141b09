"""Merges a result onto another state of the same workspace, without any work tree."""

from __future__ import annotations

from baton.contract.tree import Merge, MergeConflict
from baton.workspace.sparse import inherit_absent
from baton.workspace.store import PrivateGit


def merge_commits(repo: PrivateGit, base: str, ours: str, theirs: str, message: str, ref: str) -> Merge:
    """Carry what `theirs` changed since `base` over to `ours`; a clean result is named by `ref`.

    The result's parents are `ours` and `theirs`. A change follows a renamed file only where `theirs` itself
    renamed it: work never lands on a path that its author did not touch, such a file is a conflict. On
    conflicts nothing is recorded, and both sides stay as they are.
    """
    sides = _with_base(repo, base, ours, theirs)
    settings = ["-c", "merge.renames=true", "-c", "merge.directoryRenames=false"]
    output = repo.run([*settings, "merge-tree", "--write-tree", "-z", "--messages", *sides], ok=(0, 1))
    tree, conflicts = parse_merge(output.stdout)
    if output.exit_code == 1 and not conflicts:
        conflicts = (MergeConflict(path=b"", detail="git named no path"),)
    elif output.exit_code == 0:
        conflicts = _strays(repo, base, ours, theirs, tree)
    if conflicts:
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
    unmerged: dict[bytes, set[bytes]] = {}
    for line in stages.split(b"\0"):
        if b"\t" in line:
            facts, path = line.split(b"\t", 1)
            unmerged.setdefault(path, set()).add(facts.rpartition(b" ")[2])
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
    for path, numbers in unmerged.items():
        # Git calls two additions of one path a conflict of contents too.
        if numbers == {b"2", b"3"} and kinds.get(path, ["contents"]) == ["contents"]:
            kinds[path] = ["add/add"]
    conflicts = tuple(
        MergeConflict(path=path, detail=", ".join(dict.fromkeys(kinds.get(path, ["contents"]))))
        for path in sorted(unmerged or kinds)
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


def _strays(repo: PrivateGit, base: str, ours: str, theirs: str, tree: str) -> tuple[MergeConflict, ...]:
    """Files of `theirs` whose change git carried to another path, because `ours` had renamed them.

    Git before 2.50 cannot be told to leave renames alone.
    """
    touched = _names(repo, base, theirs)
    strayed = _names(repo, ours, tree) - touched
    if not strayed:
        return ()
    moved = touched & _names(repo, base, ours, "--diff-filter=D") or strayed
    return tuple(MergeConflict(path=path, detail="modify/rename") for path in sorted(moved))


def _names(repo: PrivateGit, old: str, new: str, *options: str) -> set[bytes]:
    listed = repo.run(["diff-tree", "-r", "-z", "--name-only", "--no-renames", *options, old, new]).stdout
    return {name for name in listed.split(b"\0") if name}
