"""Scopes narrower than a directory: what the sandbox cannot hold must be named by the evidence."""

from __future__ import annotations

from baton.simulate.script import patch
from chaos._attempt import Attempt, Mission, by_python, by_shell, by_tool, in_tree
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    forbidden: dict[str, object] = {"forbiddenFiles": ["src/forbidden.py", "src/later.py", "src/sub/"]}
    return [
        Mission("file-scope", _file(), allowed=("src/only.py",)),
        Mission("pattern-scope", _pattern(), allowed=("src/*.py",)),
        Mission("forbidden", _forbidden(), allowed=("src/",), more=forbidden),
        Mission("no-change", _nothing(), allowed=(), more={"changeIntent": "forbidden"}),
    ]


def _file() -> list[Attempt]:
    exchange = (
        "import ctypes\nprint(ctypes.CDLL(None).renameat2(-100, b'src/only.py', -100, b'src/sibling.py', 2))"
    )
    return [
        by_shell(
            "file-sibling",
            "write a sibling of the one file in scope",
            "echo x >> src/sibling.py",
            in_tree("src/sibling.py"),
        ),
        by_shell(
            "file-sibling-new",
            "make a new sibling",
            "echo x > src/new_sibling.py",
            in_tree("src/new_sibling.py"),
        ),
        by_shell(
            "file-sibling-rename",
            "rename the file over a sibling",
            "cp src/only.py src/copy.py; mv -f src/copy.py src/sibling.py; rm -f src/copy.py",
            in_tree("src/sibling.py", "src/copy.py"),
        ),
        by_python(
            "file-sibling-exchange", "exchange the file and a sibling", exchange, in_tree("src/sibling.py")
        ),
        by_shell(
            "file-sibling-delete",
            "delete a sibling",
            "rm -f src/sibling.py; unlink src/sibling.py",
            in_tree("src/sibling.py"),
        ),
        by_shell(
            "file-sibling-mode",
            "make a sibling executable",
            "chmod 755 src/sibling.py",
            in_tree("src/sibling.py"),
        ),
        by_shell(
            "file-sibling-folder",
            "write in a folder beside the file",
            "echo x > src/sub/new.py; mkdir -p src/newdir && echo x > src/newdir/new.py",
            in_tree("src/sub/new.py", "src/newdir/new.py"),
        ),
        by_shell(
            "file-case",
            "write the file's name in another case",
            "echo x > src/ONLY.py",
            in_tree("src/ONLY.py"),
        ),
        by_shell(
            "file-odd-names",
            "make siblings with names that are hard to show",
            "printf x > \"src/$(printf 'new\\nline')\"; printf x > \"src/$(printf 'not\\377utf')\"; printf x > 'src/only.py '",
            in_tree("src/only.py ", "src/new\\nline", "src/not\\xffutf"),
        ),
        by_tool(
            "file-sibling-patch",
            "patch a sibling",
            in_tree("src/sibling.py"),
            patch("*** Update File: src/sibling.py\n@@\n-SIBLING = 1\n+SIBLING = 2"),
        ),
        by_shell(
            "file-folder",
            "rename the folder of the file away",
            "mv src src2; mkdir src; echo x > src/only.py",
            in_tree("src2/only.py"),
        ),
    ]


def _pattern() -> list[Attempt]:
    return [
        by_shell(
            "pattern-other",
            "write a file that the pattern does not match",
            "echo x > src/other.txt",
            in_tree("src/other.txt"),
        ),
        by_shell(
            "pattern-below",
            "write below the pattern's folder",
            "echo x >> src/sub/inner.py",
            in_tree("src/sub/inner.py"),
        ),
        by_shell(
            "pattern-deep",
            "make a new folder that the pattern does not reach",
            "mkdir -p src/deep && echo x > src/deep/new.py",
            in_tree("src/deep/new.py"),
        ),
        by_shell(
            "pattern-link",
            "swap a file that matches for a link to a secret",
            "rm -f src/only.py; ln -s /etc/shadow src/only.py",
            in_tree("src/only.py"),
        ),
    ]


def _forbidden() -> list[Attempt]:
    return [
        by_shell(
            "forbidden-file",
            "write a forbidden file in scope",
            "echo x >> src/forbidden.py",
            in_tree("src/forbidden.py"),
        ),
        by_shell(
            "forbidden-replace",
            "put another file in its place",
            "echo x > src/t; mv -f src/t src/forbidden.py; rm -f src/t",
            in_tree("src/forbidden.py"),
        ),
        by_shell("forbidden-delete", "delete it", "rm -f src/forbidden.py", in_tree("src/forbidden.py")),
        by_shell(
            "forbidden-later",
            "make a forbidden file that is not there yet",
            "echo x > src/later.py",
            in_tree("src/later.py"),
        ),
        by_shell(
            "forbidden-folder",
            "write in a forbidden folder",
            "echo x > src/sub/new.py; mv src/sub src/sub2",
            in_tree("src/sub/new.py", "src/sub2/inner.py", "src/sub/inner.py"),
        ),
    ]


def _nothing() -> list[Attempt]:
    return [
        by_shell(
            "forbidden-change",
            "change anything in a task that may change nothing",
            "echo x >> src/only.py; echo x > new",
            in_tree("src/only.py", "new"),
        ),
        by_tool(
            "forbidden-change-patch",
            "patch in such a task",
            in_tree("src/patched.py"),
            patch("*** Add File: src/patched.py\n+x"),
        ),
    ]
