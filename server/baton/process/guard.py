"""Starts one program and answers for its whole process tree, whatever becomes of the tree or of the owner.

    python -I -S -E guard.py [--death-fd N] [--report-fd N] [--grace SECONDS] [--drop NAME]... -- ARGV...

The program gets this process's standard streams, folder and environment, and a session of its own. The tree
is ended when the program ends (what it left behind), when the death pipe closes (the owner is gone, even by
SIGKILL), and on TERM, INT or HUP; a second signal skips the grace. Ending means SIGTERM, the grace, then
SIGKILL until the kernel says that no child is left, which on Linux includes every descendant however it
daemonised: this process is their subreaper. Should the guard itself be killed, the program dies with it;
what it had started falls to the next subreaper above (see `tree.py`).

Exit status: the program's own; 128+n when signal n ended it; 126 or 127 when it could not be started.
Lines on the report pipe: `started PID [PID-OF-A-FORKED-GUARD]` or `failed ERRNO [cwd]`, then
`ended exit=N signal=N leftovers=N survivors=N cause=(none|owner|signal)`.

What escapes by design: processes of another user (set-uid), and what another daemon starts on request.
Outside Linux there is neither subreaper nor /proc: only the program's process group is ended there, so a
descendant with its own session survives. That path is not tested.

Standard library only, and few modules of it: every check and every worker server pays for this start.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the same functions and plain numbers, without a third of the start-up time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE = 0x1, 0x20, 0x1000, 0x4000, 0x80000

KERNEL_SETTINGS = b"/proc/sys"

SETTLE_SECONDS = 0.05
"""A helper that is about to exit by itself is not something left behind."""

KILL_SECONDS = 10.0
"""How long SIGKILL is repeated before what is left (uninterruptible, another user's) is reported."""

ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

LINUX = sys.platform == "linux"


class Entry:
    """One process as /proc shows it. `start` is in clock ticks since boot: with the pid, an identity."""

    __slots__ = ("parent", "pid", "session", "start", "state")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.state = fields[0]
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.start = int(fields[19])

    @property
    def alive(self) -> bool:
        return self.state not in (b"Z", b"X")


def entry(pid: int) -> Entry | None:
    """The process with this pid, or None when there is none (Linux)."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - pathlib costs start-up time
            return Entry(pid, file.read())
    except (OSError, ValueError):
        return None


def process_table() -> list[Entry]:
    """Every process that /proc shows, in no order. Not one moment: processes come and go while it is read."""
    found = (entry(int(name)) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return [process for process in found if process is not None]


def descendants(pid: int, table: list[Entry] | None = None) -> list[Entry]:
    """Children, their children and so on, nearest first; without `pid` itself; zombies included (Linux)."""
    children: dict[int, list[Entry]] = {}
    for process in process_table() if table is None else table:
        children.setdefault(process.parent, []).append(process)
    found: list[Entry] = []
    queue = [pid]
    while queue:
        below = children.pop(queue.pop(0), [])
        found.extend(below)
        queue.extend(process.pid for process in below)
    return found


def kill_children() -> None:
    """SIGKILL every direct child the moment it is seen, newest first (Linux).

    For those that fork and exit faster than a table of all processes is read. No other process can have got
    the pid of a child that has not been collected.
    """
    if not LINUX:
        return
    me = os.getpid()
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):  # noqa: PTH208
        process = entry(pid)
        if process is not None and process.parent == me:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue


def send(process: Entry, signum: int) -> bool:
    """Signal exactly this process, never another that got its pid since; False when it is gone or foreign."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        now = entry(process.pid)
        if now is None or now.start != process.start:
            return False
        signal.pidfd_send_signal(handle, signum)
        return True
    except OSError:
        return False
    finally:
        os.close(handle)


def prctl(option: int, value: int) -> None:
    """Linux process control; without effect on kernels that lack the option and on other systems."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def protect_kernel_settings() -> None:
    """Let this process and what it starts see the kernel's settings read-only; for root alone.

    A sandbox does not take from root what the owner of a file may do, and root owns these: one of them names
    a program that the kernel runs outside every sandbox. The rest of the machine sees them as before. Where
    the mounts may not be changed, as in most containers, nothing happens; there they are read-only already.
    """
    if not LINUX or os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None)
    if libc.unshare(CLONE_NEWNS) != 0:
        return
    # What is mounted elsewhere still shows here; what is mounted here shows nowhere else.
    libc.mount(None, b"/", None, MS_REC | MS_SLAVE, None)
    if libc.mount(KERNEL_SETTINGS, KERNEL_SETTINGS, None, MS_BIND, None) == 0:
        libc.mount(None, KERNEL_SETTINGS, None, MS_BIND | MS_REMOUNT | MS_RDONLY, None)


class Options:
    """The command line; a fault in it is a fault of Baton's and ends with status 125."""

    argv: list[str] | list[bytes]

    def __init__(self, words: list[str]) -> None:
        self.death_fd = -1
        self.report_fd = -1
        self.grace = 1.0
        self.drop: list[str] = []
        self.env: dict[bytes, bytes] | None = None
        """The program's variables; None: this process's, without those to drop."""
        rest = list(words)
        while rest and rest[0] != "--":
            name, value = rest.pop(0), rest.pop(0) if len(rest) > 1 else ""
            if name == "--death-fd":
                self.death_fd = int(value)
            elif name == "--report-fd":
                self.report_fd = int(value)
            elif name == "--grace":
                self.grace = float(value)
            elif name == "--drop":
                self.drop.append(value)
            else:
                raise ValueError(f"unknown option {name}")
        self.argv = rest[1:]
        if not self.argv:
            raise ValueError("no program given")


class Guard:
    """One program, its tree, and the two things that end it early: the owner's pipe and a signal."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.main = -1
        self.status: int | None = None
        self.cause = "none"
        self.forced = False
        self.wake, self.wake_writer = os.pipe()
        self.poll = select.poll()

    def run(self) -> int:
        """Start the program, see it and its tree to the end, return the exit status to pass on."""
        self.listen()
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        failure = self.start()
        if failure:
            self.report(f"failed {failure}")
            return 127 if failure == 2 else 126
        # Who started this process himself knows its pid.
        own = "" if self.options.env is None else f" {os.getpid()}"
        self.report(f"started {self.main}{own}")
        self.let_streams_go()
        while self.status is None and self.cause == "none":
            self.sleep(None)
            self.reap()
        leftovers = self.count_leftovers() if self.cause == "none" else 0
        survivors = self.end_tree() if self.reap() or not LINUX else 0
        status = self.status if self.status is not None else signal.SIGKILL
        code, killer = os.waitstatus_to_exitcode(status), 0
        if code < 0:
            code, killer = 128 - code, -code
        counts = f"leftovers={leftovers} survivors={survivors}"
        self.report(f"ended exit={code} signal={killer} {counts} cause={self.cause}")
        for number in ENDING_SIGNALS:
            # One that comes while the interpreter shuts down would become our exit status.
            signal.signal(number, signal.SIG_IGN)
        return code

    def listen(self) -> None:
        os.set_blocking(self.wake, False)
        os.set_blocking(self.wake_writer, False)
        for number in (*ENDING_SIGNALS, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self.wake_writer, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        self.poll.register(self.wake, select.POLLIN)
        for handle in (self.options.death_fd, self.options.report_fd):
            if handle >= 0:
                os.set_inheritable(handle, False)
        if self.options.death_fd >= 0:
            self.poll.register(self.options.death_fd, select.POLLIN)

    def start(self) -> int:
        """Fork and exec; 0, or the errno that kept the program from starting."""
        reader, writer = os.pipe()
        guard = os.getpid()
        try:
            self.main = os.fork()
        except OSError as error:
            return error.errno or 11
        if self.main == 0:
            self.become_program(guard, writer)
        os.close(writer)
        told = os.read(reader, 16)
        os.close(reader)
        if told:
            os.waitpid(self.main, 0)  # or the owner would inherit it
        return int(told or 0)

    def become_program(self, guard: int, writer: int) -> None:
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:
                os._exit(125)
            os.setsid()
            signal.set_wakeup_fd(-1)
            for number in (*ENDING_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            for name in self.options.drop:
                os.environ.pop(name, None)
            protect_kernel_settings()
            env = os.environ if self.options.env is None else self.options.env
            os.execvpe(self.options.argv[0], self.options.argv, env)
        except OSError as error:
            os.write(writer, str(error.errno).encode())
        except BaseException:
            os.write(writer, b"8")
        os._exit(126)

    def let_streams_go(self) -> None:
        """The program alone holds its streams, so a reader sees their end when the program closes them."""
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.close(null)

    def report(self, line: str) -> None:
        if self.options.report_fd < 0:
            return
        try:
            os.write(self.options.report_fd, line.encode() + b"\n")
        except OSError:
            return  # nobody listens any more; the tree still has to be ended

    def sleep(self, seconds: float | None) -> None:
        """Wait for a child, a signal or the owner's end, at most so long; notes what ends the tree."""
        for handle, _ in self.poll.poll(None if seconds is None else max(1, int(seconds * 1000))):
            if handle == self.wake:
                self.note_signals(os.read(self.wake, 512))
            elif not os.read(handle, 512):
                self.poll.unregister(handle)
                if self.cause == "none":
                    self.cause = "owner"

    def note_signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number in ENDING_SIGNALS:
                self.forced = self.cause != "none"
                if self.cause == "none":
                    self.cause = "signal"

    def reap(self) -> bool:
        """Collect every dead child; True while one is left. A subreaper without children has no tree."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.main:
                self.status = status

    def live(self) -> list[Entry]:
        return [process for process in descendants(os.getpid()) if process.alive] if LINUX else []

    def count_leftovers(self) -> int:
        until = time.monotonic() + SETTLE_SECONDS
        while self.reap():
            if time.monotonic() >= until:
                return max(1, len(self.live()))  # one that forks on and on may show itself in no table
            self.sleep(0.01)
        return 0

    def end_tree(self) -> int:
        """End every descendant; the number of those that even SIGKILL did not end in time."""
        self.signal_all(signal.SIGTERM)
        self.signal_all(signal.SIGCONT)
        until = time.monotonic() + self.options.grace
        while self.reap() and not self.forced and time.monotonic() < until:
            self.sleep(0.02)
        until = time.monotonic() + KILL_SECONDS
        while self.reap():
            kill_children()
            self.signal_all(signal.SIGKILL)
            self.sleep(0.005)
            if time.monotonic() >= until:
                return max(1, len(self.live()))
        return 0

    def signal_all(self, number: int) -> None:
        for process in self.live():
            send(process, number)
        if not LINUX and self.main > 0:
            try:
                os.killpg(self.main, number)
            except OSError:
                return


def main() -> int:
    """The entry point of `baton-guard`."""
    try:
        options = Options(sys.argv[1:])
    except (ValueError, IndexError) as error:
        sys.stderr.write(f"baton-guard: {error}\n")
        return 125
    guard = Guard(options)
    try:
        return guard.run()
    except BaseException:
        guard.end_tree()  # whatever went wrong in here, the promise about the tree stands
        raise


if __name__ == "__main__":
    sys.exit(main())
