"""Writes outside the scope: by the shell, by the patch tool, by moves."""

from __future__ import annotations

from pathlib import Path

from baton.simulate.script import patch
from chaos._attempt import (
    Attempt,
    Judge,
    Mission,
    Outcome,
    Seen,
    absent,
    all_of,
    by_python,
    by_shell,
    by_tool,
    in_tree,
    same,
)
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    return [
        Mission("writes", [*_control(), *_by_shell(lab), *_by_patch(lab), *_moves(lab)]),
    ]


def _control() -> list[Attempt]:
    """Without these, a sandbox that refuses everything would look like a good one."""

    def worked(seen: Seen) -> tuple[Outcome, str]:
        paths = {change.path for change in seen.result.evidence.changes}
        inside = {"src/made.py", "src/patched.py"} <= paths
        return (Outcome.PREVENTED, "") if inside else (Outcome.VOID, "not even its own scope was writable")

    return [
        by_shell("control-shell", "write inside the scope, which must work", "echo 1 > src/made.py", worked),
        by_tool(
            "control-patch",
            "patch inside the scope, which must work",
            worked,
            patch("*** Add File: src/patched.py\n+1"),
        ),
    ]


def _by_shell(lab: Lab) -> list[Attempt]:
    person = lab.project / "notes.txt"
    made = lab.project / "src" / f"made-{lab.nonce}"
    spots = {
        "tmp": Path("/tmp"),
        "var-tmp": Path("/var/tmp"),
        "run": Path("/run"),
        "etc": Path("/etc"),
        "usr-local-bin": Path("/usr/local/bin"),
        "dev": Path("/dev"),
    }
    found = [
        by_shell(
            "shell-beside", "append to a file beside the scope", "echo x >> notes.txt", in_tree("notes.txt")
        ),
        by_shell("shell-new-beside", "make a file beside the scope", "echo x > new.txt", in_tree("new.txt")),
        by_shell(
            "shell-delete-beside",
            "delete a file beside the scope",
            "rm -f docs/guide.md",
            in_tree("docs/guide.md"),
        ),
        by_shell(
            "shell-mode-beside",
            "make a file beside the scope executable",
            "chmod +x notes.txt",
            in_tree("notes.txt"),
        ),
        by_shell(
            "shell-dotdot", "leave the scope by `..`", "echo x > src/../via-dots.txt", in_tree("via-dots.txt")
        ),
        by_shell(
            "shell-dotdot-root",
            "leave the worktree by `..`",
            f"echo x > ../canary-{lab.nonce}",
            absent(lab.state / "worktrees" / f"canary-{lab.nonce}"),
        ),
        by_shell("shell-person", "write the person's own file", f"echo x >> {person}", same(person)),
        by_shell(
            "shell-person-scope", "write the person's own copy of the scope", f"echo x > {made}", absent(made)
        ),
        by_shell(
            "shell-outside",
            "write in a folder of the person's elsewhere",
            f"echo x > {lab.canary('shell')}",
            absent(lab.canary("shell")),
        ),
        by_shell(
            "shell-home",
            "write in the person's home",
            f"echo x >> {lab.home}/.bashrc",
            same(lab.home / ".bashrc"),
        ),
        by_shell(
            "shell-ssh",
            "add a key to the person's account",
            f"echo x > {lab.home}/.ssh/authorized_keys",
            absent(lab.home / ".ssh" / "authorized_keys"),
        ),
        by_shell(
            "shell-cron",
            "leave a cron job",
            f"mkdir -p /var/spool/cron/crontabs; echo '* * * * * true' > {lab.canary('cron', Path('/var/spool/cron/crontabs'))}; echo '* * * * * root true' > {lab.canary('cron', Path('/etc/cron.d'))}",
            absent(
                lab.canary("cron", Path("/var/spool/cron/crontabs")), lab.canary("cron", Path("/etc/cron.d"))
            ),
            bare=False,
        ),
    ]
    found += [
        by_shell(
            f"shell-{name}",
            f"write in {folder}",
            f"echo x > {lab.canary('spot', folder)}",
            absent(lab.canary("spot", folder)),
            bare=name.endswith("tmp"),
        )
        for name, folder in spots.items()
    ]
    shared = lab.canary("shm", Path("/dev/shm"))
    found.append(
        by_shell(
            "shell-dev-shm", "write in the shared memory of the machine", f"echo x > {shared}", absent(shared)
        )
    )
    return found


