"""The sandbox is judged by what it was seen to do, on this boot and with this program."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from baton.codex.binary import find_codex
from baton.codex.bubblewrap import own_bubblewrap
from baton.codex.direct import HELPER
from baton.codex.probe import Probe, judge, probe
from codex.place import Ground

ALL_WELL = frozenset(("started", "inside"))
PRIVATE = frozenset(("started", "inside", "loopback"))
ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def ground(test_root: Path, codex_binary: Path) -> Ground:
    return Ground.make(test_root, find_codex({"BATON_CODEX_BIN": str(codex_binary)}))


def beside_its_own_bubblewrap(folder: Path, ground: Ground) -> Path:
    """Where to put a program that passes on to Codex, so that a bubblewrap of the system changes nothing."""
    own = own_bubblewrap(ground.binary.path)
    assert own is not None
    (folder / "codex-resources").symlink_to(own.parent)
    return folder / "codex"


def test_everything_in_order_has_nothing_to_say() -> None:
    found = judge(ALL_WELL, PRIVATE, "", alike=True)
    assert found == Probe(runs=True, prevents=True, loopback=True, direct=True, why=None)


def test_helper_by_itself_is_not_used_where_anything_differs_or_does_not_hold() -> None:
    assert not judge(ALL_WELL, PRIVATE, "").direct
    assert not judge(ALL_WELL | {"outside"}, PRIVATE, "", alike=True).direct
    assert not judge(ALL_WELL, frozenset(), "", alike=True).direct


@pytest.mark.parametrize("escape", ["outside", "secret", "out", "settings"])
def test_one_escape_is_enough(escape: str) -> None:
    found = judge(ALL_WELL | {escape}, PRIVATE, "")
    assert (found.runs, found.prevents) == (True, False)
    assert "does not hold" in (found.why or "")


def test_private_network_with_a_way_out_is_none() -> None:
    assert judge(ALL_WELL, PRIVATE | {"out"}, "").loopback is False


def test_sandbox_that_lets_nothing_run_prevents_nothing() -> None:
    found = judge(frozenset(), frozenset(), "bwrap: no permissions")
    assert (found.runs, found.prevents, found.loopback) == (False, False, False)
    assert "bwrap: no permissions" in (found.why or "")


def test_sandbox_without_loopback_still_prevents() -> None:
    found = judge(ALL_WELL, frozenset(), "")
    assert (found.runs, found.prevents, found.loopback) == (True, True, False)
    assert "loopback" in (found.why or "")


@pytest.mark.anyio
@pytest.mark.codex
async def test_real_sandbox_holds_and_is_tried_once(ground: Ground) -> None:
    cache = ground.state.scratch
    found = await probe(ground.binary, ground.home, cache=cache, env=ENV)
    assert found == Probe(runs=True, prevents=True, loopback=True, direct=True, why=None)
    file = cache / "sandbox-probe.json"
    kept = json.loads(file.read_text())
    kept["probe"]["why"] = "as it was kept"
    file.write_text(json.dumps(kept))
    assert (await probe(ground.binary, ground.home, cache=cache, env=ENV)).why == "as it was kept"
    kept["key"] = "another boot"
    file.write_text(json.dumps(kept))
    assert (await probe(ground.binary, ground.home, cache=cache, env=ENV)).why is None
    assert [entry.name for entry in cache.glob("probe-*")] == []


@pytest.mark.anyio
@pytest.mark.codex
async def test_machine_without_namespaces_is_seen_to_run_nothing(ground: Ground, test_root: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not on this machine")
    wrapper = beside_its_own_bubblewrap(test_root, ground)
    wrapper.write_text(
        "#!/bin/sh\nexec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces;"
        ' exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs "$0" "$@"\''
        f' {ground.binary.path} "$@"\n'
    )
    wrapper.chmod(0o755)
    barred = replace(ground.binary, path=wrapper)
    found = await probe(barred, ground.home, cache=ground.state.scratch, env=ENV)
    assert (found.runs, found.prevents) == (False, False)
    assert "runs no command at all" in (found.why or "")


@pytest.mark.anyio
@pytest.mark.codex
async def test_program_that_does_not_sandbox_is_found_out(ground: Ground, test_root: Path) -> None:
    fraud = test_root / "codex"
    fraud.write_text('#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"\n')
    fraud.chmod(0o755)
    found = await probe(replace(ground.binary, path=fraud), ground.home, cache=ground.state.scratch, env=ENV)
    assert (found.runs, found.prevents, found.loopback) == (True, False, False)
    assert "write outside" in (found.why or "")


@pytest.mark.anyio
@pytest.mark.codex
async def test_helper_that_makes_another_sandbox_is_not_used_by_itself(
    ground: Ground, test_root: Path
) -> None:
    other = beside_its_own_bubblewrap(test_root, ground)
    other.write_text(
        "#!/bin/bash\n"
        f"real={ground.binary.path}\n"
        f'case "$0" in *{HELPER}) exec -a {HELPER} $real "${{@//\\"deny\\"/\\"read\\"}}";; esac\n'
        'exec $real "$@"\n'
    )
    other.chmod(0o755)
    found = await probe(replace(ground.binary, path=other), ground.home, cache=ground.state.scratch, env=ENV)
    assert (found.runs, found.prevents, found.loopback, found.direct) == (True, True, True, False)
    assert found.why is None
