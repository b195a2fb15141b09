"""Layers: who wins, where a value comes from, and how each bad file reads."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.policy.bundle import bundle_root
from baton.policy.layer import PERSON_LIMIT, PROJECT_LIMIT, LayerName
from baton.policy.load import load_layers, load_policy, recorded_policy

from .conftest import WriteLayer

NEW_ROLE = """
[roles.typist]
description = "Types."
tier = "luna"
effort = "low"
change_intent = "required"
template = "worker"
instructions = "Type."
"""


def _refusal(codex_home: Path | None, project: Path | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_policy(codex_home, project)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_absent_files_leave_the_shipped_policy(codex_home: Path, project: Path) -> None:
    assert load_policy(codex_home, project) == load_policy(None, None)


def test_persons_value_wins_and_its_origin_is_kept(codex_home: Path, person: WriteLayer) -> None:
    file = person("[deadlines]\nidle_seconds = 7.5\n[network]\nworker_hosts = ['docs.example.org']\n")
    layered = load_layers(codex_home, None)
    assert layered.policy.deadlines.idle_seconds == 7.5
    assert layered.policy.network.worker_hosts == ("docs.example.org",)
    origins = {name: origin for name, _, origin in layered.values()}
    assert (origins["deadlines.idle_seconds"].layer, origins["deadlines.idle_seconds"].file) == (
        LayerName.PERSON,
        file,
    )
    assert origins["deadlines.run_seconds"].layer is LayerName.SHIPPED


def test_person_may_add_a_role_and_make_it_the_default(codex_home: Path, person: WriteLayer) -> None:
    person("[routing]\ndefault_role = 'typist'\n" + NEW_ROLE)
    name, role = load_policy(codex_home, None).role(None)
    assert (name, role.instructions) == ("typist", "Type.")


def test_project_narrows_what_the_person_has_set(
    codex_home: Path, project: Path, person: WriteLayer, repository: WriteLayer
) -> None:
    person("[concurrency]\nmax_parallel = 12\n")
    repository("[concurrency]\nmax_parallel = 8\n")
    layered = load_layers(codex_home, project)
    assert layered.policy.concurrency.max_parallel == 8
    assert layered.origins["concurrency", "max_parallel"].layer is LayerName.PROJECT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[deadline]\nx = 1", "deadline: unknown key; did you mean 'deadlines'?"),
        ("[deadlines]\nidleSeconds = 1", "deadlines.idleSeconds: unknown key; did you mean 'idle_seconds'?"),
        ("[network]\nzzz = 1", "network.zzz: unknown key; known: worker_hosts"),
        (
            "[roles.luna-worker]\nefort = 'low'",
            "roles.luna-worker.efort: unknown key; did you mean 'effort'?",
        ),
        ("[deadlines]\nidle_seconds = '7'", 'deadlines.idle_seconds: expected a number, got "7"'),
        ("[deadlines]\nidle_seconds = nan", "deadlines.idle_seconds: expected a finite number, got nan"),
        ("[deadlines]\nidle_seconds = 0", "deadlines.idle_seconds: expected greater than 0, got 0"),
        ("[deadlines]\nidle_seconds = 1979-05-27", "deadlines.idle_seconds: expected a number"),
        ("[concurrency]\nmax_parallel = 2.5", "concurrency.max_parallel: expected a whole number, got 2.5"),
        ("[concurrency]\nmax_parallel = true", "concurrency.max_parallel: expected a whole number, got true"),
        (
            "[enforcement]\nrequire_prevention = 1",
            "enforcement.require_prevention: expected a boolean, got 1",
        ),
        ("[root]\nmode = 'lazy'", "root.mode: expected 'adaptive' or 'control-plane', got \"lazy\""),
        ("[network]\nworker_hosts = 'a.b'", 'network.worker_hosts: expected a list, got "a.b"'),
        ("[network]\nworker_hosts = ['a.b', 3]", "network.worker_hosts[1]: expected a string, got 3"),
        ("[network]\nworker_hosts = ['a.b', 'a.b']", "network.worker_hosts: must not name an entry twice"),
        ("[network]\nworker_hosts = ['http://a.b']", "network.worker_hosts[0]: expected text of the form"),
        ("[checks]\nunsandboxed = ['make test']", "checks.unsandboxed[0]: expected a list"),
        ("[checks]\nunsandboxed = [[]]", "checks.unsandboxed[0]: "),
        ("[dependencies]\nfolders = ['../up']", "dependencies.folders[0]: must be the name of a folder"),
        ("root = 'adaptive'", 'root: expected a table, got "adaptive"'),
        ("[[roles]]\ntier = 'luna'", "roles: expected a table"),
        ("[root]\nmode = 'adaptiv'", "got \"adaptiv\"; did you mean 'adaptive'?"),
        ("[root.mode]\nx = 1", "root.mode: expected 'adaptive' or 'control-plane'"),
        ("[tiers.luna]\ndefault_effort = 'ultra'", "tiers.luna.default_effort: expected 'none', 'minimal'"),
        ("[roles.Typist]\ntier = 'luna'", "roles.Typist: expected text of the form"),
        ("[roles.luna-workr]\neffort = 'low'", "did you mean roles.luna-worker?"),
        (
            "[roles.luna-worker]\ntier = 'lune'",
            "roles.luna-worker.tier: expected the name of a tier; did you mean",
        ),
        ("[routing]\ndefault_role = 'nobody'", "routing.default_role: expected the name of a role; known: "),
    ],
)
def test_fault_in_a_file_is_one_line_with_file_key_and_expectation(
    codex_home: Path, person: WriteLayer, text: str, expected: str
) -> None:
    file = person(text)
    message = _refusal(codex_home)
    assert message.startswith(f"{file}: ")
    assert expected in message


def test_several_faults_are_told_at_once_and_the_rest_counted(codex_home: Path, person: WriteLayer) -> None:
    person("\n".join(f"[x{number}]" for number in range(8)))
    message = _refusal(codex_home)
    assert message.count("unknown key") == 5
    assert message.endswith("and 3 more")


def test_fault_names_the_file_that_it_is_in(
    codex_home: Path, project: Path, person: WriteLayer, repository: WriteLayer
) -> None:
    person("[deadlines]\nidle_seconds = 100\n")
    file = repository("[deadlines]\nturn_seconds = 'soon'\n")
    assert _refusal(codex_home, project).startswith(f"{file}: deadlines.turn_seconds: ")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"[root]\nmode = = 1\n", "line 2, column 8: "),
        (b"[root]\nmode = 'adaptive'\nmode = 'adaptive'\n", "line 3, column "),
        (b"[root", "line 1, column 6: "),
        (b"[root]\nmode = '\xff'\n", "line 2, column 9: not UTF-8"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "line 1, column "),
        (b"a = 1\0", "line 1, column 6: "),
    ],
)
def test_text_that_is_not_toml_is_placed(codex_home: Path, content: bytes, place: str) -> None:
    file = codex_home / "baton" / "policy.toml"
    file.parent.mkdir()
    file.write_bytes(content)
    message = _refusal(codex_home)
    assert message.startswith(f"{file}: ")
    assert place in message


def test_byte_order_mark_is_not_a_fault(codex_home: Path, person: WriteLayer) -> None:
    person("\ufeff[concurrency]\nmax_parallel = 2\n")
    assert load_policy(codex_home, None).concurrency.max_parallel == 2


def test_empty_file_changes_nothing(codex_home: Path, person: WriteLayer) -> None:
    person("")
    assert load_policy(codex_home, None) == load_policy(None, None)


def test_what_is_there_but_is_no_file_is_never_taken_as_empty(codex_home: Path, project: Path) -> None:
    (codex_home / "baton" / "policy.toml").mkdir(parents=True)
    assert "not a regular file" in _refusal(codex_home)
    (project / ".codex").mkdir()
    os.mkfifo(project / ".codex" / "baton.toml")
    assert "not a regular file" in _refusal(None, project)
    (project / ".codex" / "baton.toml").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        # The path of a socket may be short only, hence the relative one.
        here = Path.cwd()
        os.chdir(project / ".codex")
        try:
            server.bind("baton.toml")
        finally:
            os.chdir(here)
        assert "cannot be read" in _refusal(None, project)


def test_unreadable_file_is_an_error(
    codex_home: Path,
    project: Path,
    person: WriteLayer,
    repository: WriteLayer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {str(person("")), "baton.toml"}
    repository("")
    open_ = os.open

    def refuse(path: str | Path, flags: int, *args: int, **options: int) -> int:
        # As for a file of another user; the tests may run as root, who reads everything.
        if str(path) in files:
            raise PermissionError(13, "Permission denied")
        return open_(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", refuse)
    assert "cannot be read: Permission denied" in _refusal(codex_home)
    assert "cannot be read: Permission denied" in _refusal(None, project)


def test_link_to_nowhere_is_an_error(codex_home: Path, project: Path) -> None:
    (codex_home / "baton").mkdir()
    (codex_home / "baton" / "policy.toml").symlink_to("gone")
    assert "leads nowhere" in _refusal(codex_home)
    (project / ".codex").mkdir()
    (project / ".codex" / "baton.toml").symlink_to("gone")
    assert "leads nowhere" in _refusal(None, project)


def test_circle_of_links_is_an_error(project: Path) -> None:
    (project / ".codex").mkdir()
    (project / ".codex" / "baton.toml").symlink_to("baton.toml")
    assert "cannot be read" in _refusal(None, project)


@pytest.mark.parametrize("linked", [".codex", ".codex/baton.toml"])
def test_projects_file_is_not_followed_out_of_the_project(
    test_root: Path, project: Path, linked: str
) -> None:
    outside = test_root / "outside"
    outside.mkdir()
    (outside / "baton.toml").write_text("[concurrency]\nmax_parallel = 1\n")
    (project / linked).parent.mkdir(exist_ok=True)
    (project / linked).symlink_to(outside if linked == ".codex" else outside / "baton.toml")
    assert "leads out of the project" in _refusal(None, project)


def test_link_within_the_project_is_followed(project: Path) -> None:
    (project / "shared.toml").write_text("[concurrency]\nmax_parallel = 1\n")
    (project / ".codex").mkdir()
    (project / ".codex" / "baton.toml").symlink_to("../shared.toml")
    assert load_policy(None, project).concurrency.max_parallel == 1


def test_project_reached_through_a_link_has_its_own_file(test_root: Path, project: Path) -> None:
    (project / ".codex").mkdir()
    (project / ".codex" / "baton.toml").write_text("[concurrency]\nmax_parallel = 1\n")
    (test_root / "alias").symlink_to(project)
    assert load_policy(None, test_root / "alias").concurrency.max_parallel == 1


def test_file_in_place_of_the_codex_folder_is_no_layer(project: Path) -> None:
    (project / ".codex").write_text("")
    assert load_policy(None, project) == load_policy(None, None)


def test_missing_project_folder_is_an_error(test_root: Path) -> None:
    assert "no such folder" in _refusal(None, test_root / "gone")


def test_oversized_files_are_refused(
    codex_home: Path, project: Path, person: WriteLayer, repository: WriteLayer
) -> None:
    repository("#" * PROJECT_LIMIT)
    person("#" * PERSON_LIMIT)
    load_policy(codex_home, project)
    repository("#" * (PROJECT_LIMIT + 1))
    assert "larger than the 64 KiB" in _refusal(codex_home, project)
    person("#" * (PERSON_LIMIT + 1))
    assert "larger than the 1024 KiB" in _refusal(codex_home)


def test_incomplete_installation_is_said(test_root: Path) -> None:
    with pytest.raises(InvalidInput, match="missing; install Baton again"):
        load_layers(None, None, test_root)


def test_bundle_is_this_checkout() -> None:
    assert bundle_root() == Path(__file__).resolve().parents[2]


def test_a_recorded_policy_of_an_older_version_gets_shipped_values_for_what_it_did_not_know() -> None:
    shipped = load_policy(None, None)
    recorded = shipped.model_dump(mode="json")
    recorded["deadlines"]["idle_seconds"] = 17
    assert recorded_policy(recorded).deadlines.idle_seconds == 17
    del recorded["limits"], recorded["deadlines"]["owner_grace_seconds"]
    found = recorded_policy(recorded)
    assert (found.deadlines.idle_seconds, found.limits) == (17, shipped.limits)
    assert found.deadlines.owner_grace_seconds == shipped.deadlines.owner_grace_seconds


def test_a_recorded_policy_of_a_newer_version_is_refused_in_one_line() -> None:
    recorded = load_policy(None, None).model_dump(mode="json") | {"future": {"key": 1}}
    with pytest.raises(InvalidInput, match="the record of the run: future: unknown key") as refused:
        recorded_policy(recorded)
    assert "\n" not in refused.value.message
