"""The bounds of a session are read from what Codex sends, and doubt makes them tighter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from baton.codex.session_profile import SessionProfile, read_session_profile
from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import call, say

ROOT_READ = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}


def state(*entries: object, network: str = "restricted", cwd: str = "/work/project") -> dict[str, object]:
    files = {"type": "restricted", "entries": list(entries)}
    profile = {"type": "managed", "file_system": files, "network": network}
    return {"permissionProfile": profile, "sandboxCwd": f"file://{cwd}"}


def at(path: str, access: str) -> dict[str, object]:
    return {"path": {"type": "path", "path": path}, "access": access}


def read(given: dict[str, object] | None) -> SessionProfile:
    return read_session_profile(given, {"TMPDIR": "/var/tmp/mine"})


def test_terminal_without_a_profile_is_bounded_by_nothing_of_ours() -> None:
    session = read(None)
    assert session.unlimited
    assert session.may_write(Path("/anything"))


def test_read_only_session_writes_nowhere() -> None:
    session = read(state(ROOT_READ))
    assert session.read_only
    assert session.reads_everything
    assert session.may_read(Path("/etc/hosts"))
    assert not session.may_write(Path("/work/project/a"))


def test_workspace_session_writes_in_its_folder_but_not_what_codex_obeys() -> None:
    special = {"path": {"type": "special", "value": {"kind": "tmpdir"}}, "access": "write"}
    session = read(state(ROOT_READ, at("/work/project", "write"), special))
    assert not session.read_only
    assert session.may_write(Path("/work/project/src/a"))
    assert session.may_write(Path("/var/tmp/mine/x"))
    assert not session.may_write(Path("/work/other"))
    assert not session.may_write(Path("/work/projects"))
    for name in (".git", ".codex", ".agents", ".aws"):
        assert not session.may_write(Path("/work/project") / name / "x")


def test_more_specific_entry_decides_and_of_two_the_stricter() -> None:
    session = read(
        state(
            ROOT_READ,
            at("/p", "write"),
            at("/p/kept", "read"),
            at("/p/kept", "write"),
            at("/p/kept/a", "write"),
        )
    )
    assert session.may_write(Path("/p/x"))
    assert not session.may_write(Path("/p/kept/x"))
    assert session.may_write(Path("/p/kept/a/x"))


def test_denied_paths_and_globs_are_neither_read_nor_written() -> None:
    glob = {"path": {"type": "glob_pattern", "pattern": "/p/**/*.pem"}, "access": "deny"}
    session = read(state(ROOT_READ, at("/p", "write"), at("/p/.env", "deny"), glob))
    for path in ("/p/.env", "/p/key.pem", "/p/deep/er/key.pem"):
        assert not session.may_read(Path(path)), path
        assert not session.may_write(Path(path)), path
    assert session.may_write(Path("/p/key.pub"))
    assert session.denied_paths == (Path("/p/.env"),)
    assert session.denied_globs == ("/p/**/*.pem",)


def test_network_is_reached_only_when_stated() -> None:
    assert not read(state(ROOT_READ)).network
    assert read(state(ROOT_READ, network="enabled")).network
    assert not read(state(ROOT_READ, network="some-new-word")).network


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"sandboxCwd": "file:///p"},
        {"sandboxCwd": "file:///p", "permissionProfile": "all"},
        {"sandboxCwd": "file:///p", "permissionProfile": {"type": "novel"}},
        {
            "sandboxCwd": "file:///p",
            "permissionProfile": {"type": "managed", "file_system": {"type": "novel"}},
        },
    ],
)
def test_unknown_shape_grants_nothing_and_is_said(given: dict[str, object]) -> None:
    session = read(given)
    assert session.read_only
    assert not session.may_read(Path("/p/a"))
    assert not session.network
    assert session.unknown


def test_unknown_grant_is_ignored_and_unknown_denial_takes_every_write_away() -> None:
    novel = {"path": {"type": "special", "value": {"kind": "novel"}}}
    granted = read(state(ROOT_READ, at("/work/project", "write"), {**novel, "access": "write"}))
    assert not granted.read_only
    assert len(granted.unknown) == 1
    denied = read(state(ROOT_READ, at("/work/project", "write"), {**novel, "access": "deny"}))
    assert denied.read_only
    assert len(denied.unknown) == 1


def test_linked_folder_of_an_entry_counts_where_it_really_lies(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    session = read(state(ROOT_READ, at(str(tmp_path / "link"), "write")))
    assert session.may_write(tmp_path / "real" / "x")


def test_folder_with_special_characters_is_understood() -> None:
    given = state(ROOT_READ, cwd="/work/a%20b/%C3%BC")
    assert read(given).cwd == Path("/work/a b/ü")


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        capabilities = {"tools": {}, "experimental": {"codex/sandbox-state-meta": {}}}
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": capabilities,
                  "serverInfo": {"name": "t", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "look", "inputSchema": {"type": "object"},
                             "annotations": {"readOnlyHint": True}}]}
    elif method == "tools/call":
        with open(sys.argv[1], "w") as file:
            json.dump(message["params"]["_meta"]["codex/sandbox-state-meta"], file)
        result = {"content": []}
    elif "id" in message:
        result = {}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

CUSTOM = (
    *("-c", 'default_permissions="mine"'),
    *("-c", 'permissions.mine.filesystem={":minimal"="read",":workspace_roots"={"."="write",".env"="deny"}}'),
    *("-c", "permissions.mine.network={enabled=false}"),
)


@pytest.mark.codex
@pytest.mark.parametrize(
    ("options", "read_only", "unlimited", "network", "env_readable"),
    [
        (("-s", "read-only"), True, False, False, True),
        (("-s", "workspace-write"), False, False, False, True),
        (
            ("-s", "workspace-write", "-c", "sandbox_workspace_write.network_access=true"),
            False,
            False,
            True,
            True,
        ),
        (("-s", "danger-full-access"), False, True, True, True),
        (CUSTOM, False, False, False, False),
    ],
)
def test_what_a_real_session_sends_is_understood_in_full(
    test_root: Path,
    codex_binary: Path,
    model: ScriptedModel,
    options: tuple[str, ...],
    read_only: bool,
    unlimited: bool,
    network: bool,
    env_readable: bool,
) -> None:
    sent, program, project = test_root / "sent.json", test_root / "server.py", test_root / "pro ject"
    program.write_text(SERVER)
    project.mkdir()
    server = {"command": sys.executable, "args": [str(program), str(sent)], "required": True}
    home = write_simulated_home(test_root / "person", model.port, extra={"mcp_servers": {"t": server}})
    model.fallback(call("mcp__t__look"), say("done"))
    subprocess.run(
        [codex_binary, "exec", "--skip-git-repo-check", *options, "-C", project, "hi"],
        env={**os.environ, "CODEX_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    session = read_session_profile(json.loads(sent.read_text()), os.environ)
    assert session.unknown == ()
    assert session.cwd == project
    assert (session.read_only, session.unlimited, session.network) == (read_only, unlimited, network)
    assert session.may_read(project / ".env") is env_readable
    assert session.may_write(project / "src" / "a") is not read_only
    assert session.may_write(test_root / "elsewhere") is unlimited
