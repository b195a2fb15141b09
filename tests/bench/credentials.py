"""How well credentials are told from what only looks like them, over the corpus of the tests.

Recall is the share of texts with a credential in which it was found and, masked, is gone; precision the share
of texts with a credential among those in which one was found. Suspects do not count, in either.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from _report import parser, report

from baton.consult.secrets import mask, scan
from consult.secret_corpus import false_cases, true_cases

LEAST = 0.95


def main() -> None:
    """Exit status 1 when one of the two is below 0.95."""
    arguments = parser(__doc__ or "").parse_args()
    trues, falses = true_cases(), false_cases()
    found = [case for case in trues if scan(case.text).hits and case.secret not in mask(case.text).text]
    wrong = [case for case in falses if scan(case.text).hits]
    missed = [case.name for case in trues if case not in found]
    recall = len(found) / len(trues)
    precision = len(found) / (len(found) + len(wrong)) if found else 0.0
    results: dict[str, object] = {
        "true_cases": len(trues),
        "false_cases": len(falses),
        "recall": round(recall, 4),
        "precision": round(precision, 4),
    }
    if not arguments.json:
        results |= {"missed": missed, "wrong": [case.name for case in wrong]}
    report(results, as_json=arguments.json)
    raise SystemExit(0 if min(recall, precision) >= LEAST else 1)


if __name__ == "__main__":
    main()
