"""The rows of the verdict's table: what a worker does, and what is so afterwards. Each has its own folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from baton.contract.claim import ClaimStatus
from baton.contract.states import FailureClass, Integration, Verdict
from baton.simulate import script, workers
from baton.simulate.request import Request
from baton.simulate.script import Patch, Say, Shell, Step, add_file, shell
from baton.simulate.workers import report

SEED = "seed\n"

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120777

APPLIED, NOTHING, HELD = Integration.APPLIED, Integration.NOTHING, Integration.HELD

ODD_NAMES = (
    b"caf\xe9",
    b"two\nlines",
    b'it\'s "so"',
    b"-rf",
    "naïve 日本".encode(),
    b" \t",
    b"back\\slash*?",
)


@dataclass(frozen=True)
class Row:
    """One worker, one task, and what must be so afterwards. Paths are relative to the row's own folder."""

    steps: tuple[Step, ...]
    verdict: Verdict
    changes: tuple[str, ...] = ()
    """As `kind path`, or `renamed old → new`: what the captured tree says."""
    integration: Integration | None = None
    task: Mapping[str, Any] = field(default_factory=dict)
    """What the task says beside its objective; by default its own folder is in scope, with one check."""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    """In the workspace before the run, beside seed.txt."""
    after: Mapping[str, tuple[int, bytes] | None] = field(default_factory=dict)
    """How the workspace differs afterwards: mode and content, None for a path that is gone."""
    failure: FailureClass | None = None


def _run(command: str) -> Step:
    """One command in the row's folder."""
    return shell("cd {row} && { " + command + "; }")


def _does(command: str, *files: str) -> tuple[Step, ...]:
    """A worker that runs one command in its folder and claims PASS."""
    return (_run(command), report(files=[f"{{row}}/{file}" for file in files]))


def _half(step: Step) -> tuple[Step, ...]:
    """A worker that has written a file when it gives another answer."""
    return (_run("echo half > half.txt"), step)


def _octal(name: bytes) -> str:
    return "".join(f"\\{byte:03o}" for byte in name)


_ODD = " && ".join(f": > \"./$(printf '{_octal(name)}')\"" for name in ODD_NAMES)

_GIT = "git -c user.name=w -c user.email=w@example.invalid"

