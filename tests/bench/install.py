"""How long it takes from nothing but Python, git and Codex to the first answered tool call.

A clone of this checkout and an empty home; then `scripts/install-personal.sh`, which builds the environment
from the package registry, and a session of the real Codex whose scripted model calls one tool. The same again
with everything installed. CPU is user and system time of all processes that were waited for.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from _report import parser, report

from baton.simulate.home import write_simulated_home
from baton.simulate.model_server import ScriptedModel
from baton.simulate.script import javascript, say

CHECKOUT = Path(__file__).parents[2]
CALL = 'text(JSON.stringify(await tools.mcp__baton__inspect_run({"runId": "none"})))'


class Stopwatch:
    """Seconds of wall and CPU since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), _cpu()

    def read(self) -> tuple[float, float]:
        return round(time.monotonic() - self._wall, 2), round(_cpu() - self._cpu, 2)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(argv: list[str], env: Mapping[str, str], cwd: Path) -> None:
    """A program to its end; its output only when it fails."""
    done = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]} failed: {done.stdout}{done.stderr}")


def answered(model: ScriptedModel, prompt: str) -> bool:
    """Whether the tool's own answer came back to the model."""
    outputs = [request.last_output for request in model.requests if prompt in request.text]
    return any('"error":"not_found"' in output for output in outputs)


def main() -> None:
    options = parser("From nothing to the first answered tool call.").parse_args()
    codex = os.environ.get("BATON_TEST_CODEX") or shutil.which("codex")
    if codex is None:
        raise SystemExit("no codex on PATH; run it as scripts/python.sh tests/bench/install.py")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "baton"
    cache.mkdir(parents=True, exist_ok=True)
    # Not under the system's temporary folder, where Codex keeps no home.
    with tempfile.TemporaryDirectory(dir=cache, prefix="bench-") as name, ScriptedModel() as model:
        root = Path(name)
        checkout = root / "checkout"
        run(["git", "clone", "--quiet", str(CHECKOUT), str(checkout)], os.environ, root)
        user = root / "user"
        project = user / "project"
        project.mkdir(parents=True)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("BATON_", "PYTHON"))}
        env = {
            **kept,
            "HOME": str(user),
            "CODEX_HOME": str(user / ".codex"),
            "BATON_STATE": str(user / "state"),
            "BATON_CODEX_BIN": codex,
        }
        write_simulated_home(user / ".codex", model.port)
        script = ["sh", str(checkout / "scripts" / "install-personal.sh")]
        session = [codex, "exec", "--skip-git-repo-check"]
        for prompt in ("First call", "Later call"):
            model.on(prompt, javascript(CALL), say("Done."))
        watch = Stopwatch()
        run(script, env, project)
        installed = watch.read()
        run([*session, "First call"], env, project)
        first = watch.read()
        again, later = Stopwatch(), {}
        run(script, env, project)
        later["install"] = again.read()
        watch = Stopwatch()
        run([*session, "Later call"], env, project)
        later["call"] = watch.read()
        size = sum(file.stat().st_size for file in (user / ".codex" / "baton").rglob("*") if file.is_file())
        results = {
            "installSeconds": installed[0],
            "firstAnswerSeconds": first[0],
            "firstAnswerCpuSeconds": first[1],
            "againInstallSeconds": later["install"][0],
            "againInstallCpuSeconds": later["install"][1],
            "laterSessionSeconds": later["call"][0],
            "answered": answered(model, "First call") and answered(model, "Later call"),
            "installedBytes": size,
        }
    report(results, as_json=options.json)


if __name__ == "__main__":
    main()
