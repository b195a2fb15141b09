"""A run that Baton's own surroundings end says why in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from e2e.sim import Workspace

pytestmark = pytest.mark.codex


def test_a_folder_beyond_the_limits_ends_the_run_with_the_line_that_says_so(
    workspace: Callable[..., Workspace], delegate: Callable[..., dict[str, Any]]
) -> None:
    limit = {".codex/baton.toml": "[limits]\nplain_folder_files = 2\n"}
    place = workspace({**limit, "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n"}, git=False)
    task = {"objective": "Count the files", "allowedFiles": ["src/"], "workspace": str(place.path)}
    result = delegate(task)
    assert result["state"] == "interrupted"
    assert "holds more than 2 files" in result["note"]
    assert "TaskGroup" not in result["note"]
