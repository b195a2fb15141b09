"""Runs git so that nothing in a repository, a work tree or the environment can make it run anything else."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from baton.contract.errors import BatonError, StateUnavailable, Unsupported
from baton.process.there import program_on_path

MINIMUM = (2, 38)
"""The first git whose merge-tree writes trees."""

DEADLINE = 600.0
"""Seconds a single git command may take."""

# Settings that could start a program or write beside what was asked; given on the command line they win.
_INERT = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "core.logAllRefUpdates=false",
    "core.pager=cat",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
)


class GitFailed(BatonError):
    """Raised when a git command fails in a way its caller did not expect; says which command and why."""

    code = "git_failed"

    def __init__(self, message: str, exit_code: int, stderr: bytes) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr


@dataclass(frozen=True)
class Output:
    """What a git command printed. `cut` is true when it was ended for printing more than allowed."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    cut: bool = False


@dataclass(frozen=True)
class Git:
    """A git program, and the environment it gets: the caller's without any GIT_* variable.

    Safe to use from several threads.
    """

    binary: Path
    version: tuple[int, int, int]
    environment: Mapping[str, str]
    held: tuple[int, ...] = ()
    """Open files that each command inherits: a lock among them is held until the last command has ended,
    should its caller be killed."""

    @classmethod
    def find(cls, environment: Mapping[str, str] | None = None) -> Git:
        """The git on PATH.

        Raises `Unsupported` when there is none or it is older than 2.38.
        """
        base = os.environ if environment is None else environment
        found = program_on_path("git", base)
        if found is None:
            raise Unsupported("git was not found on PATH; install git 2.38 or newer")
        version = _version(found)
        if version[:2] < MINIMUM:
            shown = ".".join(map(str, version))
            raise Unsupported(f"git {shown} at {found} is too old; install git 2.38 or newer")
        return cls(found, version, _scrubbed(base))

    def own(
        self,
        args: Sequence[str | bytes],
        *,
        git_dir: Path,
        work_tree: Path | None = None,
        env: Mapping[str, str] | None = None,
        input: bytes | None = None,
        ok: Sequence[int] = (0,),
        max_output: int | None = None,
        timeout: float = DEADLINE,
    ) -> Output:
        """Run in a repository of Baton's: no configuration but its own, every folder named explicitly."""
        variables = {
            "GIT_DIR": str(git_dir),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            **(env or {}),
        }
        if work_tree is not None:
            variables["GIT_WORK_TREE"] = str(work_tree)
        return self._run(args, work_tree or git_dir, variables, input, ok, max_output, timeout)

    def theirs(
        self,
        args: Sequence[str | bytes],
        *,
        cwd: Path,
        input: bytes | None = None,
        ok: Sequence[int] = (0,),
        max_output: int | None = None,
        timeout: float = DEADLINE,
    ) -> Output:
        """Run in the person's repository under their configuration (ignore rules, ownership rules).

        Their index is never refreshed, nothing is fetched, no program of theirs is started.
        """
        return self._run(args, cwd, {}, input, ok, max_output, timeout)

    def _run(
        self,
        args: Sequence[str | bytes],
        cwd: Path,
        variables: Mapping[str, str],
        input: bytes | None,
        ok: Sequence[int],
        max_output: int | None,
        timeout: float,
    ) -> Output:
        argv: list[str | bytes] = [str(self.binary), "--no-pager"]
        for setting in _INERT:
            argv += ["-c", setting]
        argv += args
        env = {**self.environment, **variables}
        output = _communicate(argv, cwd, env, input, max_output, timeout, self.held)
        if output.exit_code not in ok and not output.cut:
            raise _failure(args, cwd, output)
        return output


def _scrubbed(base: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in base.items() if not name.upper().startswith("GIT_")}
    kept.pop("LANGUAGE", None)
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        # A partial clone must not go to the network; before git 2.45 only a refused protocol says so.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
    }


def _communicate(
    argv: Sequence[str | bytes],
    cwd: Path,
    environment: Mapping[str, str],
    input: bytes | None,
    max_output: int | None,
    timeout: float,
    held: Sequence[int],
) -> Output:
    with _nameless_file() as errors, contextlib.ExitStack() as stack:
        stdin: int = subprocess.DEVNULL
        if input is not None:
            # A file instead of a pipe: git may print before it has read everything.
            given = stack.enter_context(_nameless_file())
            given.write(input)
            given.seek(0)
            stdin = given.fileno()
        try:
            child = subprocess.Popen(
                argv,
                cwd=cwd,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                pass_fds=held,
            )
        except FileNotFoundError:
            raise GitFailed(f"cannot run git in {cwd}: the folder or git itself is gone", 127, b"") from None
        with child:
            try:
                stdout, cut = _read(child, max_output, timeout)
            except BaseException:
                _end(child)
                raise
            if cut:
                _end(child)
        errors.seek(0)
        return Output(child.returncode, stdout, errors.read(65536), cut)


def _nameless_file() -> IO[bytes]:
    """A file that only its handle leads to; in memory where the system has such, which no disk can slow."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("git", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile()


def _read(child: subprocess.Popen[bytes], limit: int | None, timeout: float) -> tuple[bytes, bool]:
    if limit is None:
        try:
            return child.communicate(timeout=timeout)[0], False
        except subprocess.TimeoutExpired:
            raise GitFailed(f"git did not end within {timeout:.0f} s", -9, b"") from None
    assert child.stdout is not None
    data = child.stdout.read(limit + 1)
    return data[:limit], len(data) > limit


def _end(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _failure(args: Sequence[str | bytes], cwd: Path, output: Output) -> BatonError:
    text = output.stderr.decode("utf-8", "replace")
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return StateUnavailable(f"no space left while running git in {cwd}; free some and try again")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("hint:")]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
    why = (fatal or lines or [f"exit code {output.exit_code}"])[0]
    verb = next((str(arg) for arg in args if isinstance(arg, str) and not arg.startswith("-")), "")
    return GitFailed(f"git {verb} failed in {cwd}: {why[:300]}", output.exit_code, output.stderr)


@lru_cache(maxsize=8)
def _version(binary: Path) -> tuple[int, int, int]:
    try:
        done = subprocess.run(
            [binary, "version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unsupported(f"git at {binary} cannot be run: {error}") from None
    match = re.search(rb"git version (\d+)\.(\d+)(?:\.(\d+))?", done.stdout)
    if match is None:
        said = done.stderr.decode("utf-8", "replace").strip()
        why = f": {said.splitlines()[0][:300]}" if said else ""
        raise Unsupported(f"git at {binary} does not say its version{why}")
    return int(match[1]), int(match[2]), int(match[3] or 0)
