"""The attempts without any sandbox: what is measured as prevented there is not measured at all."""

from __future__ import annotations

import contextlib
import shutil
import subprocess

import psutil

from baton.contract.evidence import AttemptResult, ChangeShown, Evidence, ScopeEvidence
from baton.contract.states import Enforcement, Verdict
from chaos._attempt import Attempt, Finding, Mission, Seen
from chaos._lab import Lab

SECONDS = 20


def run_bare(lab: Lab, mission: Mission) -> list[Finding]:
    """Run each script in a copy of the workspace as the person would, and judge it the same way."""
    found = []
    if mission.before is not None:
        mission.before(lab)
    for attempt in mission.attempts:
        if attempt.bare and attempt.script:
            found.append(_run(lab, mission, attempt))
    return found


def _run(lab: Lab, mission: Mission, attempt: Attempt) -> Finding:
    place = lab.state / "worktrees" / "bare"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(lab.project, place, symlinks=True)
    (lab.root / "tmp").mkdir(exist_ok=True)
    env = {**lab.env, "TMPDIR": str(lab.root / "tmp")}
    output = lab.root / "bare-output"
    with output.open("wb") as sink, contextlib.suppress(subprocess.TimeoutExpired):
        # To a file: what it leaves running would keep a pipe open.
        subprocess.run(
            ["bash", "-c", attempt.script],
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            check=False,
        )
    seen = Seen(lab, output.read_text(errors="replace"), _result(lab, place), ())
    finding = Finding(mission.name, attempt, *attempt.judge(seen), seen.output)
    _end_what_is_left(lab)
    return finding


def _result(lab: Lab, place: object) -> AttemptResult:
    """What a capture without any idea of a scope would say."""
    listed = subprocess.run(
        ["git", "status", "--porcelain", "-z", "--no-renames", "-uall"],
        cwd=str(place),
        env=lab.env,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    ).stdout
    changes = [ChangeShown(path=line[3:], kind="modified") for line in listed.split("\0") if line]
    scope = ScopeEvidence(enforcement=Enforcement.DETECTED)
    evidence = Evidence(base="", changes=changes, scope=scope)
    return AttemptResult(attempt=1, verdict=Verdict.UNVERIFIED, reasons=[], evidence=evidence)


def _end_what_is_left(lab: Lab) -> None:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if lab.nonce in " ".join(process.cmdline()):
                process.kill()
