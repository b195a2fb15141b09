"""Ends what a worker left running, so that nothing it started outlives its turn."""

from __future__ import annotations

from collections.abc import Sequence

from baton.codex.appserver import AppServer
from baton.codex.thread import WorkerThread
from baton.contract.errors import CodexFailure
from baton.engine.blocking import blocking
from baton.process.tree import ProcessId, end_tree, start_time


async def quiet(server: AppServer, thread: WorkerThread) -> str | None:
    """End the commands of a thread whose turn is over, and have the server unload it.

    Where that cannot be done, or is not answered, the whole server is ended; what is then to be told is
    returned. Call it shielded from cancellation.
    """
    if not server.alive:
        # Its commands die with it, but not in the same instant: until the tree is gone they may still write.
        await server.close()
        return None
    try:
        left = await thread.clean_terminals()
        if left:
            # Only this thread's commands: other threads of the server go on.
            left = await blocking(_end, left)
        why = f"{len(left)} of its commands could not be ended" if left else None
    except CodexFailure as broken:
        why = broken.message
    if why is None:
        # A thread that stays loaded would keep its old sandbox when it is resumed with a new one.
        await thread.forget()
        return None
    # Its end is the end of every command it started.
    await server.close()
    return f"the app-server was ended to stop the worker's commands: {why}"


def _end(pids: Sequence[int]) -> tuple[int, ...]:
    """End processes with all below them; those that could not be ended."""
    found = ((pid, start_time(pid)) for pid in pids)
    trees = [ProcessId(pid, started) for pid, started in found if started is not None]
    return tuple(process.pid for tree in trees for process in end_tree(tree))
