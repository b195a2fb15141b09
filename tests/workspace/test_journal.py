"""A journal says what was planned and how far it got, whatever happened to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.contract.errors import StateUnavailable
from baton.workspace.journal import Act, Journal, Mark, Operation, Plan
from baton.workspace.journal_place import INSIDE, journals, new_journal, tidy
from baton.workspace.pathwalk import Entry

SIDES = st.none() | st.builds(
    Entry, st.sampled_from([0o100644, 0o120000]), st.text("0123456789abcdef", max_size=4)
)
STEPS = st.tuples(st.sampled_from(Act), st.binary(min_size=1, max_size=6), SIDES, SIDES)


def quiet(name: str) -> None:
    pass


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(STEPS, max_size=5), cut=st.integers(0, 400))
def test_what_is_read_is_what_was_written_up_to_where_the_record_ends(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[Act, bytes, Entry | None, Entry | None]],
    cut: int,
) -> None:
    folder = tmp_path_factory.mktemp("journal") / "run"
    plan = Plan(
        Path("/some/\udcff"), "sha1", True, tuple(Operation(n, *step) for n, step in enumerate(steps))
    )
    journal = Journal.create(folder, plan, quiet)
    for mark in (Mark.STAGED, Mark.COMMITTED, Mark.CLOSED):
        journal.mark(mark)
    assert Journal(folder, quiet).read() == (plan, Mark.CLOSED)
    record = (folder / "journal").read_bytes()
    (folder / "journal").write_bytes(record[:cut])
    whole = record[: cut + 1].count(b"\n") if cut < len(record) else 4
    expected = [None, Mark.PLANNED, Mark.STAGED, Mark.COMMITTED, Mark.CLOSED][whole]
    assert Journal(folder, quiet).read() == (plan if whole else None, expected)


def test_a_record_takes_the_place_of_a_torn_one(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "run", Plan(tmp_path, "sha1", True, ()), quiet)
    journal.mark(Mark.STAGED)
    record = (tmp_path / "run/journal").read_bytes()
    (tmp_path / "run/journal").write_bytes(record[:-4])
    journal.mark(Mark.UNDONE)
    assert journal.read() == (Plan(tmp_path, "sha1", True, ()), Mark.UNDONE)


def test_a_journal_lies_in_the_git_directory_beside_or_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "w"
    common = root / ".git"
    common.mkdir(parents=True)
    assert new_journal(root, common, "r") == common / "baton/apply/r"
    assert new_journal(root, None, "r") == tmp_path / ".w.baton-journal/r"
    monkeypatch.setattr("os.access", lambda path, mode: str(path).startswith(str(root)))
    assert new_journal(root, None, "r") == root / INSIDE / "r"
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(StateUnavailable, match="make it writable"):
        new_journal(root, None, "r")


def test_empty_places_are_tidied_and_journals_are_found_in_all_of_them(tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / INSIDE).mkdir(parents=True)
    (tmp_path / ".w.baton-journal" / "r").mkdir(parents=True)
    tidy(root, None)
    assert list(journals(root, None)) == [tmp_path / ".w.baton-journal" / "r"]
    assert not (root / INSIDE).exists()
