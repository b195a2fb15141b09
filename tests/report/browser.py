"""A real browser without a screen, and the real `baton dashboard` for it to look at."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

DEADLINE = 60.0

PHONE, DESKTOP = (375, 800), (1280, 900)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

SHOTS = os.environ.get("BATON_SCREENSHOTS")
"""A folder for pictures of what was tested; none are made without it."""


class Browser:
    """Chromium with an empty profile of its own."""

    def __init__(self, profile: Path, flags: tuple[str, ...] = ()) -> None:
        program = next(
            filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
        )
        driver = shutil.which("chromedriver")
        if program is None or driver is None:
            pytest.skip(
                "NO BROWSER: Chromium and its driver are not on PATH"
                " (Debian: apt-get install chromium chromium-driver)"
            )
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in (*FLAGS, *flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_page_load_timeout(DEADLINE)

    def show(self, size: tuple[int, int], scheme: str = "light") -> None:
        """Look with a screen of this size, as somebody who prefers this scheme."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def get(self, address: str) -> None:
        self.driver.get(address)

    def enter(self, served: Served) -> None:
        """Open the dashboard's link, and wait for the page that it leads to."""
        self.driver.get(served.link)
        # No script is run meanwhile: the page that it would run in is on its way out.
        self.until(lambda: self.driver.current_url == f"{served.base}/", "the way in")

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    @property
    def text(self) -> str:
        """What a person sees."""
        return str(self.run("return document.body.innerText"))

    def until(self, true: Callable[[], object], what: str) -> None:
        """Wait for something to become true."""
        WebDriverWait(self.driver, DEADLINE, 0.1).until(lambda _: true(), f"not in time: {what}")

    def complaints(self) -> list[str]:
        """What the browser has complained of since the last look."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def picture(self, name: str) -> None:
        """Keep a picture of the whole page, where pictures are wanted."""
        if SHOTS is None:
            return
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        answer = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
        )
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        Path(SHOTS, f"{name}.png").write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def a_browser(*flags: str) -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(Path(profile), flags)
        try:
            yield browser
        finally:
            browser.driver.quit()


class Served:
    """A running `baton dashboard`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.link = self.next_link()
        self.base = self.link.partition("/enter")[0]
        self.port = int(self.base.rpartition(":")[2])

    def next_link(self) -> str:
        """The next one that it prints."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            if found := re.search(r"http://127\.0\.0\.1:\d+/enter\?token=\S+", line):
                return found[0]
        raise AssertionError("the dashboard has ended")


@contextmanager
def serving(env: Mapping[str, str], *flags: str) -> Iterator[Served]:
    """The command as a person types it; it must end well when it is interrupted."""
    command = [sys.executable, "-m", "baton.cli.main", "dashboard", "--no-open", *flags]
    path = os.pathsep.join(entry for entry in sys.path if entry)
    process = subprocess.Popen(
        command, env={**env, "PYTHONPATH": path}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield Served(process)
        finally:
            process.terminate()
            assert process.wait(DEADLINE) == 0
