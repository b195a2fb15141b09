"""Which configuration wins: policy, the earlier runner's files, flags; and what a project may not do."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.pool.project import find_project
from baton.pool.settings import PoolSettings
from baton.pool.settle import Flags, arguments, recorded_flags

from .desk import Desk

PARALLEL = "[writes]\nmax_write_concurrency = 2\nallow_disjoint_parallel_writers = true\n"


@pytest.fixture
def desk(own_home: Path, test_root: Path) -> Desk:
    project = test_root / "project"
    (project / ".codex").mkdir(parents=True)
    return Desk(own_home, project)


def of_person(desk: Desk, text: str) -> Path:
    file = desk.codex_home / "orchestration.toml"
    file.write_text(text)
    return file


def of_project(desk: Desk, text: str) -> Path:
    file = desk.project / ".codex" / "orchestration.toml"
    file.write_text(text)
    return file


def policy_of_person(desk: Desk, text: str) -> None:
    file = desk.codex_home / "baton" / "policy.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def at_once(settings: PoolSettings) -> tuple[int, int]:
    return settings.concurrency, settings.write_concurrency


def test_without_any_file_the_shipped_policy_decides(desk: Desk) -> None:
    settings = desk.settings()
    assert at_once(settings) == (3, 1)
    assert (settings.timeout_seconds, settings.retries, settings.backoff_seconds) == (1800, 1, 2.0)
    assert (settings.backend, settings.token_budget) == ("app-server", None)
    assert settings.run_dir == (desk.project / ".codex/orchestration-runs/jobs").resolve()
    assert len(settings.sources) == 1 and settings.notes == ()


@pytest.mark.parametrize(("mode", "number"), [("conservative", 2), ("balanced", 3), ("large", 8)])
def test_a_mode_stands_for_a_number_of_jobs_at_once(desk: Desk, mode: str, number: int) -> None:
    of_person(desk, f'mode = "{mode}"')
    assert desk.settings().concurrency == number
    of_person(desk, "")
    of_project(desk, f'mode = "{mode}"')
    assert desk.settings().concurrency == number


def test_each_layer_wins_over_the_one_before(desk: Desk) -> None:
    policy_of_person(desk, "[pool]\nmode = 'large'\nretries = 9\ntimeout_seconds = 9000")
    assert at_once(desk.settings()) == (8, 1)
    person = of_person(desk, "[pool]\nconcurrency = 7\nmax_retries = 8\njob_timeout_seconds = 8000")
    assert (desk.settings().concurrency, desk.settings().retries) == (7, 8)
    project = of_project(desk, "[pool]\nconcurrency = 6\nmax_retries = 7")
    assert (desk.settings().concurrency, desk.settings().retries) == (6, 7)
    config = desk.project / "extra.toml"
    config.write_text("[pool]\nconcurrency = 20\nretry_backoff_seconds = 0")
    named = Flags(config=Path("extra.toml"))
    assert (desk.settings(named).concurrency, desk.settings(named).backoff_seconds) == (20, 0)
    flags = Flags(config=config, concurrency=30, retries=0, timeout_seconds=5, backend="exec", token_budget=9)
    settings = desk.settings(flags)
    assert (settings.concurrency, settings.retries, settings.timeout_seconds) == (30, 0, 5)
    assert (settings.backend, settings.token_budget) == ("exec", 9)
    assert [Path(source).name for source in settings.sources[1:]] == [
        "policy.toml",
        person.name,
        project.name,
        "extra.toml",
        "flags",
    ]


def test_what_the_command_line_said_is_kept_and_can_be_said_again(desk: Desk) -> None:
    flags = Flags(config=Path("c.toml"), retries=0, backoff_seconds=0.0, timeout_seconds=90.0, backend="exec")
    (desk.project / "c.toml").write_text("mode = 'large'")
    settings = desk.settings(flags)
    again = recorded_flags(json.loads(json.dumps(dict(settings.flags))))
    assert replace(desk.settings(again), sources=(), flags={}) == replace(settings, sources=(), flags={})
    assert arguments(settings.flags) == [
        *("--config", str((desk.project / "c.toml").absolute())),
        *("--timeout", "90", "--retries", "0", "--backoff", "0", "--backend", "exec"),
        *("--project", str(desk.project.resolve())),
    ]


def test_a_mode_named_later_replaces_a_number_named_before(desk: Desk) -> None:
    of_person(desk, "[pool]\nconcurrency = 5")
    (desk.project / "c.toml").write_text("mode = 'large'")
    assert desk.settings(Flags(config=Path("c.toml"))).concurrency == 8
    assert desk.settings(Flags(mode="conservative")).concurrency == 2
    assert desk.settings(Flags(mode="conservative", concurrency=4)).concurrency == 4


def test_the_earlier_runners_own_example_is_read_whole(desk: Desk) -> None:
    text = """
