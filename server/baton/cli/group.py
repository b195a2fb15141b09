"""Groups of commands: what a person reads in their help, and when a command is used wrongly."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar

import click
from click.exceptions import NoArgsIsHelpError

from baton.cli.shown import many_lines
from baton.contract.errors import BatonError, InvalidInput
from baton.contract.nearest import did_you_mean

log = logging.getLogger(__name__)

MAX_FAULT = 300
"""Characters shown of an error that nobody expected."""


class Group(click.Group):
    """Commands by name. An unknown name is one line that says which there are; summaries are never cut."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and self.get_command(ctx, name) is None and not name.startswith("-"):
            known = self.list_commands(ctx)
            advice = did_you_mean(name, known, "commands: " + ", ".join(known))
            raise InvalidInput(f"{ctx.command_path} has no command {name!r}; {advice}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Every command with its whole first sentence."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(1000)) for name, command in commands if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Lazy(click.Group):
    """Commands by name, some loaded only when they are used, so that they cost the others nothing."""

    places: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Module and attribute of each command that is not there yet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        place = self.places.get(name)
        if place is None:
            return super().get_command(ctx, name)
        command = getattr(import_module(place[0]), place[1])
        assert isinstance(command, click.Command)
        return command


class Program(Group):
    """The outermost group: whatever is expected to go wrong is one line and an exit status, 1 or 2."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **more: Any) -> Any:
        """Run and exit; with `standalone_mode=False` errors go to the caller instead."""
        if not more.get("standalone_mode", True):
            return super().main(args, *rest, **more)
        try:
            status = super().main(args, *rest, **{**more, "standalone_mode": False})
        except NoArgsIsHelpError as error:
            error.show()
            status = error.exit_code
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            where = context.command_path if context else self._named(sys.argv[1:] if args is None else args)
            message = " ".join(error.format_message().split()).removesuffix(".")
            click.echo(many_lines(f"baton: {message}; see `{where} --help`"), err=True)
            status = error.exit_code
        except click.Abort as error:
            ended = isinstance(error.__context__, EOFError)
            if error.__cause__ is None:
                click.echo(err=True)  # It was a question, and the cursor is still behind it.
            told = "nobody is there to answer; --yes agrees without being asked" if ended else "interrupted"
            click.echo(f"baton: {told}", err=True)
            status = 130
        sys.exit(status if isinstance(status, int) else 0)

    def _named(self, args: Sequence[str]) -> str:
        """The command that arguments begin with, for an error that does not say where it is."""
        at: click.Command = self
        path = ["baton"]
        for word in args:
            found = at.get_command(click.Context(at), word) if isinstance(at, click.Group) else None
            if found is None:
                break
            at = found
            path.append(word)
        return " ".join(path)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an expected error becomes one line and an exit status."""
        try:
            return super().invoke(ctx)
        except BatonError as error:
            click.echo(many_lines(f"baton: {error.message}"), err=True)
            ctx.exit(2 if isinstance(error, InvalidInput) else 1)
        except BrokenPipeError:
            # The reader of our output has gone; that is its right.
            sys.stderr.close()
            ctx.exit(0)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OSError as error:
            # The machine refuses something: a full disk, a folder that went away.
            place = f": {error.filename}" if error.filename else ""
            click.echo(many_lines(f"baton: {error.strerror or error}{place}"), err=True)
            ctx.exit(1)
        except Exception as error:
            # A fault of ours, or a record that is not as we write them: one line too, and nothing is hidden.
            log.debug("the command failed", exc_info=True)
            told = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_FAULT]
            where = "" if log.isEnabledFor(logging.DEBUG) else "; BATON_LOG=debug shows where"
            click.echo(many_lines(f"baton: a fault of Baton's own ({told}){where}"), err=True)
            ctx.exit(1)
