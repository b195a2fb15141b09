"""How the dashboard is started: where it listens, and how a browser gets its link."""

from __future__ import annotations

import re
import socket
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from baton.cli.main import baton
from baton.engine.house import House
from baton.report.dashboard import serve as serving

LINK = "http://127.0.0.1:1/enter?token=a&b"


def test_a_port_that_is_taken_is_said_in_a_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = CliRunner().invoke(baton, ["dashboard", "--no-open", "--port", str(port)], prog_name="baton")
    assert (done.exit_code, done.output) == (
        2,
        f"baton: --port {port} cannot be used (Address already in use); name another one\n",
    )


def test_the_browser_gets_the_link_by_a_file_that_nobody_else_can_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(serving.webbrowser, "open", opened.append)
    file = serving._open(LINK)
    try:
        assert opened == [file.as_uri()]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "url=http://127.0.0.1:1/enter?token=a&amp;b" in file.read_text()
    finally:
        file.unlink()


@pytest.mark.parametrize("browse", [True, False])
def test_it_listens_on_this_machine_alone_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, browse: bool
) -> None:
    monkeypatch.setattr(serving.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("DISPLAY", ":0")
    opened: list[str] = []
    bound: list[object] = []
    monkeypatch.setattr(serving.webbrowser, "open", opened.append)
    monkeypatch.setattr(
        serving.uvicorn.Server, "run", lambda self, sockets: bound.append(sockets[0].getsockname()[0])
    )
    said: list[str] = []
    with House.open() as house:
        serving.serve(house, 0, browse=browse, say=said.append)
    assert bound == ["127.0.0.1"]
    assert len(opened) == browse
    assert said[0].startswith("the dashboard, to be opened once: http://127.0.0.1:")
    assert list(tmp_path.iterdir()) == []


def test_who_opens_the_link_before_the_server_runs_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def open_link(line: str) -> None:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
            socket.create_connection(("127.0.0.1", int(found[1])), timeout=10).close()
            told.append(line)

    monkeypatch.setattr(serving.uvicorn.Server, "run", lambda self, sockets: told.append("runs"))
    with House.open() as house:
        serving.serve(house, 0, browse=False, say=open_link)
    assert [line.partition(",")[0] for line in told] == ["the dashboard", "runs"]


def test_without_a_screen_no_browser_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving.sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not serving._has_screen()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert serving._has_screen()
