"""Whole process trees: who is below whom, who is still who, and ending them all.

On Linux a process is told by pid and start time together, and signals go through a pidfd after that start
time was compared, so a recycled pid is never hit. A process that called `become_subreaper` inherits every
orphan below it, which makes "no child left" mean "no descendant left". Elsewhere psutil's view is used:
start times are compared too, but orphans leave the tree; that path is not tested.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from baton.process import guard

KILL_SECONDS = 10.0


@dataclass(frozen=True)
class ProcessId:
    """One process for certain: pid and start time (clock ticks since boot; elsewhere ms since 1970)."""

    pid: int
    start_time: int


def start_time(pid: int) -> int | None:
    """When the process started, or None when there is no such process. Zombies count as there."""
    if guard.LINUX:
        found = guard.entry(pid)
        return None if found is None else found.start
    try:
        return int(psutil.Process(pid).create_time() * 1000)
    except psutil.Error:
        return None


def boot_id() -> str:
    """Names this boot and pid namespace: pids and start times of another one mean nothing here."""
    if not guard.LINUX:
        return str(int(psutil.boot_time()))
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116


def is_alive(process: ProcessId) -> bool:
    """Whether that very process still runs; a zombie does not."""
    if guard.LINUX:
        found = guard.entry(process.pid)
        return found is not None and found.alive and found.start == process.start_time
    try:
        found_there = psutil.Process(process.pid)
        return start_time(process.pid) == process.start_time and found_there.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def descendants(pid: int) -> tuple[ProcessId, ...]:
    """Every live process below `pid`, without itself."""
    if guard.LINUX:
        return tuple(ProcessId(p.pid, p.start) for p in guard.descendants(pid) if p.alive)
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return ()
    return _with_start(process.pid for process in below)


def become_subreaper() -> bool:
    """Adopt every orphan below this process from now on; False where the system has no such thing.

    For the life of the process, and not inherited by children. The caller must in turn collect what it
    adopts: `end_descendants` does.
    """
    guard.prctl(guard.PR_SET_CHILD_SUBREAPER, 1)
    return guard.LINUX


def end_descendants(grace: float = 1.0) -> tuple[ProcessId, ...]:
    """End everything below this process, direct children included; those that could not be ended.

    For the end of a program: it also takes children that other code still waits for.
    """
    survivors = _end(lambda: descendants(os.getpid()), grace)
    reap(child.pid for child in _children_of_self())
    return survivors


def end_tree(process: ProcessId, grace: float = 1.0) -> tuple[ProcessId, ...]:
    """End that process and all below it; those that could not be ended. Nothing when it is gone.

    Descendants that are orphaned meanwhile are remembered from the first look on and ended as well. Raises
    `ValueError` for this process and its ancestors: nothing may end the ground it stands on.
    """
    if process.pid in {os.getpid(), *_ancestors()}:
        raise ValueError(f"process {process.pid} is this process or one of its ancestors")
    seen: dict[ProcessId, None] = {}

    def members() -> tuple[ProcessId, ...]:
        if is_alive(process):
            seen[process] = None
        for known in list(seen):
            if is_alive(known):
                seen.update(dict.fromkeys(descendants(known.pid)))
        return tuple(known for known in seen if is_alive(known))

    return _end(members, grace)


def end_processes(processes: Collection[ProcessId], grace: float = 1.0) -> tuple[ProcessId, ...]:
    """End these processes and nothing else, however they hang together; those that could not be ended.

    This process and its ancestors are left alone, and not among the result. For a guard or anything else
    that has a tree of its own, `end_tree` is right: a guard that is killed while it ends its tree leaves it.
    """
    spared = {os.getpid(), *_ancestors()}
    processes = [process for process in processes if process.pid not in spared]
    return _end(lambda: tuple(process for process in processes if is_alive(process)), grace)


def processes_with_marker(name: str, value: str) -> tuple[ProcessId, ...]:
    """Live processes of this user whose environment at their start held `name=value`.

    Finds what a dead runner left, however it daemonised. Never this process, never one of its ancestors:
    a caller that itself runs inside such a tree must not end itself. Processes that were started with a
    cleared environment are not found.
    """
    wanted = f"{name}={value}".encode()
    spared = {os.getpid(), *_ancestors()}
    if not guard.LINUX:
        return _with_start(
            p.pid for p in psutil.process_iter() if p.pid not in spared and _has(p, name, value)
        )
    found = []
    for process in guard.process_table():
        if process.alive and process.pid not in spared and wanted in _environment(process.pid):
            found.append(ProcessId(process.pid, process.start))
    return tuple(found)


def compiled_guard() -> str:
    """Where Python keeps the compiled form of the guard, if it could write one."""
    return importlib.util.cache_from_source(guard.__file__)


def guard_server() -> str:
    """The program that forks guards."""
    return str(Path(guard.__file__).with_name("guard_server.py"))


def adopted(name: str, value: str) -> tuple[ProcessId, ...]:
    """Live direct children whose environment at their start held `name=value`, without guards (Linux).

    A guard is a child by birth, with a tree of its own to end; what is left are orphans of others.
    """
    wanted = f"{name}={value}".encode()
    return tuple(
        ProcessId(child.pid, child.start)
        for child in _children_of_self()
        if child.alive and wanted in _environment(child.pid) and not _is_guard(child.pid)
    )


def session_members(session: int) -> tuple[ProcessId, ...]:
    """Live processes of one session, the leader included (Linux; nothing elsewhere).

    Raises `ValueError` for 0, the kernel's and init's session, and for the caller's own.
    """
    if session <= 0 or session == os.getsid(0):
        raise ValueError(f"session {session} is not one that Baton started")
    if not guard.LINUX:
        return ()
    return tuple(ProcessId(p.pid, p.start) for p in guard.process_table() if p.alive and p.session == session)


def memory_of_tree(pid: int, limit: int) -> int:
    """Bytes that the processes below `pid` hold together.

    The sum of resident sizes when that is within `limit`; beyond it shared pages are counted once (PSS),
    because a fork-heavy build would otherwise be taken for several times its size.
    """
    members = [member for member in map(_process, (p.pid for p in descendants(pid))) if member is not None]
    total = sum(_resident(member) for member in members)
    return total if total <= limit else sum(_proportional(member) for member in members)


def reap(pids: Iterable[int]) -> None:
    """Collect the exit status of adopted children that have ended; other pids are left alone."""
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _end(members: Callable[[], tuple[ProcessId, ...]], grace: float) -> tuple[ProcessId, ...]:
    _signal(members(), signal.SIGTERM)
    _signal(members(), signal.SIGCONT)
    if _gone_within(members, grace):
        return ()
    until = time.monotonic() + KILL_SECONDS
    while time.monotonic() < until:
        _signal(members(), signal.SIGKILL)
        if _gone_within(members, 0.05):
            return ()
    return members()


def _gone_within(members: Callable[[], tuple[ProcessId, ...]], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while members():
        if time.monotonic() >= until:
            return False
        time.sleep(0.01)
    return True


def _signal(processes: Iterable[ProcessId], number: int) -> None:
    for process in processes:
        if guard.LINUX:
            found = guard.entry(process.pid)
            if found is not None and found.start == process.start_time:
                guard.send(found, number)
        elif is_alive(process):
            try:
                os.kill(process.pid, number)
            except OSError:
                continue


def _children_of_self() -> list[guard.Entry]:
    if not guard.LINUX:
        return []
    return [process for process in guard.process_table() if process.parent == os.getpid()]


def _ancestors() -> set[int]:
    try:
        return {parent.pid for parent in psutil.Process().parents()}
    except psutil.Error:
        return {os.getppid()}


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []  # another user's, or gone


def _is_guard(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    programs = (guard.__file__, compiled_guard(), guard_server())
    return any(os.fsencode(program) in words for program in programs)


def _has(process: psutil.Process, name: str, value: str) -> bool:
    try:
        return process.environ().get(name) == value
    except (psutil.Error, OSError):
        return False


def _with_start(pids: Iterable[int]) -> tuple[ProcessId, ...]:
    started = ((pid, start_time(pid)) for pid in pids)
    return tuple(ProcessId(pid, start) for pid, start in started if start is not None)


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _proportional(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except psutil.Error:
        return _resident(process)
    return int(getattr(full, "pss", 0) or full.uss)
