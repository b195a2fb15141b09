"""Where the parts of a run are: anchors in a report, addresses in the dashboard."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote


class Links(Protocol):
    """What the templates ask for an address."""

    def task(self, run_id: str, task_id: str) -> str:
        """The evidence of one task."""

    def whole(self, run_id: str, artifact: str) -> str | None:
        """The whole of a text that is shown in part; None where there is no page for it."""

    def diff(self, run_id: str, task_id: str, attempt: int, line: int) -> str | None:
        """The diff from a line on."""


class ReportLinks:
    """One page holds everything."""

    def task(self, run_id: str, task_id: str) -> str:
        return f"#task-{quote(task_id)}"

    def whole(self, run_id: str, artifact: str) -> str | None:
        return None

    def diff(self, run_id: str, task_id: str, attempt: int, line: int) -> str | None:
        return None


class DashboardLinks:
    """Every part has its page."""

    def task(self, run_id: str, task_id: str) -> str:
        return f"/runs/{quote(run_id)}/tasks/{quote(task_id)}"

    def whole(self, run_id: str, artifact: str) -> str | None:
        return f"/runs/{quote(run_id)}/texts/{quote(artifact)}"

    def diff(self, run_id: str, task_id: str, attempt: int, line: int) -> str | None:
        return f"{self.task(run_id, task_id)}/diff?attempt={attempt}&line={line}"
