"""Stands in for the full server of a built environment: answers every request with who it is."""

import json
import os
import sys


def answer(line: bytes) -> None:
    message = json.loads(line)
    if message.get("method") in ("tools/call", "ping"):
        structured = {"pid": os.getpid(), "prefix": sys.prefix, "file": __file__}
        result = {"content": [], "structuredContent": structured}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


def main() -> None:
    with os.fdopen(int(os.environ["BATON_HANDOVER"]), "rb") as said:
        for line in said:
            answer(line)
    for line in sys.stdin.buffer:
        answer(line)


if __name__ == "__main__":
    main()
