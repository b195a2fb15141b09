"""The `baton` command. Errors are one line on standard error; exit status 1 for a failure, 2 for misuse."""

from __future__ import annotations

import sys

import click

from baton import __version__
from baton.cli.group import Lazy, Program


class _Commands(Lazy, Program):
    """All commands."""

    places = {
        "policy": ("baton.cli.policy", "policy"),
        "models": ("baton.cli.models", "models"),
        "activity": ("baton.cli.activity", "activity"),
        "runs": ("baton.cli.runs", "runs"),
        "usage": ("baton.cli.usage", "usage"),
        "demo": ("baton.cli.demo", "demo"),
        "pool": ("baton.cli.pool", "pool"),
        "gc": ("baton.cli.gc", "gc"),
        "install": ("baton.cli.install", "install"),
        "uninstall": ("baton.cli.install", "uninstall"),
        "doctor": ("baton.cli.doctor", "doctor"),
        "status": ("baton.cli.status", "status"),
        "agents": ("baton.cli.agents", "agents"),
        "history": ("baton.cli.history", "history"),
        "search": ("baton.cli.search", "search"),
        "export": ("baton.cli.export", "export"),
        "strengths": ("baton.cli.strengths", "strengths"),
        "dashboard": ("baton.cli.dashboard", "dashboard"),
        "report": ("baton.cli.report", "report"),
        "consult": ("baton.cli.consult", "consult"),
        "review": ("baton.cli.review", "review"),
        "workflow": ("baton.cli.workflow", "workflow"),
        "scorecard": ("baton.cli.scorecard", "scorecard"),
        "init": ("baton.cli.init", "init"),
    }


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="baton")
def baton() -> None:
    """Delegate bounded work to Codex workers, verified before it lands."""


def main() -> None:
    """Entry point."""
    if sys.platform == "win32":
        # Before anything that a Windows Python cannot even import.
        sys.exit("baton: Windows is not supported; use Linux, macOS, or a Linux distribution under WSL")
    from baton.process.logs import set_up_logging
    from baton.process.utf8 import go_on_in_utf8
    from baton.runtime.use import hold_own_environment

    go_on_in_utf8()
    set_up_logging("error", "%(name)s: %(message)s")
    hold_own_environment()
    baton(prog_name="baton")


if __name__ == "__main__":
    main()