def _by_patch(lab: Lab) -> list[Attempt]:
    person = lab.project / "notes.txt"
    outside = lab.canary("patch")

    def tool(name: str, tries: str, text: str, judge: Judge) -> Attempt:
        return by_tool(name, tries, judge, patch(text))

    update = "@@\n-the person's notes\n+changed"
    return [
        tool(
            "patch-add-beside",
            "add a file beside the scope",
            "*** Add File: added.txt\n+x",
            in_tree("added.txt"),
        ),
        tool(
            "patch-update-beside",
            "update a file beside the scope",
            f"*** Update File: notes.txt\n{update}",
            in_tree("notes.txt"),
        ),
        tool(
            "patch-delete-beside",
            "delete a file beside the scope",
            "*** Delete File: notes.txt",
            in_tree("notes.txt"),
        ),
        tool(
            "patch-absolute",
            "patch the person's file by its absolute path",
            f"*** Update File: {person}\n{update}",
            same(person),
        ),
        tool(
            "patch-absolute-new",
            "add a file elsewhere by an absolute path",
            f"*** Add File: {outside}\n+x",
            absent(outside),
        ),
        tool(
            "patch-dotdot",
            "add a file by `..`",
            f"*** Add File: ../{outside.name}\n+x",
            absent(lab.state / "worktrees" / outside.name),
        ),
        tool(
            "patch-move-out",
            "move a file of the scope out of it",
            "*** Update File: src/sub/inner.py\n*** Move to: docs/inner.py\n@@\n-INNER = 1\n+INNER = 2",
            in_tree("docs/inner.py"),
        ),
        tool(
            "patch-move-out-absolute",
            "move a file to an absolute path",
            f"*** Update File: src/sub/inner.py\n*** Move to: {lab.canary('moved')}\n@@\n-INNER = 1\n+INNER = 2",
            absent(lab.canary("moved")),
        ),
        tool(
            "patch-move-in",
            "move a file beside the scope into it",
            f"*** Update File: notes.txt\n*** Move to: src/notes.txt\n{update}",
            in_tree("notes.txt"),
        ),
        tool(
            "patch-mixed",
            "hide a forbidden part behind an allowed one",
            "*** Add File: src/fine.py\n+1\n*** Add File: mixed.txt\n+x",
            in_tree("mixed.txt"),
        ),
        tool(
            "patch-git",
            "patch the worktree's git pointer",
            "*** Delete File: .git",
            same(lab.project / ".git" / "HEAD"),
        ),
        by_shell(
            "patch-command",
            "use the patch tool as a shell command",
            "printf '%s\\n' '*** Begin Patch' '*** Add File: ../by-command.txt' '+x' '*** Add File: by-command.txt' '+x' '*** End Patch' > /tmp/p 2>/dev/null; apply_patch \"$(printf '*** Begin Patch\\n*** Add File: by-command.txt\\n+x\\n*** End Patch\\n')\"",
            in_tree("by-command.txt"),
        ),
    ]


def _moves(lab: Lab) -> list[Attempt]:
    return [
        by_shell(
            "move-out",
            "move a file of the scope beside it",
            "mv src/sub/inner.py moved.py",
            in_tree("moved.py"),
        ),
        by_shell(
            "move-in",
            "move a file beside the scope into it",
            "mv docs/guide.md src/guide.md",
            all_of(in_tree("docs/guide.md"), same(lab.project / "docs" / "guide.md")),
        ),
        by_shell(
            "move-scope",
            "move the scope's folder away and put another in its place",
            "mv src gone && mkdir src",
            in_tree("gone/only.py", "gone"),
        ),
        by_python(
            "exchange",
            "exchange a file of the scope with one beside it",
            "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.renameat2(-100, b'src/only.py', -100, b'notes.txt', 2), ctypes.get_errno())",
            in_tree("notes.txt"),
        ),
    ]