mode = "balanced"
[pool]
concurrency = 3
max_retries = 1
job_timeout_seconds = 1800
retry_backoff_seconds = 2.0
[writes]
max_write_concurrency = 1
allow_disjoint_parallel_writers = false
[collection]
persist_partial_results = true
return_raw_logs = false
[runner]
backend = "codex-exec"
run_root = ".codex/orchestration-runs"
route_attestation = "requested-via-cli-arguments-not-runtime-attested"
"""
    of_person(desk, text)
    assert desk.settings().backend == "exec"
    of_person(desk, "")
    of_project(desk, text)
    settings = desk.settings()
    assert (settings.backend, at_once(settings)) == ("app-server", (3, 1))
    assert "runner.backend is passed over" in settings.notes[0]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[pool]\nconcurency = 3", "pool.concurency: unknown key; did you mean 'concurrency'?"),
        ("[pol]\nconcurrency = 3", "pol: unknown key; did you mean 'pool'?"),
        ("mode = 'adaptive-unrestricted'", "mode: input should be 'conservative', 'balanced' or 'large'"),
        ("[pool]\nconcurrency = '3'", "pool.concurrency: input should be a valid integer"),
        ("[pool]\nconcurrency = true", "pool.concurrency: input should be a valid integer"),
        ("[pool]\nconcurrency = 0", "pool.concurrency: input should be greater than or equal to 1"),
        ("[pool]\nretry_backoff_seconds = nan", "retry_backoff_seconds"),
        ("[pool]\nmax_retries = -1", "pool.max_retries: input should be greater"),
        ("pool = 3", "pool: input should be a valid dict"),
        ("[writes]\nallow_disjoint_parallel_writers = 1", "should be a valid boolean"),
        ("[runner]\nrun_root = ''", "runner.run_root: must be the path of a folder"),
        ("[collection]\nreturn_raw_logs = true", "collection.return_raw_logs: input should be False"),
        ("mode = ", "fix the TOML"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_a_wrong_file_is_one_line_with_its_name_and_key(desk: Desk, text: str, fault: str) -> None:
    file = desk.codex_home / "orchestration.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidInput) as caught:
        desk.settings()
    assert caught.value.message.startswith(f"{file}: ") and fault in caught.value.message


def test_several_faults_of_a_file_are_told_together(desk: Desk) -> None:
    of_person(desk, "mood = 1\n[pool]\nconcurrency = 0\nretrys = 1")
    with pytest.raises(InvalidInput) as caught:
        desk.settings()
    assert caught.value.message.count("; ") >= 2 and "pool.retrys" in caught.value.message


def test_parallel_writers_need_the_explicit_choice_in_a_file(desk: Desk) -> None:
    of_person(desk, "[writes]\nmax_write_concurrency = 2")
    with pytest.raises(InvalidInput, match="needs allow_disjoint_parallel_writers = true"):
        desk.settings()
    of_person(desk, PARALLEL)
    assert at_once(desk.settings()) == (3, 2)


def test_parallel_writers_by_flag_need_the_flag_even_where_a_file_allows_them(desk: Desk) -> None:
    of_person(desk, PARALLEL)
    with pytest.raises(InvalidInput, match="needs --allow-disjoint-parallel-writers as well"):
        desk.settings(Flags(write_concurrency=3))
    both = Flags(write_concurrency=3, allow_disjoint_parallel_writers=True)
    assert at_once(desk.settings(both)) == (3, 3)


def test_writers_cannot_be_more_than_jobs(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="write concurrency 4 is above the concurrency 3"):
        desk.settings(Flags(write_concurrency=4, allow_disjoint_parallel_writers=True))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[pool]\nconcurrency = 9", "pool.concurrency: a project may not set 9; allowed: at most 8"),
        ("[pool]\nmax_retries = 2", "pool.max_retries: a project may not set 2; allowed: at most 1"),
        ("[pool]\njob_timeout_seconds = 1801", "allowed: at most 1800"),
        ("[pool]\nretry_backoff_seconds = 1", "allowed: at least 2"),
        (PARALLEL, "writes.allow_disjoint_parallel_writers: a project may not set true"),
        ("[writes]\nmax_write_concurrency = 2", "writes.max_write_concurrency: a project may not set 2"),
        ("[runner]\nrun_root = '../elsewhere'", "allowed: a folder inside the project"),
        ("[runner]\nrun_root = '/tmp'", "allowed: a folder inside the project"),
        ("[runner]\nrun_root = '~/runs'", "allowed: a folder inside the project"),
    ],
)
def test_a_projects_file_may_only_narrow(desk: Desk, text: str, fault: str) -> None:
    file = of_project(desk, text)
    with pytest.raises(InvalidInput) as caught:
        desk.settings()
    assert caught.value.message.startswith(f"{file}: ") and fault in caught.value.message


def test_what_the_person_allows_the_project_may_use(desk: Desk) -> None:
    of_person(desk, "[writes]\nallow_disjoint_parallel_writers = true")
    of_project(desk, PARALLEL)
    assert at_once(desk.settings()) == (3, 2)
    of_person(desk, "")
    assert at_once(desk.settings(Flags(allow_disjoint_parallel_writers=True))) == (3, 2)


@pytest.mark.parametrize("where", ["policy", "earlier"])
def test_a_choice_of_the_person_binds_a_projects_mode(desk: Desk, where: str) -> None:
    if where == "policy":
        policy_of_person(desk, "[pool]\nmode = 'conservative'")
    else:
        of_person(desk, "mode = 'conservative'")
    of_project(desk, "mode = 'large'")
    with pytest.raises(InvalidInput, match='mode: a project may not set "large"; allowed: at most 2 at once'):
        desk.settings()


def test_a_project_that_lowers_the_jobs_lowers_the_writers_with_them(desk: Desk) -> None:
    of_person(desk, "[writes]\nmax_write_concurrency = 3\nallow_disjoint_parallel_writers = true")
    of_project(desk, "[pool]\nconcurrency = 2")
    assert at_once(desk.settings()) == (2, 2)


def test_a_projects_policy_narrows_what_the_persons_earlier_file_says(desk: Desk) -> None:
    of_person(desk, "[pool]\nconcurrency = 20\nmax_retries = 5\n[runner]\nbackend = 'exec'")
    (desk.project / ".codex" / "baton.toml").write_text(
        "[pool]\nmode = 'conservative'\nretries = 0\nbackoff_seconds = 60.0\ntimeout_seconds = 60.0"
    )
    settings = desk.settings()
    assert (settings.concurrency, settings.retries) == (2, 0)
    assert (settings.backoff_seconds, settings.timeout_seconds) == (60, 60)
    assert desk.settings(Flags(concurrency=9, retries=3)).concurrency == 9


def test_a_projects_file_that_leads_out_of_it_is_refused(desk: Desk, test_root: Path) -> None:
    other = test_root / "other.toml"
    other.write_text("mode = 'conservative'")
    (desk.project / ".codex" / "orchestration.toml").symlink_to(other)
    with pytest.raises(InvalidInput, match="leads out of the project"):
        desk.settings()


def test_a_named_file_must_be_there(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match=r"--config none\.toml: no such file"):
        desk.settings(Flags(config=Path("none.toml")))


def test_the_projects_file_is_found_from_a_folder_below(desk: Desk) -> None:
    of_project(desk, "mode = 'conservative'")
    below = desk.project / "src" / "deep"
    below.mkdir(parents=True)
    settings = desk.settings(folder=below)
    assert (settings.concurrency, settings.project) == (2, desk.project.resolve())


def test_a_repository_is_a_project_and_its_top_ends_the_search(desk: Desk) -> None:
    of_project(desk, "mode = 'conservative'")
    inner = desk.project / "vendored"
    (inner / ".git").mkdir(parents=True)
    (inner / "src").mkdir()
    assert find_project(inner / "src", desk.home) == inner.resolve()


def test_the_persons_own_folder_is_never_a_project(desk: Desk) -> None:
    of_person(desk, "mode = 'large'")
    plain = desk.home / "notes" / "today"
    plain.mkdir(parents=True)
    assert find_project(plain, desk.home) == plain.resolve()
    assert find_project(desk.home, desk.home) == desk.home.resolve()


def test_the_run_directory_follows_flags_then_root_then_the_files_name(desk: Desk) -> None:
    of_project(desk, "[runner]\nrun_root = 'runs'")
    assert desk.settings().run_dir == (desk.project / "runs" / "jobs").resolve()
    assert desk.settings(Flags(run_dir=Path("here"))).run_dir == (desk.project / "here").resolve()
    desk.file = desk.project / "nightly.v2.jsonl"
    assert desk.settings().run_dir.name == "nightly.v2"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_never_an_empty_one(desk: Desk) -> None:
    of_person(desk, "mode = 'large'").chmod(0)
    with pytest.raises(InvalidInput, match="cannot be read"):
        desk.settings()


def test_a_folder_in_place_of_a_file_is_said(desk: Desk) -> None:
    (desk.codex_home / "orchestration.toml").mkdir()
    with pytest.raises(InvalidInput, match="not a regular file"):
        desk.settings()
