"""Tasks of one call that could change the same file are found also where only what exists shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from baton.contract.errors import InvalidInput
from baton.contract.task import Task
from baton.engine.overlaps import refuse_overlaps
from baton.workspace.git import Git
from baton.workspace.locate import locate


def test_a_directory_named_like_a_file_is_where_two_tasks_meet(test_root: Path) -> None:
    repository = test_root / "repository"
    (repository / "v1.py").mkdir(parents=True)
    (repository / "v1.py" / "notes.md").write_text("a folder named like a file\n")
    subprocess.run(["git", "init", "-q"], cwd=repository, check=True)
    git = Git.find()
    tasks = [
        Task(objective="-", id="code", allowed_files=["*.py"]),
        Task(objective="-", id="text", allowed_files=["**/notes.md"]),
    ]
    with pytest.raises(InvalidInput, match=r"tasks.code and tasks.text may both change v1.py/notes.md"):
        refuse_overlaps(tasks, {"code": [], "text": []}, locate(repository, git), git)
    refuse_overlaps(tasks, {"code": [], "text": ["code"]}, locate(repository, git), git)
