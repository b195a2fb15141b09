"""The doctor on the server: started as Codex starts it, then called by Codex itself with a scripted model."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from baton.codex.person_config import read_person_config
from baton.contract.errors import BatonError, CodexFailure
from baton.contract.wording import many
from baton.install.findings import Finding, failure, note, ok, warning
from baton.install.owned import read_owned
from baton.install.places import Places
from baton.install.plugin import CodexCommands, reason
from baton.simulate.home import simulated_provider
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import javascript, say

PASSED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
"""Variables that Codex gives to every server."""

FIRST_REQUEST = 1.0
"""Seconds that the first model request waits for a server's tools."""

BUILD_SECONDS = 300.0
SESSION_SECONDS = 300.0

MODEL = "gpt-5.6-luna"
PROMPT = "Baton doctor: call one tool"
_CALL = """text(JSON.stringify(await tools.mcp__baton__inspect_run({"runId": "none"})))"""


@dataclass(frozen=True)
class Entry:
    """The server's entry as Codex understands it."""

    argv: list[str]
    cwd: str | None
    env: Mapping[str, str]
    env_vars: tuple[str, ...]


def check_server(codex: CodexCommands, places: Places, env: Mapping[str, str]) -> Iterator[Finding]:
    """The entry is there, the server answers in time, and a first call is served."""
    try:
        entry = read_entry(codex)
    except BatonError as error:
        command = "baton install --restore" if read_owned(places.owned) else "baton install"
        yield failure("server", f"Codex has no usable server `baton`: {error.message}", f"run `{command}`")
        return
    try:
        started, tools, answered = _try(entry, _environment(entry, env))
    except (OSError, ValueError, KeyError, TimeoutError) as error:
        yield failure(
            "server", f"{' '.join(entry.argv)} does not answer: {error}", "run `baton doctor --fix`"
        )
        return
    message = f"{many(tools, 'tool')} after {started * 1000:.0f} ms; first call served after {answered:.1f} s"
    if started >= FIRST_REQUEST:
        yield warning("server", f"{message}: too late for the first model request of a session")
    else:
        yield ok("server", message)


def check_environment(codex: CodexCommands, places: Places, env: Mapping[str, str]) -> Iterator[Finding]:
    """What of the person's environment does not reach the server although it is needed there."""
    try:
        entry = read_entry(codex)
        table = read_person_config(places.home).provider_table or {}
    except BatonError:
        return
    headers = table.get("env_http_headers")
    keys = [table.get("env_key"), *(headers.values() if isinstance(headers, dict) else ())]
    needed = [str(key) for key in keys if key] + ["CODEX_HOME", "BATON_STATE"]
    reach = {*PASSED, *entry.env_vars, *entry.env}
    missing = [name for name in needed if env.get(name) and name not in reach]
    if missing:
        yield failure(
            "environment",
            f"{', '.join(missing)} does not reach the server, since Codex passes only what is named",
            "add it to env_vars of the server baton in config.toml",
        )


def check_session(codex: CodexCommands, project: Path | None, scratch: Path) -> Iterator[Finding]:
    """A session of the real Codex whose scripted model calls one tool; costs nothing."""
    with tempfile.TemporaryDirectory(dir=scratch, prefix="doctor-") as folder, ScriptedModel() as model:
        model.on(PROMPT, javascript(_CALL), say("That is all."))
        arrived = Path(folder, "arrived")
        try:
            events = _session(codex, model, project or Path(folder), arrived)
        except BatonError as error:
            yield failure("session", error.message)
            return
        yield _called(events)
        yield from _ignored(events)
        try:
            names = sorted(arrived.read_text(encoding="utf-8").split())
        except OSError:
            return
        yield ok("environment", f"reaches the server: {', '.join(names)}")


def read_entry(codex: CodexCommands) -> Entry:
    """What Codex says about the server of our name. Raises `CodexFailure`."""
    data = json.loads(codex.run("mcp", "get", "baton", "--json"))
    transport = data.get("transport", {})
    if not data.get("enabled", True):
        raise CodexFailure(f"it is disabled ({data.get('disabled_reason') or 'by your configuration'})")
    if transport.get("type") != "stdio":
        raise CodexFailure("it is no program of this machine")
    variables = [entry if isinstance(entry, str) else entry["name"] for entry in transport["env_vars"] or ()]
    return Entry(
        argv=[transport["command"], *(transport.get("args") or ())],
        cwd=transport.get("cwd"),
        env=transport.get("env") or {},
        env_vars=tuple(variables),
    )


