"""A fake in the place of an agent's command line: does what the question's script says, on demand."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

DEADLINE = 60.0


def main() -> None:
    prompt = sys.stdin.read()
    script: dict[str, Any] = {}
    if "SCRIPT:" in prompt:
        script = json.JSONDecoder().raw_decode(prompt.rpartition("SCRIPT:")[2].strip())[0]
    if "stubborn" in script:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "began" in script:
        with Path(script["began"]).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if "errors" in script:
        sys.stderr.write(script["errors"])
    if "raw" in script:
        sys.stdout.write(script["raw"] + "\n")
        sys.stdout.flush()
    if "gate" in script:
        wait_for(Path(script["gate"]))
    if "hang" in script:
        while True:
            time.sleep(0.1)
    if "huge" in script:
        script["text"] = "x" * int(script["huge"])
    told = {
        "text": script.get("text", json.dumps(envelope(prompt, script))),
        "session_id": script.get("session_id", "session-1"),
        "model": script.get("model"),
        "usage": script.get("usage"),
        "cost": script.get("cost"),
        "failure": script.get("failure"),
        "argv": sys.argv[1:],
    }
    if "silent" not in script:
        sys.stdout.write(json.dumps(told) + "\n")
    sys.exit(int(script.get("exit", 0)))


def envelope(prompt: str, script: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "answer": script.get("answer", "It depends."),
        "assumptions": script.get("assumptions", ["one"]),
        "uncertainties": script.get("uncertainties", []),
        "followUps": script.get("followUps", []),
        "sources": script.get("sources", []),
    }
    if "structured" in script:
        answer["structured"] = script["structured"]
    if "echo" in script:
        answer["answer"] = prompt
    return answer


def wait_for(path: Path) -> None:
    until = time.monotonic() + DEADLINE
    while not path.exists():
        if time.monotonic() > until:
            sys.exit("nobody opened the gate")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
