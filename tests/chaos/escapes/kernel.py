"""Mounts, namespaces, devices, handles, settings of the kernel, and paths that lead through /proc."""

from __future__ import annotations

from pathlib import Path

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
    in_tree,
    same,
    silent,
)
from chaos._lab import Lab


def missions(lab: Lab) -> list[Mission]:
    return [Mission("kernel", [*_kernel(lab), *_proc_paths(lab)])]


def _kernel(lab: Lab) -> list[Attempt]:
    person = lab.project / "notes.txt"
    canary = lab.canary("kernel")
    setting = Path("/proc/sys/fs/lease-break-time")
    cgroup = lab.canary("cgroup", Path("/sys/fs/cgroup"))
    suid = _no_suid(lab)
    handle = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint), ('type', ctypes.c_int), ('data', ctypes.c_char * 128)]
handle, mount = Handle(128, 0, b''), ctypes.c_int()
print(libc.name_to_handle_at(-100, {str(person)!r}.encode(), ctypes.byref(handle), ctypes.byref(mount), 0))
top = os.open({str(lab.project)!r}, os.O_RDONLY)
fd = libc.open_by_handle_at(top, ctypes.byref(handle), os.O_WRONLY | os.O_APPEND)
print(fd, ctypes.get_errno())
os.write(fd, b'x')
"""
    return [
        by_shell(
            "mount-remount",
            "make the root file system writable again",
            f"mount -o remount,rw / ; mount -o remount,bind,rw {lab.outside}; echo x > {canary}",
            absent(canary),
            bare=False,
        ),
        by_shell(
            "mount-tmp",
            "mount something over the person's folder",
            f"mount -t tmpfs none {lab.outside} && echo mounted-over",
            silent("mounted-over"),
            bare=False,
        ),
        by_shell(
            "unshare",
            "make namespaces of one's own and remount in them",
            f"unshare -Urm sh -c 'mount -o remount,rw / ; mount -o remount,bind,rw {lab.outside}; echo x > {canary}'",
            absent(canary),
            bare=False,
        ),
        by_shell(
            "nested-bwrap",
            "run a bubblewrap of one's own with everything writable",
            f"for b in bwrap $(ls -d {lab.binary.parent}/../*/bwrap {lab.binary.parent}/bwrap 2>/dev/null); do $b --bind / / sh -c 'echo x > {canary}'; done",
            absent(canary),
            bare=False,
        ),
        by_shell(
            "chroot",
            "change the root",
            f"chroot / sh -c 'echo x > {canary}'; chroot /proc/1/root sh -c 'echo x > {canary}'",
            absent(canary),
            bare=False,
        ),
        by_shell(
            "nsenter",
            "enter the namespaces of process 1",
            f"nsenter -t 1 -a sh -c 'echo x > {canary}'",
            absent(canary),
            bare=False,
        ),
        by_shell(
            "device-block",
            "make a device of the disk and open it",
            "mknod src/disk b 8 0; mknod $TMPDIR/disk b 8 0; head -c1 src/disk $TMPDIR/disk >/dev/null && echo device-read",
            all_of(silent("device-read"), in_tree("src/disk")),
            bare=False,
        ),
        by_shell(
            "device-mem",
            "read the machine's memory",
            "head -c1 /dev/mem /dev/kmem /dev/port >/dev/null 2>&1 && echo memory-read",
            silent("memory-read"),
            bare=False,
        ),
        by_shell(
            "sysctl", "change a setting of the kernel", f"echo 46 > {setting}", same(setting), bare=False
        ),
        by_shell("cgroup", "make a control group", f"mkdir {cgroup}", absent(cgroup), bare=False),
        by_shell(
            "suid",
            "make a set-user-id program in the scope and in scratch",
            "cp /bin/true src/suid; chmod 6755 src/suid; cp /bin/true $TMPDIR/suid; chmod 6755 $TMPDIR/suid",
            suid,
            bare=False,
        ),
        by_python("file-handle", "open the person's file by a handle, past the mounts", handle, same(person)),
        by_shell(
            "fifo",
            "leave a pipe in the scope, on which a reader would hang",
            "mkfifo src/pipe",
            in_tree("src/pipe"),
        ),
    ]


def _proc_paths(lab: Lab) -> list[Attempt]:
    person = lab.project / "notes.txt"
    canary = lab.canary("proc")
    pid = lab.victim.pid if lab.victim else 0
    reopen = f"import os\nfd = os.open({str(person)!r}, os.O_RDONLY)\nopen(f'/proc/self/fd/{{fd}}', 'a').write('x')"
    return [
        by_shell(
            "proc-self-root",
            "write through /proc/self/root",
            f"echo x > /proc/self/root{canary}",
            absent(canary),
        ),
        by_shell(
            "proc-self-cwd",
            "write through /proc/self/cwd",
            "echo x > /proc/self/cwd/by-cwd.txt",
            in_tree("by-cwd.txt"),
        ),
        by_shell(
            "proc-1-root", "write through /proc/1/root", f"echo x > /proc/1/root{canary}", absent(canary)
        ),
        by_shell(
            "proc-any-root",
            "write through the root of any process there is",
            f"for p in /proc/[0-9]*; do echo x > $p/root{canary}; done",
            absent(canary),
        ),
        by_shell(
            "proc-any-cwd",
            "write in the working directory of any process there is",
            f"for p in /proc/[0-9]*; do echo x > $p/cwd/{canary.name}; done",
            all_of(absent(canary), in_tree(canary.name)),
            # Without the walls it would write beside every program of this machine.
            bare=False,
        ),
        by_python("proc-reopen", "reopen a read-only descriptor for writing", reopen, same(person)),
        by_shell(
            "proc-victim",
            "read memory and environment of a process outside",
            f"cat /proc/{pid}/environ /proc/[0-9]*/environ | tr '\\0' '\\n' | grep VICTIM_TOKEN",
            silent(lab.secret("victim")),
        ),
    ]


def _no_suid(lab: Lab) -> Judge:
    """What matters is what another user could run, and what lands in the person's files."""

    def judged(seen: Seen) -> tuple[Outcome, str]:
        left = [
            path
            for folder in (lab.state, lab.project)
            for path in folder.rglob("suid")
            if not path.is_symlink() and path.stat().st_mode & 0o6000
        ]
        reachable = [path for path in left if path.is_relative_to(lab.project) or not _private(lab.state)]
        return (Outcome.ESCAPED, f"{reachable[0]} can be run") if reachable else (Outcome.PREVENTED, "")

    return judged


def _private(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o077
