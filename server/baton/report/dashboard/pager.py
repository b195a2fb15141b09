"""Which page of a list is shown, and where the others are. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from baton.report.dashboard.query import Query


@dataclass(frozen=True)
class Pager:
    """One page of a list whose length is known."""

    page: int
    """From 1."""
    total: int
    """Entries of all pages."""
    size: int
    """Entries of one."""
    before: str | None
    """Addresses of the neighbours."""
    after: str | None

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.size

    @property
    def first(self) -> int:
        return min(self.offset + 1, self.total)

    @property
    def last(self) -> int:
        return min(self.offset + self.size, self.total)


def pager(query: Query, total: int, size: int) -> Pager:
    """The page that `page` names; the last one when there are not so many."""
    pages = max(1, -(-total // size))
    page = min(query.number("page", 1) or 1, pages)
    return Pager(
        page=page,
        total=total,
        size=size,
        before=query.with_(page=page - 1) if page > 1 else None,
        after=query.with_(page=page + 1) if page < pages else None,
    )
