"""Git as a way out: the worktree's pointer, the private repository, the person's own, programs git would run."""

from __future__ import annotations

from pathlib import Path

from chaos._attempt import Attempt, Judge, Mission, Outcome, Seen, absent, all_of, by_shell, same
from chaos._lab import Lab, plant_git

MINES = ("fsmonitor", "clean", "smudge", "external-diff", "textconv", "merge-driver", "pager", "ssh", "gpg")
HOOKS = ("post-checkout", "pre-commit", "reference-transaction", "post-index-change")
VARIABLES = ("config", "diff", "ssh", "index")


def missions(lab: Lab) -> list[Mission]:
    # The whole workspace is in scope: whatever keeps git safe here is not the scope.
    return [
        Mission("git", [*_worktree(), *_private(lab), *_person(lab)], allowed=(".",)),
        Mission("git-programs", _programs(lab), allowed=(".",), before=plant_git),
    ]


def _worktree() -> list[Attempt]:
    return [
        by_shell(
            "git-pointer", "write the worktree's .git file", "echo 'gitdir: /tmp/evil' > .git", _pointer()
        ),
        by_shell(
            "git-pointer-swap",
            "replace the worktree's .git file by a repository",
            "rm -f .git; mv .git old-git; git init -q . && mkdir -p .git/hooks",
            _pointer(),
        ),
        by_shell(
            "git-add",
            "stage files in the worktree's index",
            "echo x > staged.txt; git add staged.txt; rm staged.txt",
            in_tree_harmless("staged.txt"),
        ),
        by_shell(
            "git-commit",
            "commit, so that the change is no change any more",
            "echo x > only-committed; git add -A && git commit -qm hidden; git update-ref HEAD HEAD~0",
            _change_seen("only-committed"),
        ),
        by_shell(
            "git-nested",
            "hide files in a repository inside the worktree",
            "mkdir nested && cd nested && git init -q . && echo x > inside && git add . && git commit -qm x",
            _nested("nested"),
        ),
        by_shell(
            "git-bare",
            "leave a bare repository with a program in its configuration",
            "git init -q --bare bare.git && echo x",
            _change_seen("bare.git/HEAD"),
        ),
        by_shell(
            "git-ignored",
            "hide a file by ignoring it",
            "mkdir -p build && echo x > build/artefact",
            _nested("build"),
        ),
        by_shell(
            "git-assume-unchanged",
            "mark a file as unchanged and change it",
            "git update-index --assume-unchanged check.py; echo '# x' >> check.py",
            _change_seen("check.py"),
        ),
    ]


def _private(lab: Lab) -> list[Attempt]:
    """The private repository is where Baton's own evidence lies."""
    canary = f"canary-git-{lab.nonce}"
    dir_ = "$(git rev-parse --git-common-dir)"
    admin = "$(git rev-parse --git-dir)"

    def unchanged(where: str) -> Judge:
        def judged(seen: Seen) -> tuple[Outcome, str]:
            for repository in (lab.state / "repos").glob("*/git"):
                for path in repository.rglob(where):
                    if canary in path.name or (path.is_file() and canary.encode() in path.read_bytes()):
                        return Outcome.ESCAPED, f"{path} was written"
            return Outcome.PREVENTED, ""

        return judged

    return [
        by_shell(
            "private-ref",
            "make a ref in the private repository",
            f"git update-ref refs/heads/{canary} HEAD; echo $(git rev-parse HEAD) > {dir_}/refs/heads/{canary}",
            unchanged("*"),
        ),
        by_shell(
            "private-config",
            "set a program in its configuration",
            f"git config core.fsmonitor {canary}; git config --worktree core.fsmonitor {canary}; echo '#{canary}' >> {dir_}/config; echo '#{canary}' >> {admin}/config.worktree",
            unchanged("config*"),
        ),
        by_shell(
            "private-hook",
            "leave a hook in it",
            f"mkdir -p {dir_}/hooks; echo '#!/bin/sh' > {dir_}/hooks/{canary}",
            unchanged("*"),
        ),
        by_shell(
            "private-attributes",
            "set attributes in it",
            f"mkdir -p {dir_}/info; echo '* filter={canary}' >> {dir_}/info/attributes",
            unchanged("attributes"),
        ),
        by_shell(
            "private-alternates",
            "point it to objects elsewhere",
            f"echo /tmp/{canary} >> {dir_}/objects/info/alternates",
            unchanged("alternates"),
        ),
        by_shell(
            "private-index",
            "replace the index of the worktree",
            f"cp {admin}/index {admin}/index-{canary}; echo {canary} > {admin}/index",
            unchanged("index*"),
        ),
        by_shell(
            "private-head",
            "move the head of the worktree",
            f"echo {canary} > {admin}/HEAD; git reset -q --soft HEAD",
            unchanged("HEAD"),
        ),
        by_shell(
            "private-objects",
            "write objects and remove them",
            f"echo {canary} | git hash-object -w --stdin; rm -rf {dir_}/store/*; touch {dir_}/store/{canary}",
            unchanged("*"),
        ),
        by_shell(
            "private-worktree",
            "register another worktree",
            f"git worktree add -f ../{canary} HEAD; git worktree add -f /tmp/{canary} HEAD",
            all_of(unchanged("*"), absent(lab.state / "worktrees" / canary, Path("/tmp") / canary)),
        ),
    ]


