"""Forks a guard for every child of one owner: all that `guard.py` promises, without a Python start for each.

    python -I -S -E guard_server.py CHANNEL-HANDLE

A request on the channel is four bytes of length (network order), with which five handles come: the program's
standard input, output and errors, the death pipe and the report pipe. Then so many bytes, fields that each
end in NUL: the grace, the folder, the number of words of the command line, these words, `NAME=value` for each
variable of the program. What becomes of it is told on the report pipe by the guard, whose folder may be
missing as the program may.

A guard has a session of its own and nothing of the server's but its memory. It outlives the server, as it
outlives the owner until it has ended its tree. The server ends when the channel is closed; it adopts nobody:
what a killed guard leaves falls to the owner, as it does without a server.

Standard library only, and few modules of it.
"""

from __future__ import annotations

import gc
import os
import select
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket

    from baton.process import guard
else:
    import _signal as signal
    import _socket as socket

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - see guard.py
    import guard

HEADER = struct.Struct("!I")

HANDLES = struct.Struct("5i")


class Server:
    """Serves one owner."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.wake, self.wake_writer = os.pipe()

    def run(self) -> None:
        """Until the owner has closed its end, or half a request came."""
        self.listen()
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        poll.register(self.channel.fileno(), select.POLLIN)
        while True:
            for handle, _ in poll.poll():
                if handle == self.wake:
                    os.read(self.wake, 512)
                    reap()
                elif not self.take():
                    return

    def listen(self) -> None:
        os.set_blocking(self.wake, False)
        os.set_blocking(self.wake_writer, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_writer, warn_on_full_buffer=False)

    def take(self) -> bool:
        """One request; False when there will be no more."""
        try:
            head, told, _, _ = self.channel.recvmsg(
                HEADER.size, socket.CMSG_SPACE(HANDLES.size), socket.MSG_CMSG_CLOEXEC
            )
        except OSError:
            return False
        handles = [handle for _, _, data in told for (handle,) in struct.iter_unpack("i", data)]
        try:
            text = None if len(head) < HEADER.size else self.receive(HEADER.unpack(head)[0])
            if text is None:
                return False
            if len(handles) == HANDLES.size // 4 and os.fork() == 0:
                self.become_guard(text, handles)
        except OSError:
            pass  # no process to be had: closing the handles tells that
        finally:
            for handle in handles:
                os.close(handle)
        return True

    def receive(self, size: int) -> bytes | None:
        parts = []
        while size:
            part = self.channel.recv(min(size, 1 << 20))
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def become_guard(self, text: bytes, handles: list[int]) -> None:
        code = 125
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            for handle in (self.wake, self.wake_writer):
                os.close(handle)
            self.channel.close()
            for stream, handle in enumerate(handles[:3]):
                os.dup2(handle, stream)
                os.close(handle)
            code = keep(text, *handles[3:])
        finally:
            os._exit(code)


def keep(text: bytes, death: int, report: int) -> int:
    """Be the guard of the program that a request describes; the exit status to pass on."""
    grace, cwd, count, *words = text.split(b"\0")[:-1]
    argv, variables = words[: int(count)], words[int(count) :]
    options = guard.Options(["--death-fd", str(death), "--report-fd", str(report), "--", ""])
    options.grace = float(grace)
    options.argv = argv
    options.env = dict(variable.split(b"=", 1) for variable in variables)
    made = guard.Guard(options)
    try:
        os.chdir(cwd)
    except OSError as error:
        made.report(f"failed {error.errno} cwd")
        return 126
    try:
        return made.run()
    except BaseException:
        made.end_tree()  # as in guard.py: the promise about the tree stands
        raise


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    gc.disable()
    gc.freeze()
    Server(channel).run()


if __name__ == "__main__":
    main()
