"""A fake in the place of a reviewer's command line: does what its script says for this call."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

DEADLINE = 60.0


def main() -> None:
    agent, root, resume = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    prompt = sys.stdin.read()
    number = len(list(root.glob(f"{agent}.*.prompt"))) + 1
    (root / f"{agent}.{number}.resume").write_text(resume)
    (root / f"{agent}.{number}.prompt").write_text(prompt)
    calls: list[dict[str, Any]] = [{}]
    if (root / f"{agent}.json").exists():
        calls = json.loads((root / f"{agent}.json").read_text())
    does = calls[min(number, len(calls)) - 1]
    if "gate" in does:
        wait_for(Path(does["gate"]))
    if "hang" in does:
        while True:
            time.sleep(0.1)
    told: dict[str, Any] = {
        "session_id": does.get("session_id", f"session-{agent}"),
        "model": does.get("model"),
        "usage": None,
        "cost": does.get("cost"),
        "failure": does.get("failure"),
    }
    if "failure" not in does:
        structured: dict[str, Any] = {"findings": does.get("findings", [])}
        if "earlier" in does:
            structured["earlier"] = does["earlier"]
        answer = {
            "answer": "As found.",
            "assumptions": [],
            "uncertainties": [],
            "followUps": [],
            "sources": [],
            "structured": structured,
        }
        told["text"] = does.get("text", json.dumps(answer))
    sys.stdout.write(json.dumps(told) + "\n")
    sys.exit(int(does.get("exit", 0)))


def wait_for(path: Path) -> None:
    until = time.monotonic() + DEADLINE
    while not path.exists():
        if time.monotonic() > until:
            sys.exit("nobody opened the gate")
        time.sleep(0.01)


if __name__ == "__main__":
    os.umask(0o077)
    main()