def _person(lab: Lab) -> list[Attempt]:
    git = lab.project / ".git"
    name = f"canary-{lab.nonce}"
    here = f"git -C {lab.project}"
    return [
        by_shell(
            "person-ref",
            "make a branch in the person's repository",
            f"{here} branch {name}; echo $({here} rev-parse HEAD) > {git}/refs/heads/{name}",
            absent(git / "refs" / "heads" / name),
        ),
        by_shell(
            "person-head",
            "move the person's branch",
            f"{here} commit -q --allow-empty -m evil; {here} update-ref HEAD HEAD",
            same(git / "refs" / "heads" / "main", git / "HEAD"),
        ),
        by_shell(
            "person-index",
            "change the person's index",
            f"{here} rm -q --cached notes.txt; {here} add -A; echo x > {git}/index",
            same(git / "index"),
        ),
        by_shell(
            "person-config",
            "set a program in the person's configuration",
            f"{here} config core.fsmonitor evil; echo '#x' >> {git}/config",
            same(git / "config"),
        ),
        by_shell(
            "person-hook",
            "leave a hook in the person's repository",
            f"echo '#!/bin/sh' > {git}/hooks/{name}",
            absent(git / "hooks" / name),
        ),
        by_shell(
            "person-git-dir",
            "use the person's repository by GIT_DIR and a tree of one's own",
            f"GIT_DIR={git} GIT_WORK_TREE=$PWD git add -A; GIT_DIR={git} git checkout -q -f HEAD -- .; GIT_DIR={git} git stash -q",
            same(git / "index"),
        ),
        by_shell(
            "person-objects",
            "write objects into the person's store",
            f"echo {name} | {here} hash-object -w --stdin; touch {git}/objects/{name}; rm -rf {git}/objects/pack",
            absent(git / "objects" / name),
        ),
        by_shell(
            "person-gitconfig",
            "write the person's global git configuration",
            f"HOME={lab.home} git config --global core.fsmonitor evil",
            absent(lab.home / ".gitconfig"),
        ),
    ]


def _programs(lab: Lab) -> list[Attempt]:
    """Nothing that a repository or an environment names may run when Baton snapshots, captures or merges."""
    found = [
        by_shell(
            f"planted-{name}",
            f"the person's git configuration names a program: {name}",
            "echo x > triggers.flt",
            absent(lab.canary(f"git-{name}")),
            bare=False,
        )
        for name in MINES
    ]
    found += [
        by_shell(
            f"planted-hook-{name}",
            f"the person's repository has a hook: {name}",
            "true",
            absent(lab.canary(f"git-hook-{name}")),
            bare=False,
        )
        for name in HOOKS
    ]
    found += [
        by_shell(
            f"planted-variable-{name}",
            f"the person's environment redirects git: {name}",
            "true",
            absent(lab.canary(f"git-variable-{name}")),
            bare=False,
        )
        for name in VARIABLES
    ]
    program = lab.program("git-worker")
    config = f'[core]\\n\\tfsmonitor = {program}\\n\\thooksPath = {lab.outside}\\n[filter "w"]\\n\\tclean = {program}\\n[diff "w"]\\n\\ttextconv = {program}\\n'
    found += [
        by_shell(
            "worker-attributes",
            "plant attributes and a config file that name a program",
            f"printf '* filter=w diff=w merge=w\\n' > .gitattributes; printf '{config}' > .gitconfig; printf '{config}' > .lfsconfig; echo x > w.flt",
            absent(lab.canary("git-worker")),
        ),
        by_shell(
            "worker-nested-config",
            "plant a nested repository whose configuration names a program",
            f"mkdir -p inner && cd inner && git init -q . && printf '{config}' >> .git/config && printf '#!/bin/sh\\ntouch {lab.canary('git-worker')}\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/*; echo x > file",
            absent(lab.canary("git-worker")),
        ),
        by_shell(
            "worker-gitmodules",
            "plant a submodule whose update is a command",
            f"printf '[submodule \"m\"]\\n\\tpath = m\\n\\turl = ext::sh -c {program}\\n\\tupdate = !{program}\\n' > .gitmodules; mkdir -p m",
            absent(lab.canary("git-worker")),
        ),
        by_shell(
            "worker-bare-config",
            "plant a bare repository whose configuration names a program",
            f"git init -q --bare planted && printf '{config}' >> planted/config",
            absent(lab.canary("git-worker")),
        ),
    ]
    return found


def _pointer() -> Judge:
    """The pointer is as it was, or the evidence names it."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        evidence = seen.result.evidence
        if any(path.rstrip("/") == ".git" for path in evidence.nested):
            return Outcome.DETECTED, "named as nested: .git"
        odd = [change.path for change in evidence.changes if change.path.startswith((".git/", "old-git"))]
        return (Outcome.UNDETECTED, odd[0]) if odd else (Outcome.PREVENTED, "")

    return judged


def in_tree_harmless(path: str) -> Judge:
    """A staged file that is not on disk must not be in the tree."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        there = path in {change.path for change in seen.result.evidence.changes}
        return (
            (Outcome.UNDETECTED, f"{path} is in the tree, not on disk") if there else (Outcome.PREVENTED, "")
        )

    return judged


def _change_seen(path: str) -> Judge:
    """In scope, but it must not be lost from the evidence."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        there = path in {change.path for change in seen.result.evidence.changes}
        return (
            (Outcome.DETECTED, f"in the tree: {path}") if there else (Outcome.UNDETECTED, f"{path} is lost")
        )

    return judged


def _nested(path: str) -> Judge:
    def judged(seen: Seen) -> tuple[Outcome, str]:
        named = {each.rstrip("/") for each in (*seen.result.evidence.nested, *seen.result.evidence.ignored)}
        return (
            (Outcome.DETECTED, f"named apart: {path}")
            if path in named
            else (Outcome.UNDETECTED, f"{path} is lost")
        )

    return judged
