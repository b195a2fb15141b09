"""Names of files are UTF-8 to Codex; a Python that reads them otherwise would name it other files.

What a worker may not read or write would then be a path that is not there, and the real one would be open.
"""

from __future__ import annotations

import os
import sys

from baton.contract.errors import Unsupported


def go_on_in_utf8() -> None:
    """Have this program begin again in UTF-8 where its locale is another one; first thing in every `main`.

    Process, arguments and open files stay as they are. Does not return then.
    """
    if _is_utf8():
        return
    os.environ["PYTHONUTF8"] = "1"  # for the programs of Baton's that this one starts
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def require_utf8() -> None:
    """Raises `Unsupported` in a process that takes names of files for something else."""
    if not _is_utf8():
        raise Unsupported(
            f"this Python reads names of files as {sys.getfilesystemencoding()}, and Codex reads UTF-8; "
            "start it with PYTHONUTF8=1"
        )


def _is_utf8() -> bool:
    return sys.getfilesystemencoding().lower().replace("-", "") == "utf8"
