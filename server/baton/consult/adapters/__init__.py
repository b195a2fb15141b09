"""One file for each agent command line, behind one small protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from baton.consult.adapters.protocol import Adapter, Runtime


def adapter_of(runtime: Runtime) -> Adapter:
    """The adapter of a runtime. Only its own file is loaded."""
    match runtime.value:
        case "codex":
            from baton.consult.adapters.codex import Codex

            return Codex()
        case "claude":
            from baton.consult.adapters.claude import Claude

            return Claude()
        case "opencode":
            from baton.consult.adapters.opencode import OpenCode

            return OpenCode()
        case "copilot":
            from baton.consult.adapters.copilot import Copilot

            return Copilot()
        case _:
            from baton.consult.adapters.antigravity import Antigravity

            return Antigravity()