def _environment(entry: Entry, env: Mapping[str, str]) -> dict[str, str]:
    names = (*PASSED, *entry.env_vars)
    return {**{name: env[name] for name in names if name in env}, **entry.env}


def _try(entry: Entry, env: Mapping[str, str]) -> tuple[float, int, float]:
    """Seconds to the list of tools, their number, seconds of the first call."""
    began = time.monotonic()
    child = subprocess.Popen(
        entry.argv,
        cwd=entry.cwd,
        env=dict(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdin is not None and child.stdout is not None
    # A server that says nothing must not keep the doctor.
    watch = threading.Timer(BUILD_SECONDS, child.kill)
    watch.start()
    try:
        client = {"name": "baton-doctor", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        _ask(child.stdin, child.stdout, 1, "initialize", hello)
        child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        tools = _ask(child.stdin, child.stdout, 2, "tools/list", {})["tools"]
        started = time.monotonic() - began
        call = {"name": "inspect_run", "arguments": {"runId": "none"}}
        answer = _ask(child.stdin, child.stdout, 3, "tools/call", call)
        error = answer.get("structuredContent", {}).get("error")
        if error != "not_found":
            raise ValueError(answer["content"][0]["text"])
        return started, len(tools), time.monotonic() - began - started
    finally:
        watch.cancel()
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
        try:
            child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()


def _ask(
    stdin: IO[bytes], stdout: IO[bytes], number: int, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
    stdin.write(b"\n")
    stdin.flush()
    while line := stdout.readline():
        message = json.loads(line)
        if message.get("id") == number:
            result: dict[str, Any] = message["result"]
            return result
    raise ValueError("it ended without an answer")


def _session(
    codex: CodexCommands, model: ScriptedModel, cwd: Path, arrived: Path
) -> Sequence[Mapping[str, Any]]:
    entry = read_entry(codex)
    look = {
        "command": "/bin/sh",
        "args": ["-c", f"env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p' > '{arrived}'"],
        "env_vars": list(entry.env_vars),
    }
    settings = {
        "model": MODEL,
        "model_provider": "baton_doctor",
        "model_providers.baton_doctor": simulated_provider(model.port),
        "mcp_servers.baton_doctor": look,
    }
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={_toml(value)}")]
    env = {**codex.env, "CODEX_HOME": str(codex.places.home)}
    for name in ("NO_PROXY", "no_proxy"):
        env[name] = ",".join(filter(None, [env.get(name), "127.0.0.1"]))
    argv = [str(codex.binary), "exec", "--json", "--ephemeral", "--skip-git-repo-check", *options, PROMPT]
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SESSION_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CodexFailure(f"`codex exec` did not end within {SESSION_SECONDS:.0f} s") from None
    except OSError as error:
        raise CodexFailure(f"`codex exec` failed: {codex.binary}: {error.strerror or error}") from None
    lines = done.stdout.decode("utf-8", "replace").split("\n")
    events = [json.loads(line) for line in lines if line.startswith("{")]
    if not events:
        raise CodexFailure(f"`codex exec` failed: {reason(done.stderr)}")
    return events


def _called(events: Sequence[Mapping[str, Any]]) -> Finding:
    items = [event.get("item", {}) for event in events if event.get("type") == "item.completed"]
    for item in items:
        if item.get("type") == "mcp_tool_call" and item.get("server") == "baton":
            result = item.get("result") or {}
            if (result.get("structured_content") or {}).get("error") == "not_found":
                return ok("session", "a tool of Baton's was called through `codex exec` (simulated model)")
            return failure("session", f"the tool call failed: {item.get('error') or result}")
    said = [item.get("message", "") for item in items if item.get("type") == "error"]
    reason = f": {said[-1]}" if said else ""
    return failure("session", f"`codex exec` did not reach Baton's tools{reason}", "run `baton doctor --fix`")


def _ignored(events: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """What Codex itself says about presets that it drops."""
    said = [str(event.get("item", {}).get("message", "")) for event in events]
    for text in dict.fromkeys(line for line in said if "agent role" in line):
        yield warning("presets", " ".join(text.split()), "mend or remove the file")
    others = dict.fromkeys(
        line for line in said if line and "agent role" not in line and "baton_doctor" not in line
    )
    for text in others:
        yield note("session", f"Codex says: {' '.join(text.split())[:300]}")


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # JSON strings are TOML strings, but for characters that TOML wants escaped as well.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
