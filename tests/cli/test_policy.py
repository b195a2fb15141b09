"""`baton policy`: what is in force, where it comes from, and what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

from baton.policy.bundle import bundle_root
from baton.policy.load import load_layers
from cli.conftest import Run


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_show_tells_every_value_with_its_origin(run: Run, own_home: Path, test_root: Path) -> None:
    person = _write(own_home / ".codex/baton/policy.toml", "[deadlines]\nidle_seconds = 7.5\n")
    project = _write(test_root / "p/.codex/baton.toml", "[concurrency]\nmax_parallel = 2\n")
    done = run("policy", "show", "--json", "--project", str(test_root / "p"))
    assert done.exit_code == 0, done.output
    told = {entry["key"]: entry for entry in json.loads(done.output)}
    assert set(told) == {key for key, _, _ in load_layers(None, None).values()}
    assert told["deadlines.idle_seconds"] == {
        "key": "deadlines.idle_seconds",
        "value": 7.5,
        "layer": "person",
        "file": str(person),
    }
    assert (told["concurrency.max_parallel"]["value"], told["concurrency.max_parallel"]["file"]) == (
        2,
        str(project),
    )
    assert told["retention.days"]["layer"] == "shipped"
    shown = run("policy", "show", "--project", str(test_root / "p")).output
    assert f"person   {person}\n" in shown
    assert "\nproject  concurrency.max_parallel = 2\n" in shown
    assert '\nshipped  root.mode = "adaptive"\n' in shown


def test_current_folder_is_the_project_by_default(run: Run) -> None:
    _write(Path.cwd() / ".codex/baton.toml", "[concurrency]\nmax_parallel = 1\n")
    assert "project  concurrency.max_parallel = 1\n" in run("policy", "show").output


def test_check_names_what_it_found_no_fault_in(run: Run, own_home: Path) -> None:
    done = run("policy", "check")
    shipped = f"{bundle_root() / 'policy/policy.toml'} (shipped)"
    assert (done.exit_code, done.output) == (0, f"no faults; checked: {shipped}\n")
    person = _write(own_home / ".codex/baton/policy.toml", "")
    project = _write(Path.cwd() / ".codex/baton.toml", "[concurrency]\nmax_parallel = 1\n")
    assert run("policy", "check").output == (
        f"no faults; checked: {shipped}, {person} (person), {project} (project)\n"
    )


def test_check_tells_every_fault_in_a_line_of_its_own(run: Run, own_home: Path) -> None:
    wrong = "\n".join(f"wrong{number} = 1" for number in range(7))
    file = _write(own_home / ".codex/baton/policy.toml", f"[deadlines]\n{wrong}\nidle_seconds = 0\n")
    done = run("policy", "check")
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert len(lines) == 8
    assert all(line.startswith(f"{file}: deadlines.") for line in lines)
    project = _write(Path.cwd() / ".codex/baton.toml", "[network]\nworker_hosts = ['a.example']\n")
    file.unlink()
    assert run("policy", "check").output.startswith(f"{project}: network.worker_hosts: a project may not set")


def test_check_tells_a_template_that_does_not_exist(run: Run, own_home: Path) -> None:
    file = _write(own_home / ".codex/baton/policy.toml", "[roles.luna-worker]\ntemplate = 'wroker'\n")
    done = run("policy", "check")
    assert done.exit_code == 1
    assert done.output == (
        f"{file}: roles.luna-worker.template: no template 'wroker'; did you mean 'worker'?\n"
    )
