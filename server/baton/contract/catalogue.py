"""One model as the installed Codex lists it."""

from __future__ import annotations

from baton.contract.base import Wire


class ModelEntry(Wire):
    """A model of the installed Codex's catalogue, as far as routing needs it."""

    slug: str
    """The name that goes on the wire, such as `gpt-5.6-luna`."""
    efforts: tuple[str, ...] = ()
    """Reasoning efforts that it supports, lowest first as Codex lists them; empty when Codex names none."""
    default_effort: str | None = None
    """The effort that Codex uses when nobody names one."""
    visibility: str = "list"
    """`list` when Codex offers it to people, `hide` otherwise."""
    upgrade: str | None = None
    """The slug that Codex recommends instead, for a model on its way out."""
    context_window: int | None = None
    """Tokens; None when unknown."""

    @property
    def listed(self) -> bool:
        return self.visibility == "list"
