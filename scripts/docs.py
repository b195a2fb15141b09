#!/usr/bin/env python3
"""Renders the reference pages of docs/ from the code: scripts/docs.py [--check]

With --check it writes nothing: each stale page is one line, and the exit status is then 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]


def main() -> int:
    if sys.argv[1:] not in ([], ["--check"]):
        print("usage: scripts/docs.py [--check]; run it by scripts/python.sh", file=sys.stderr)
        return 2
    from baton.cli.reference import stale_pages, write_pages

    if sys.argv[1:]:
        stale = stale_pages(CHECKOUT)
        for line in stale:
            print(line)
        return 1 if stale else 0
    for name in write_pages(CHECKOUT):
        print(f"rendered {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
