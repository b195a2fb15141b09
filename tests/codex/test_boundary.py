"""An answer of Codex that differs from the boundary asked for never passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.codex.boundary import boundary_fault, reported_route
from baton.codex.settings import ThreadSettings, merge
from codex.workers_bench import writing

CWD = Path("/work/tree")
PROFILE = writing(CWD / "src", Path("/scratch"))
SETTINGS = ThreadSettings(CWD, "m", "high", PROFILE, {"HOME": "/scratch"})

ANSWER: dict[str, Any] = {
    "activePermissionProfile": {"id": PROFILE.name},
    "approvalPolicy": "never",
    "cwd": str(CWD),
    "sandbox": {
        "type": "workspaceWrite",
        "writableRoots": ["/scratch", f"{CWD}/src"],
        "networkAccess": False,
    },
    "model": "m",
    "reasoningEffort": "high",
}


def test_the_boundary_as_asked_for_passes() -> None:
    assert boundary_fault(ANSWER, SETTINGS) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"activePermissionProfile": None}, "not in force"),
        ({"activePermissionProfile": {"id": ":workspace"}}, ":workspace"),
        ({"approvalPolicy": "on-request"}, "on-request"),
        ({"approvalPolicy": {"granular": {}}}, "approvals"),
        ({"cwd": "/elsewhere"}, "/elsewhere"),
        ({"sandbox": None}, "unknown"),
        ({"sandbox": {"type": "dangerFullAccess"}}, "dangerFullAccess"),
        ({"sandbox": {"type": "externalSandbox"}}, "externalSandbox"),
        ({"sandbox": {"type": "readOnly"}}, "not: /scratch"),
        ({"sandbox": {**ANSWER["sandbox"], "networkAccess": True}}, "network"),
        ({"sandbox": {**ANSWER["sandbox"], "writableRoots": ["/scratch"]}}, "not: /work/tree/src"),
        ({"sandbox": {**ANSWER["sandbox"], "writableRoots": ["/", "/scratch", f"{CWD}/src"]}}, "also: /"),
    ],
)
def test_every_other_answer_is_a_fault_that_is_named(change: dict[str, Any], said: str) -> None:
    fault = boundary_fault({**ANSWER, **change}, SETTINGS)
    assert fault is not None and said in fault


def test_a_writable_working_directory_is_not_listed_and_needs_not_be() -> None:
    profile = writing(CWD, Path("/scratch"))
    settings = ThreadSettings(CWD, "m", "high", profile, {"HOME": "/scratch"})

    def answered(*roots: str) -> dict[str, Any]:
        sandbox = {**ANSWER["sandbox"], "writableRoots": list(roots)}
        return {**ANSWER, "activePermissionProfile": {"id": profile.name}, "sandbox": sandbox}

    assert boundary_fault(answered("/scratch"), settings) is None
    assert boundary_fault(answered("/scratch", str(CWD)), settings) is None
    assert boundary_fault(answered(), settings) is not None
    assert boundary_fault(answered("/scratch", "/other"), settings) is not None


def test_no_member_of_the_answer_is_taken_for_granted() -> None:
    for name in ("activePermissionProfile", "approvalPolicy", "cwd", "sandbox"):
        assert boundary_fault({key: value for key, value in ANSWER.items() if key != name}, SETTINGS)


def test_the_route_deviates_only_from_what_is_known() -> None:
    assert not reported_route(ANSWER, SETTINGS).deviates
    assert not reported_route({}, SETTINGS).deviates
    assert reported_route({**ANSWER, "model": "other"}, SETTINGS).deviates
    assert reported_route({**ANSWER, "reasoningEffort": "low"}, SETTINGS).deviates


def test_settings_ask_for_the_profile_and_clear_the_environment() -> None:
    extra = {"features": {"a": True}, "shell_environment_policy": {"inherit": "all", "set": {"X": "1"}}}
    settings = ThreadSettings(CWD, "m", None, PROFILE, {"HOME": "/scratch"}, extra=extra)
    params = settings.params(("deploy",))
    config = params["config"]
    assert (params["permissions"], config["default_permissions"]) == (PROFILE.name, PROFILE.name)
    assert "sandbox" not in params
    assert config["shell_environment_policy"]["inherit"] == "none"
    assert config["shell_environment_policy"]["include_only"] == ["BATON_WORKER", "HOME", "SHLVL"]
    assert config["skills"] == {"config": [{"name": "deploy", "enabled": False}]}
    assert config["projects"] == {str(CWD): {"trust_level": "untrusted"}}
    assert "model_reasoning_effort" not in config


def test_merging_keeps_what_the_other_side_does_not_name() -> None:
    assert merge({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 4}, "d": {"e": 5}}) == {
        "a": {"b": 4, "c": 2},
        "d": {"e": 5},
    }
