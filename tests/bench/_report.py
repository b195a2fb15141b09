"""What every benchmark prints: lines for a person and, with `--json`, one JSON object as the last line."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence


def parser(description: str) -> argparse.ArgumentParser:
    """An argument parser with the `--json` that all of them share."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    return made


def median(values: Sequence[float], digits: int = 1) -> float:
    """The median, rounded for reading."""
    return round(statistics.median(values), digits)


def report(results: Mapping[str, object], *, as_json: bool) -> None:
    """Print the results, one a line, and then as JSON where that was asked for."""
    for name, value in results.items():
        print(f"{name}: {value}")
    if as_json:
        print(json.dumps(results))
