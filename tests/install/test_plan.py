"""The three-way decision on one file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.install.disk import Found, There
from baton.install.owned import Kind, OwnedFile
from baton.install.plan import Act, Decision, decide

NOTHING = Found(There.NOTHING)
HASHES = st.sampled_from(["a", "b", "c"])
FOUND = st.one_of(
    st.just(NOTHING),
    st.builds(Found, st.just(There.FILE), HASHES),
    st.builds(Found, st.just(There.LINK), st.none() | HASHES),
    st.just(Found(There.OTHER)),
)


def record(shipped: str, installed: str | None = None, kind: Kind = Kind.AGENT) -> OwnedFile:
    return OwnedFile(path="x", kind=kind, shipped=shipped, installed=installed or shipped, version="1")


def here(sha256: str) -> Found:
    return Found(There.FILE, sha256)


@pytest.mark.parametrize(
    ("shipped", "owned", "found", "act"),
    [
        ("a", None, NOTHING, Act.INSTALL),
        ("a", None, here("a"), Act.KEEP),
        ("a", None, here("b"), Act.REFUSE),
        ("a", None, Found(There.LINK, "a"), Act.REFUSE),
        ("a", None, Found(There.OTHER), Act.REFUSE),
        ("a", record("a"), here("a"), Act.KEEP),
        ("b", record("a"), here("a"), Act.REPLACE),
        ("b", record("a"), here("b"), Act.KEEP),
        ("a", record("a"), here("c"), Act.EDITED),
        ("b", record("a"), here("c"), Act.EDITED),
        ("b", record("a"), Found(There.LINK, "a"), Act.EDITED),
        ("a", record("a"), NOTHING, Act.DELETED),
        ("b", record("a"), NOTHING, Act.DELETED),
        (None, record("a"), here("a"), Act.RETIRE),
        (None, record("a"), here("c"), Act.RELEASE),
        (None, record("a"), NOTHING, Act.FORGET),
        # An edit that was kept through an upgrade, and then taken back by the person.
        ("b", record("b", installed="a"), here("a"), Act.REPLACE),
    ],
)
def test_each_combination_of_shipped_installed_and_on_disk_has_its_decision(
    shipped: str | None, owned: OwnedFile | None, found: Found, act: Act
) -> None:
    assert decide(Kind.AGENT, shipped, owned, found).act is act


def test_ours_is_put_beside_an_edit_only_when_it_has_changed() -> None:
    assert not decide(Kind.AGENT, "a", record("a"), here("c")).beside
    assert decide(Kind.AGENT, "b", record("a"), here("c")).beside


@pytest.mark.parametrize("kind", [Kind.BUNDLE, Kind.COMMAND])
def test_a_deleted_part_of_the_program_is_damage_and_comes_back(kind: Kind) -> None:
    assert decide(kind, "a", record("a", kind=kind), NOTHING).act is Act.INSTALL


def test_an_edited_part_of_the_program_gives_way_and_is_kept_apart() -> None:
    assert decide(Kind.BUNDLE, "b", record("a", kind=Kind.BUNDLE), here("c")) == Decision(
        Act.REPLACE, keep_apart=True, why="edited by you; your version is kept apart"
    )


@given(
    kind=st.sampled_from(Kind),
    shipped=st.none() | HASHES,
    owned=st.none() | st.builds(record, HASHES, HASHES),
    found=FOUND,
    familiar=st.booleans(),
    adopt=st.booleans(),
    restore=st.booleans(),
)
def test_nothing_of_a_persons_is_ever_overwritten_or_removed_without_being_kept(
    kind: Kind,
    shipped: str | None,
    owned: OwnedFile | None,
    found: Found,
    familiar: bool,
    adopt: bool,
    restore: bool,
) -> None:
    decision = decide(kind, shipped, owned, found, familiar=familiar, adopt=adopt, restore=restore)
    if decision.writes or decision.act is Act.RETIRE:
        ours = owned is not None and found.sha256 in (owned.installed, shipped)
        assert found.there is There.NOTHING or ours or decision.keep_apart
        assert found.there is not There.OTHER
    if owned is None and not adopt:
        assert not decision.writes or found.there is There.NOTHING
