"""The timelines of the runs that were looked at last, each read on from where it was left."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from baton.ledger.pages import Pages
from baton.report.timeline import Reading, Timeline

MAX_RUNS = 16
"""Runs that are remembered."""


class Timelines:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._readings: OrderedDict[str, Reading] = OrderedDict()
        self._lock = threading.Lock()

    def timeline(
        self, pages: Pages, run_id: str, tasks: Sequence[tuple[str, Sequence[str]]], until: float
    ) -> Timeline:
        """A run in time; `tasks` are ids with what each depends on. See `read_timeline`."""
        with self._lock:
            reading = self._readings.pop(run_id, None) or Reading(tasks)
            for event in pages.happenings(run_id, reading.seq):
                reading.take(event)
            self._readings[run_id] = reading
            while len(self._readings) > MAX_RUNS:
                self._readings.popitem(last=False)
            return reading.closed(until)