ROWS: dict[str, Row] = {
    "honest": Row(
        workers.honest({"{row}/new.txt": "new\n"}, ["test -f {row}/new.txt"]),
        Verdict.VERIFIED,
        ("added new.txt",),
        APPLIED,
        {"verificationCommands": ["test -f {row}/new.txt"]},
        after={"new.txt": (FILE, b"new\n")},
    ),
    "by-patch": Row(
        (add_file("{row}/patched.txt", "by patch"), report(files=["{row}/patched.txt"])),
        Verdict.VERIFIED,
        ("added patched.txt",),
        APPLIED,
        after={"patched.txt": (FILE, b"by patch\n")},
    ),
    "false-pass": Row(
        workers.false_pass({"{row}/seed.txt": "wrong\n"}, ["grep seed {row}/seed.txt"]),
        Verdict.FAILED,
        ("modified seed.txt",),
        task={"verificationCommands": ["true", "grep seed {row}/seed.txt"]},
    ),
    "blocked": Row(workers.blocked("Which colour?"), Verdict.BLOCKED),
    "blocked-halfway": Row(
        _half(report(ClaimStatus.BLOCKED, blockers=["Which colour?"])),
        Verdict.BLOCKED,
        ("added half.txt",),
    ),
    "says-failed": Row(
        _half(report(ClaimStatus.FAILED, blockers=["It is too hard."])),
        Verdict.FAILED,
        ("added half.txt",),
    ),
    "empty-diff": Row((report(files=["{row}/seed.txt"]),), Verdict.NO_CHANGE),
    "same-content": Row(_does("cp seed.txt s && mv s seed.txt && touch seed.txt"), Verdict.NO_CHANGE),
    "ready": Row(workers.idle_answer(), Verdict.NO_CHANGE),
    "nothing-to-do": Row((report(),), Verdict.VERIFIED, (), NOTHING, {"changeIntent": "optional"}),
    "untracked": Row(
        _does("mkdir -p deep/er && echo u > deep/er/u.txt", "deep/er/u.txt"),
        Verdict.VERIFIED,
        ("added deep/er/u.txt",),
        APPLIED,
        after={"deep/er/u.txt": (FILE, b"u\n")},
    ),
    "mode": Row(
        _does("chmod 755 seed.txt", "seed.txt"),
        Verdict.VERIFIED,
        ("mode seed.txt 100644 → 100755",),
        APPLIED,
        after={"seed.txt": (PROGRAM, SEED.encode())},
    ),
    "rename": Row(
        _does("mv old.txt new.txt", "old.txt", "new.txt"),
        Verdict.VERIFIED,
        ("renamed old.txt → new.txt",),
        APPLIED,
        files={"old.txt": "one\ntwo\nthree\n"},
        after={"old.txt": None, "new.txt": (FILE, b"one\ntwo\nthree\n")},
    ),
    "removal": Row(
        _does("rm old.txt", "old.txt"),
        Verdict.VERIFIED,
        ("deleted old.txt",),
        APPLIED,
        files={"old.txt": "old\n"},
        after={"old.txt": None},
    ),
    "link-inside": Row(
        _does("ln -s seed.txt link", "link"),
        Verdict.VERIFIED,
        ("added link",),
        APPLIED,
        after={"link": (LINK, b"seed.txt")},
    ),
    "file-to-folder": Row(
        _does("rm thing && mkdir thing && echo in > thing/in", "thing", "thing/in"),
        Verdict.VERIFIED,
        ("added thing/in", "deleted thing"),
        APPLIED,
        files={"thing": "a file\n"},
        after={"thing": None, "thing/in": (FILE, b"in\n")},
    ),
    "binary": Row(
        _does("printf '\\000\\377\\r\\n\\032' > b.bin", "b.bin"),
        Verdict.VERIFIED,
        ("added b.bin",),
        APPLIED,
        after={"b.bin": (FILE, b"\0\xff\r\n\x1a")},
    ),
    "odd-names": Row(
        _does(_ODD),
        Verdict.VERIFIED,
        (
            r"added  \x09",
            "added -rf",
            r"added back\\slash*?",
            r"added caf\xe9",
            'added it\'s "so"',
            "added naïve 日本",
            r"added two\x0alines",
        ),
        APPLIED,
        after={name.decode("utf-8", "surrogateescape"): (FILE, b"") for name in ODD_NAMES},
    ),
    "nested": Row(
        _does("git init -q inner && echo i > inner/i && echo o > outer.txt", "outer.txt", "inner/i"),
        Verdict.VERIFIED,
        ("added outer.txt",),
        APPLIED,
        after={"outer.txt": (FILE, b"o\n")},
    ),
    "only-nested": Row(_does("git init -q inner && echo i > inner/i"), Verdict.NO_CHANGE),
    "ignored": Row(
        _does("echo log > a.log && echo o > outer.txt", "outer.txt"),
        Verdict.VERIFIED,
        ("added outer.txt",),
        APPLIED,
        after={"outer.txt": (FILE, b"o\n")},
    ),
    "only-ignored": Row(_does("echo log > a.log"), Verdict.NO_CHANGE),
    "commits": Row(
        _does(f"echo c > c.txt; git add -A . && {_GIT} commit -qm mine; git tag mine; git stash", "c.txt"),
        Verdict.VERIFIED,
        ("added c.txt",),
        APPLIED,
        after={"c.txt": (FILE, b"c\n")},
    ),
    "wrong-list": Row(
        _does("echo r > real.txt", "imagined.txt"),
        Verdict.VERIFIED,
        ("added real.txt",),
        APPLIED,
        after={"real.txt": (FILE, b"r\n")},
    ),
    "malformed": Row(
        _half(script.say("All done, have a look!")),
        Verdict.UNVERIFIED,
        ("added half.txt",),
    ),
    "half-report": Row(
        _half(script.say({"status": "PASS", "summary": "ok"})),
        Verdict.UNVERIFIED,
        ("added half.txt",),
    ),
    "no-check": Row(
        _does("echo n > n.txt", "n.txt"),
        Verdict.UNVERIFIED,
        ("added n.txt",),
        task={"verificationCommands": []},
    ),
    "missing-program": Row(
        _does("echo n > n.txt", "n.txt"),
        Verdict.UNVERIFIED,
        ("added n.txt",),
        task={"verificationCommands": ["true", "no-such-program-at-all --now"]},
    ),
    "check-writes": Row(
        _does("echo n > n.txt", "n.txt"),
        Verdict.VERIFIED,
        ("added n.txt",),
        APPLIED,
        {"verificationCommands": ["touch {row}/made-by-the-check"]},
        after={"n.txt": (FILE, b"n\n")},
    ),
    "forbidden": Row(
        _does("echo f > f.txt; echo f > seed.txt; rm seed.txt", "f.txt"),
        Verdict.VERIFIED,
        (),
        NOTHING,
        {"changeIntent": "forbidden", "allowedFiles": []},
    ),
    "escaping": Row(
        (
            _run("echo in > in.txt; echo out > ../false-pass/out.txt; mv ../mode/seed.txt taken"),
            add_file("{row}/../honest/out.txt", "out"),
            report(files=["{row}/in.txt"]),
        ),
        Verdict.VERIFIED,
        ("added in.txt", "added taken"),
        APPLIED,
        after={"in.txt": (FILE, b"in\n"), "taken": (FILE, SEED.encode())},
    ),
    "out-of-pattern": Row(
        _does("echo x > src/x.txt; echo y > src/y.py", "src/y.py"),
        Verdict.FAILED,
        ("added src/x.txt", "added src/y.py"),
        task={"allowedFiles": ["{row}/src/**/*.py"]},
        files={"src/a.py": "a = 1\n"},
    ),
    "renamed-out-of-pattern": Row(
        _does("mv src/a.py src/a.txt", "src/a.py"),
        Verdict.FAILED,
        ("renamed src/a.py → src/a.txt",),
        task={"allowedFiles": ["{row}/src/**/*.py"]},
        files={"src/a.py": "a = 1\nb = 2\n"},
    ),
    "new-forbidden": Row(
        _does("echo k > new.key", "new.key"),
        Verdict.FAILED,
        ("added new.key",),
        task={"forbiddenFiles": ["*.key"]},
    ),
    "leaving-link": Row(_does("ln -s /etc/hostname link", "link"), Verdict.FAILED, ("added link",)),
    "leaving-by-steps": Row(_does("ln -s ../../.. link", "link"), Verdict.FAILED, ("added link",)),
    # Failures of the turn, told apart; what was written before is kept.
    "unknown-model": Row(
        _half(script.unknown_model("gpt-0")),
        Verdict.FAILED,
        ("added half.txt",),
        failure=FailureClass.UNKNOWN_MODEL,
    ),
    "auth": Row(_half(script.fail(401)), Verdict.FAILED, ("added half.txt",), failure=FailureClass.AUTH),
    "rate": Row(
        _half(script.rate_limited()), Verdict.FAILED, ("added half.txt",), failure=FailureClass.RATE_LIMIT
    ),
    "usage-limit": Row(
        _half(script.usage_limit()), Verdict.FAILED, ("added half.txt",), failure=FailureClass.USAGE_LIMIT
    ),
    "overflow": Row(
        _half(script.context_overflow()),
        Verdict.FAILED,
        ("added half.txt",),
        failure=FailureClass.CONTEXT_OVERFLOW,
    ),
    "overloaded": Row(
        _half(script.overloaded()), Verdict.FAILED, ("added half.txt",), failure=FailureClass.OVERLOADED
    ),
    "bad-request": Row(
        _half(script.fail(400)), Verdict.FAILED, ("added half.txt",), failure=FailureClass.BAD_REQUEST
    ),
    "dropped": Row(
        _half(script.drop_connection()), Verdict.FAILED, ("added half.txt",), failure=FailureClass.NETWORK
    ),
    "fails-at-once": Row((script.fail(401),), Verdict.FAILED, failure=FailureClass.AUTH),
}


def folder_of(name: str) -> str:
    return f"rows/{name}"


def placed(step: Step, folder: str) -> Step:
    """The step with `{row}` standing for the row's folder."""
    match step:
        case Shell(command):
            return replace(step, command=command.replace("{row}", folder))
        case Patch(text) | Say(text):
            return replace(step, text=text.replace("{row}", folder))
    if not callable(step):
        return step

    def decide(request: Request) -> Step:
        made = step(request)
        assert not isinstance(made, Sequence)
        return placed(made, folder)

    return decide


def task_of(name: str, row: Row, objective: str) -> dict[str, Any]:
    """The task of a row, as a supervisor would send it."""
    task: dict[str, Any] = {
        "id": name,
        "objective": objective,
        "allowedFiles": ["{row}/"],
        "verificationCommands": ["test -d {row}"],
        **row.task,
    }
    for key in ("allowedFiles", "verificationCommands"):
        task[key] = [text.replace("{row}", folder_of(name)) for text in task[key]]
    return task
