"""A project's file may take away and never give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.contract.errors import InvalidInput
from baton.policy.load import load_policy
from baton.policy.narrowing import Narrowing, Rule, ordered

from .conftest import WriteLayer

PERSON = """
[network]
worker_hosts = ["docs.example.org", "files.example.org"]
[environment]
pass_to_workers = ["FOO", "BAR"]
[checks]
unsandboxed = [["docker", "run"], ["make"]]
"""

ORDER = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    "text",
    [
        "[root]\nmode = 'control-plane'",
        "[tiers.sol]\ndefault_effort = 'low'",
        "[roles.luna-worker]\neffort = 'low'\ntier = 'luna'",
        "[deadlines]\nturn_seconds = 60\nidle_seconds = 300",
        "[limits]\nplain_folder_files = 10",
        "[network]\nworker_hosts = []",
        "[network]\nworker_hosts = ['files.example.org']",
        "[environment]\npass_to_workers = ['BAR']",
        "[checks]\nunsandboxed = [['make']]",
        "[enforcement]\nrequire_prevention = true",
        "[dependencies]\nmode = 'none'\nfolders = ['.venv']",
        "[pool]\nmode = 'conservative'\nretries = 0\nbackoff_seconds = 3.0",
    ],
)
def test_project_may_narrow(
    codex_home: Path, project: Path, person: WriteLayer, repository: WriteLayer, text: str
) -> None:
    person(PERSON)
    repository(text)
    load_policy(codex_home, project)


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        ("[concurrency]\nmax_parallel = 5", "concurrency.max_parallel", "at most 4"),
        ("[deadlines]\nrun_seconds = 14401", "deadlines.run_seconds", "at most 14400"),
        (
            "[network]\nworker_hosts = ['evil.example']",
            "network.worker_hosts",
            'only entries of ["docs.example.org", ',
        ),
        ("[network]\nworker_hosts = ['*.docs.example.org']", "network.worker_hosts", "only entries of"),
        ("[environment]\npass_to_checks = ['AWS_KEY']", "environment.pass_to_checks", "only entries of []"),
        ("[checks]\nunsandboxed = [['sh']]", "checks.unsandboxed", "only entries of"),
        ("[dependencies]\nmode = 'copy'", "dependencies.mode", 'one of "link", "none"'),
        ("[dependencies]\nfolders = ['secrets']", "dependencies.folders", "only entries of"),
        ("[roles.luna-worker]\neffort = 'max'", "roles.luna-worker.effort", 'one of "medium", "low"'),
        (
            "[roles.luna-worker]\ninstructions = 'Obey.'",
            "roles.luna-worker.instructions",
            "only the person's",
        ),
        ("[roles.luna-worker]\nchange_intent = 'optional'", "roles.luna-worker.change_intent", "required"),
        ("[tiers.luna]\npinned = 'gpt-6.2-sol'", "tiers.luna.pinned", "only the person's"),
        ("[tiers.luna]\nfamily = 'sol'", "tiers.luna.family", "only the person's"),
        ("[routing]\ndefault_role = 'sol-specialist'", "routing.default_role", "only the person's"),
        ("[limits]\nkept_bytes = 0", "limits.kept_bytes", "only the person's"),
        ("[retention]\ndays = 1", "retention.days", "only the person's"),
        ("[pool]\nmode = 'large'", "pool.mode", 'one of "balanced", "conservative"'),
        ("[pool]\nbackoff_seconds = 0.0", "pool.backoff_seconds", "at least 2"),
        ("[pool]\nbackend = 'exec'", "pool.backend", 'one of "app-server"'),
        (
            "[pool]\nallow_disjoint_parallel_writers = true",
            "pool.allow_disjoint_parallel_writers",
            "one of false",
        ),
        ("[pool]\nrun_root = '/tmp'", "pool.run_root", "only the person's"),
        ("[pool.modes]\nlarge = 64", "pool.modes.large", "at most 8"),
        (
            "[tiers.mine]\nfamily = 'x'\nresolve = 'latest'\npinned = 'y'\ndefault_effort = 'low'",
            "tiers.mine",
            "may not add an entry; allowed: luna, terra, sol",
        ),
    ],
)
def test_project_may_not_widen(
    codex_home: Path,
    project: Path,
    person: WriteLayer,
    repository: WriteLayer,
    text: str,
    key: str,
    allowed: str,
) -> None:
    person(PERSON)
    file = repository(text)
    with pytest.raises(InvalidInput) as caught:
        load_policy(codex_home, project)
    assert caught.value.message.startswith(f"{file}: {key}: a project may not ")
    assert allowed in caught.value.message
    assert "\n" not in caught.value.message


def test_control_plane_of_the_person_is_not_relaxed_by_a_project(
    codex_home: Path, project: Path, person: WriteLayer, repository: WriteLayer
) -> None:
    person("[root]\nmode = 'control-plane'\n[enforcement]\nrequire_prevention = true\n")
    repository("[root]\nmode = 'adaptive'\n[enforcement]\nrequire_prevention = false\n")
    with pytest.raises(InvalidInput, match=r'root\.mode: .*allowed: one of "control-plane"; enforcement'):
        load_policy(codex_home, project)


_ENTRIES = st.lists(st.sampled_from("pqrst"), unique=True).map(tuple)
_RULED = st.one_of(
    st.tuples(st.just(Narrowing(Rule.MAX)), *[st.integers()] * 3),
    st.tuples(st.just(Narrowing(Rule.MIN)), *[st.integers()] * 3),
    st.tuples(st.just(Narrowing(Rule.SUBSET)), *[_ENTRIES] * 3),
    st.tuples(st.just(Narrowing(Rule.SUPERSET)), *[_ENTRIES] * 3),
    st.tuples(st.just(ordered(*ORDER)), *[st.sampled_from(ORDER)] * 3),
    st.tuples(st.just(Narrowing(Rule.FIXED)), *[st.integers()] * 3),
)


@given(_RULED)
def test_narrowing_is_a_partial_order(case: tuple[Narrowing, Any, Any, Any]) -> None:
    rule, one, two, three = case
    assert rule.widens(one, one) is None
    if rule.widens(one, two) is None and rule.widens(two, three) is None:
        assert rule.widens(one, three) is None
    if rule.widens(one, two) is None and rule.widens(two, one) is None:
        assert set(one) == set(two) if isinstance(one, tuple) else one == two


@given(_ENTRIES, _ENTRIES)
def test_what_a_subset_lets_through_was_there_before(
    current: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    accepted = Narrowing(Rule.SUBSET).widens(current, wanted) is None
    assert accepted == (set(wanted) <= set(current))
    assert accepted == (Narrowing(Rule.SUPERSET).widens(wanted, current) is None)
