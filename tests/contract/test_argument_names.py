"""Errors name an argument as whoever made the call knows it, and leave everything else as it is."""

from __future__ import annotations

import click
import pytest

from baton.cli.review import review
from baton.cli.workflow import workflow
from baton.contract.argument_names import renamed
from baton.contract.errors import InvalidInput
from baton.contract.review import ReviewCall
from baton.contract.workflow import WorkflowCall
from baton.review.words import TerminalWords as ReviewWords
from baton.workflow.words import TerminalWords as WorkflowWords

NAMES = {"dispositions": "--finding", "bindings": "--bind", "diffRef": "--diff", "context": "--context"}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("dispositions: there is no finding dispositions", "--finding: there is no finding dispositions"),
        ("bindings.review: nobody", "--bind review: nobody"),
        ("workflow.bindings.plan: nobody", "--bind plan: nobody"),
        ("workflow.dispositions[0].disposition: wrong", "--finding: wrong"),
        ("diffRef 'context: x': is no commit", "--diff 'context: x': is no commit"),
        ("context, bindings: not now", "--context, --bind: not now"),
        ("context, other: not now", "context, other: not now"),
        ("the diffRef is wrong: context: x", "the diffRef is wrong: context: x"),
        ("workflow.roots: no folder", "workflow.roots: no folder"),
        ("/home/x/context: cannot be read", "/home/x/context: cannot be read"),
    ],
)
def test_only_what_an_error_begins_with_is_renamed(said: str, told: str) -> None:
    assert renamed(InvalidInput(said), NAMES, "workflow").message == told
    assert renamed(InvalidInput(said), {}, "workflow").message == said


@pytest.mark.parametrize(
    ("group", "call", "words"),
    [(review, ReviewCall, ReviewWords()), (workflow, WorkflowCall, WorkflowWords())],
)
def test_every_name_for_a_terminal_is_an_option_that_there_is(
    group: click.Group, call: type[ReviewCall | WorkflowCall], words: ReviewWords | WorkflowWords
) -> None:
    wire = {field.alias or name for name, field in call.model_fields.items()}
    assert set(words.arguments) <= wire
    there = {
        option
        for command in group.commands.values()
        for parameter in command.params
        for option in parameter.opts
    }
    typed = {name for name in words.arguments.values() if name.startswith("--")}
    assert typed and typed <= there
