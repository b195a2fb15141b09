"""How a review names its arguments and what can be done next: for the tool, or for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Words:
    """As calls of the tool."""

    arguments: Mapping[str, str] = {}
    """Those that a caller knows by another name than the tool's."""

    def run(self, review_id: str) -> str:
        return f"review run {review_id}"

    def wait(self, review_id: str, consultation_id: str | None) -> str:
        return f"review status {review_id} waits on; records cancel {consultation_id} stops it"

    def retry(self, review_id: str) -> str:
        return f"review retry {review_id}"

    def recheck(self, review_id: str) -> str:
        return f"review recheck {review_id}"

    def finalise(self, review_id: str, missing: Sequence[str]) -> str:
        return "finalise" + (f" with a disposition for {', '.join(missing)}" if missing else "")

    def answer(self, review_id: str, reviewer: str) -> str:
        return f"status what=answer reviewer={reviewer}, or retry"

    def findings(self, review_id: str) -> str:
        return f"review status {review_id} what=findings"


TOOL = Words()


class TerminalWords(Words):
    """As commands and options that a person types."""

    arguments: Mapping[str, str] = {
        "goal": "GOAL",
        "mode": "--deep",
        "diffRef": "--diff",
        "paths": "--path",
        "runId": "--run",
        "reviewers": "--reviewer",
        "reviewer": "--reviewer",
        "persona": "--persona",
        "dispositions": "F1=DISPOSITION",
        "conclusion": "--conclusion",
        "what": "--what",
        "waitSeconds": "--wait",
    }

    def run(self, review_id: str) -> str:
        return "nothing was sent; `baton review start GOAL` shows it anew and asks"

    def wait(self, review_id: str, consultation_id: str | None) -> str:
        return f"`baton review show {review_id}` looks again; `baton review cancel {review_id}` stops it"

    def retry(self, review_id: str) -> str:
        return f"`baton review retry {review_id}`"

    def recheck(self, review_id: str) -> str:
        return f"`baton review recheck {review_id}`"

    def finalise(self, review_id: str, missing: Sequence[str]) -> str:
        each = f" with one for each of {', '.join(missing)}, such as F1=fixed" if missing else ""
        return f"`baton review finalise {review_id}`{each}"

    def answer(self, review_id: str, reviewer: str) -> str:
        return f"`baton review show {review_id} --what answer`, or {self.retry(review_id)}"

    def findings(self, review_id: str) -> str:
        return f"`baton review show {review_id} --what findings`"
