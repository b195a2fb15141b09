"""Artifacts: what is read is what was kept, and what nobody needs any more is found."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.contract.errors import NotFound, StateUnavailable
from baton.contract.states import RunState
from baton.ledger.artifacts import Artifacts
from baton.ledger.records import ArtifactRef
from baton.ledger.state import StateFolder
from baton.ledger.store import Ledger
from ledger.samples import RUN, a_run


@pytest.fixture
def artifacts(state: StateFolder) -> Artifacts:
    return Artifacts(state)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.binary(), st.integers(0, 100), st.none() | st.integers(0, 100))
def test_any_part_of_what_was_kept_is_read(
    artifacts: Artifacts, data: bytes, offset: int, limit: int | None
) -> None:
    name = artifacts.put_bytes(data)
    assert name == hashlib.sha256(data).hexdigest()
    assert artifacts.read(name, offset, limit) == data[offset:][:limit]
    assert artifacts.size(name) == len(data)


def test_file_is_kept_by_content_and_taken_when_asked(artifacts: Artifacts, test_root: Path) -> None:
    path = test_root / "output"
    path.write_bytes(b"x" * 3_000_000)
    name = artifacts.put_file(path)
    assert path.exists()
    assert artifacts.put_file(path, move=True) == name == artifacts.put_bytes(b"x" * 3_000_000)
    assert not path.exists()
    assert artifacts.read(name, 2_999_999) == b"x"
    assert [one for one, _, _ in artifacts.all()] == [name]


def test_artifacts_are_private_and_leave_no_half_files(artifacts: Artifacts, state: StateFolder) -> None:
    artifacts.put_bytes(b"one")
    artifacts.put_bytes(b"one")
    files = [path for path in state.artifacts.rglob("*") if path.is_file()]
    assert len(files) == 1
    assert files[0].stat().st_mode & 0o777 == 0o600


def test_damaged_artifact_is_said_not_shown(artifacts: Artifacts, state: StateFolder) -> None:
    name = artifacts.put_bytes(b"evidence")
    (path,) = [path for path in state.artifacts.rglob("*") if path.is_file()]
    assert artifacts.read(name) == b"evidence"
    path.write_bytes(b"forged!!")
    os.utime(path, ns=(1, 1))
    with pytest.raises(StateUnavailable, match="damaged"):
        artifacts.read(name, 0, 3)
    assert not artifacts.is_sound(name)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 64, "0" * 63, "A" * 64, "0" * 64 + "\n"])
def test_id_that_is_not_known_is_not_found(artifacts: Artifacts, name: str) -> None:
    with pytest.raises(NotFound):
        artifacts.read(name)
    assert artifacts.delete(name) == 0


def test_same_content_kept_by_many_threads_is_kept_once(artifacts: Artifacts) -> None:
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda: names.append(artifacts.put_bytes(b"same" * 10_000))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names) == 8
    assert len(set(names)) == 1
    assert artifacts.is_sound(names[0])


def test_state_that_cannot_be_written_is_said_in_one_line(state: StateFolder, artifacts: Artifacts) -> None:
    state.artifacts.rmdir()
    state.artifacts.write_bytes(b"not a folder")
    with pytest.raises(StateUnavailable, match="cannot be kept or read") as said:
        artifacts.put_bytes(b"x")
    assert "\n" not in str(said.value)


def test_only_old_artifacts_that_no_run_needs_are_unneeded(ledger: Ledger, artifacts: Artifacts) -> None:
    needed, unneeded, young = (artifacts.put_bytes(word) for word in (b"needed", b"unneeded", b"young"))
    ledger.create_run(a_run(), [])
    for _ in range(2):
        ledger.refer_to_artifact(ArtifactRef(run_id=RUN, name="brief", artifact=needed, size=6))
    assert [ref.name for ref in ledger.artifact_refs(RUN)] == ["brief"]
    for path in ledger.db.state.artifacts.rglob("*"):
        if path.name in (needed, unneeded):
            os.utime(path, (0, 0))
    assert list(ledger.unneeded_artifacts(artifacts)) == [(unneeded, 8)]
    artifacts.put_bytes(b"unneeded")
    assert list(ledger.unneeded_artifacts(artifacts)) == []
    assert {name for name, _ in ledger.unneeded_artifacts(artifacts, young_seconds=-60)} == {unneeded, young}
    ledger.update_run(RUN, state=RunState.DONE)
    ledger.delete_run(RUN)
    assert [name for name, _ in ledger.unneeded_artifacts(artifacts)] == [needed]
    assert artifacts.delete(needed) == 6
    assert not artifacts.exists(needed)


def test_bytes_of_an_artifact_count_once(ledger: Ledger) -> None:
    ledger.create_run(a_run(), [])
    ledger.create_run(a_run("rother222"), [])
    for run_id, name, artifact, size in (
        (RUN, "a", "x", 10), (RUN, "b", "x", 10), (RUN, "c", "y", 5), ("rother222", "a", "x", 10),
    ):  # fmt: skip
        ledger.refer_to_artifact(ArtifactRef(run_id=run_id, name=name, artifact=artifact, size=size))
    assert ledger.artifact_bytes(RUN) == 15
    assert ledger.artifact_bytes("rother222") == 10
    assert ledger.artifact_bytes() == 15
    assert ledger.artifact_bytes("rnone2222") == 0
