"""What a good job file comes to: routes, folders, boundaries, fingerprints, and which writers may meet."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.pool.dependencies import circles, waits_for
from baton.pool.settle import Flags

from .desk import Desk, row, writer

TWO_WRITERS = Flags(write_concurrency=2, allow_disjoint_parallel_writers=True)


@pytest.fixture
def desk(own_home: Path, test_root: Path) -> Desk:
    project = test_root / "project"
    project.mkdir()
    return Desk(own_home, project)


def test_the_smallest_row_reads_in_the_project_on_the_default_roles_tier(desk: Desk) -> None:
    desk.write_rows({"id": "a", "prompt": "Look."})
    (job,) = desk.jobs()
    assert (job.sandbox, job.writes, job.scope) == ("read-only", False, ())
    assert job.workdir == desk.project.resolve()
    assert (job.route.model, job.route.effort, job.route.tier) == ("gpt-5.6-luna", "medium", "luna")
    assert (job.safe_retry, job.isolate, job.timeout_seconds, job.depends_on) == (False, False, None, ())


@pytest.mark.parametrize(
    ("asked", "model", "effort"),
    [
        ({"model": "gpt-5.6-terra", "effort": "high"}, "gpt-5.6-terra", "high"),
        ({"model": "gpt-5.6-sol"}, "gpt-5.6-sol", "high"),
        ({"tier": "terra"}, "gpt-5.6-terra", "medium"),
        ({"effort": "low"}, "gpt-5.6-luna", "low"),
        ({"model": "gpt-5.6-luna", "effort": "max"}, "gpt-5.6-luna", "xhigh"),
        ({"model": "gpt-5.6-luna", "effort": "ultra"}, "gpt-5.6-luna", "xhigh"),
    ],
)
def test_a_route_is_resolved_against_the_installed_codex(
    desk: Desk, asked: dict[str, str], model: str, effort: str
) -> None:
    desk.write_rows(row("a", **asked))
    (job,) = desk.jobs()
    assert (job.route.model, job.route.effort) == (model, effort)
    assert (job.route.note is None) == (asked.get("effort", effort) == effort)


def test_every_key_arrives(desk: Desk) -> None:
    (desk.project / "src").mkdir()
    (desk.project / "prompts").mkdir()
    (desk.project / "prompts" / "a.md").write_text("Mend it.\n")
    schema = {
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    desk.write_rows(
        row("first"),
        {
            "id": "a",
            "prompt_file": "prompts/a.md",
            "tier": "sol",
            "effort": "low",
            "sandbox": "workspace-write",
            "workdir": "src",
            "safe_retry": True,
            "ownership_scope": "api",
            "allowed_files": ["api/*.py", "docs"],
            "output_schema": schema,
            "timeout_seconds": 12.5,
            "verification_commands": ["python3 -m pytest -q", ["true"]],
            "depends_on": ["first", "first"],
            "labels": ["nightly"],
        },
    )
    job = desk.jobs()[1]
    assert job.prompt == "Mend it.\n"
    assert job.workdir == (desk.project / "src").resolve() and job.workdir_shown == "src"
    assert job.scope == ("api/*.py", "docs")
    assert job.output_schema == schema
    assert job.verification_commands == ("python3 -m pytest -q", ("true",))
    assert (job.depends_on, job.labels, job.timeout_seconds) == (("first",), ("nightly",), 12.5)
    assert job.safe_retry and job.writes and not job.isolate


def test_a_working_folder_may_be_a_home_path_an_absolute_one_or_a_link(desk: Desk) -> None:
    there = desk.home / "there"
    there.mkdir()
    (desk.project / "link").symlink_to(there)
    desk.write_rows(row("a", workdir="~/there"), row("b", workdir=str(there)), row("c", workdir="link"))
    assert {job.workdir for job in desk.jobs()} == {there.resolve()}


SHAPING = [
    {"prompt": "Other."},
    {"model": "gpt-5.6-sol"},
    {"tier": "sol"},
    {"effort": "low"},
    {"sandbox": "workspace-write"},
    {"workdir": "src"},
    {"output_schema": {"type": "string"}},
    {"verification_commands": ["true"]},
]
NOT_SHAPING = [{"timeout_seconds": 5}, {"safe_retry": True}, {"labels": ["x"]}, {"depends_on": ["other"]}]


@pytest.mark.parametrize("change", SHAPING)
def test_a_change_of_the_work_makes_it_another_job(desk: Desk, change: dict[str, object]) -> None:
    (desk.project / "src").mkdir()
    desk.write_rows(row("a"))
    before = desk.jobs()[0].fingerprint
    desk.write_rows(row("a") | change)
    assert desk.jobs()[0].fingerprint != before


@pytest.mark.parametrize("change", NOT_SHAPING)
def test_what_only_says_when_or_how_long_leaves_it_the_same_job(
    desk: Desk, change: dict[str, object]
) -> None:
    desk.write_rows(row("a"), row("other"))
    before = desk.jobs()[0].fingerprint
    desk.write_rows(row("a") | change, row("other"))
    assert desk.jobs()[0].fingerprint == before


def test_the_text_of_a_prompt_file_counts_and_not_its_name(desk: Desk) -> None:
    (desk.project / "p.md").write_text("Do a.")
    desk.write_rows({"id": "a", "prompt_file": "p.md"})
    before = desk.jobs()[0].fingerprint
    desk.write_rows(row("a"))
    assert desk.jobs()[0].fingerprint == before
    (desk.project / "p.md").write_text("Do b.")
    desk.write_rows({"id": "a", "prompt_file": "p.md"})
    assert desk.jobs()[0].fingerprint != before


def test_a_moved_project_has_the_same_jobs(desk: Desk, test_root: Path) -> None:
    desk.write_rows(row("a"), writer("b", ownership_scope="src"))
    before = [job.fingerprint for job in desk.jobs()]
    moved = test_root / "elsewhere"
    desk.project.rename(moved)
    assert [job.fingerprint for job in Desk(desk.home, moved).jobs()] == before


def test_one_writer_at_a_time_needs_no_scope(desk: Desk) -> None:
    desk.write_rows(writer("a"), writer("b"))
    assert [job.scope for job in desk.jobs()] == [("**",), ("**",)]


def test_several_writers_at_once_each_declare_what_they_own(desk: Desk) -> None:
    desk.write_rows(writer("a", ownership_scope="src"), writer("b"), row("reads"), writer("c"))
    assert [text.split(":")[0] for text in desk.faults(TWO_WRITERS)] == ["2", "4"]


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ("src", "src", "src"),
        ("src", "src/", "src/"),
        ("src/api", "src", "src/api"),
        ("src/**", "**/*.md", ".md"),
        ("docs/**", "**/README.md", "docs/README.md"),
        ("*.py", "test_*", "test_"),
        ("lib/[bc].py", "lib/[cd].py", "lib/c.py"),
        ("**", "docs", "docs"),
    ],
)
def test_writers_that_could_change_the_same_file_are_refused(
    desk: Desk, one: str, other: str, path: str
) -> None:
    desk.write_rows(writer("a", ownership_scope=one), writer("b", ownership_scope=other))
    (fault,) = desk.faults(TWO_WRITERS)
    assert fault.startswith("2: ownership_scope: b and a may both change ") and path in fault


@pytest.mark.parametrize(("one", "other"), [("src/api", "docs"), ("src/a", "src/ab"), ("a/*.py", "a/*.md")])
def test_disjoint_writers_are_let_through(desk: Desk, one: str, other: str) -> None:
    desk.write_rows(writer("a", ownership_scope=one), writer("b", allowed_files=[other]))
    assert len(desk.jobs(TWO_WRITERS)) == 2


def test_what_a_writer_owns_counts_even_where_it_may_change_less(desk: Desk) -> None:
    desk.write_rows(
        writer("a", ownership_scope="src", allowed_files=["src/a.py"]),
        writer("b", ownership_scope="src/b.py"),
    )
    assert desk.faults(TWO_WRITERS) != []


def test_writers_of_one_scope_may_follow_each_other(desk: Desk) -> None:
    desk.write_rows(
        writer("a", ownership_scope="src"),
        row("between", depends_on=["a"]),
        writer("b", ownership_scope="src", depends_on=["between"]),
    )
    assert len(desk.jobs(TWO_WRITERS)) == 3


def test_the_same_scope_in_two_folders_is_two_scopes(desk: Desk) -> None:
    for name in ("one", "two"):
        (desk.project / name).mkdir()
    desk.write_rows(*(writer(name, ownership_scope="src", workdir=name) for name in ("one", "two")))
    assert len(desk.jobs(TWO_WRITERS)) == 2


def test_files_that_exist_decide_in_a_repository(desk: Desk) -> None:
    subprocess.run(["git", "init", "-q"], cwd=desk.project, check=True)
    (desk.project / "v1.py").mkdir()
    (desk.project / "v1.py" / "notes.md").write_text("a folder named like a file\n")
    desk.write_rows(writer("a", ownership_scope="*.py"), writer("b", ownership_scope="**/notes.md"))
    assert "v1.py/notes.md" in desk.faults(TWO_WRITERS)[0]


def test_thousands_of_writers_with_folders_of_their_own_are_read_in_about_linear_time(desk: Desk) -> None:
    def read(count: int) -> float:
        desk.write_rows(*(writer(f"j{at}", ownership_scope=f"packages/p{at}/src") for at in range(count)))
        began = time.process_time()
        assert len(desk.jobs(TWO_WRITERS)) == count
        return time.process_time() - began

    read(10)
    small, large = read(400), read(3200)
    # Two by two it would be 64 times.
    assert large < 24 * small


def test_a_circle_of_isolated_and_reading_jobs_is_found_among_many(desk: Desk) -> None:
    chain = [row(f"j{at}", depends_on=[f"j{at - 1}"] if at else []) for at in range(5000)]
    desk.write_rows(*chain)
    assert len(desk.jobs()) == 5000
    chain[0]["depends_on"] = ["j4999"]
    desk.write_rows(*chain)
    (fault,) = desk.faults()
    assert "goes round in a circle" in fault and len(fault) < 300


names = st.integers(0, 7).map(lambda number: f"n{number}")


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(names, st.lists(names, max_size=3), max_size=8))
def test_circles_are_found_exactly_when_a_job_waits_for_itself_through_others(
    graph: dict[str, list[str]],
) -> None:
    graph = {job: [need for need in needs if need != job] for job, needs in graph.items()}
    on_a_circle = {job for job in graph if waits_for(graph, job, job)}
    found = list(circles(graph))
    assert bool(found) == bool(on_a_circle)
    for circle in found:
        assert set(circle) <= on_a_circle
        assert all(after in graph[job] for job, after in zip(circle, [*circle[1:], circle[0]], strict=True))


def test_a_file_name_that_is_not_utf8_can_be_read(desk: Desk) -> None:
    named = os.fsdecode(os.fsencode(desk.project) + b"/jobs-\xff.jsonl")
    desk.file = Path(named)
    desk.write(json.dumps(row("a")))
    assert desk.jobs()[0].id == "a"
