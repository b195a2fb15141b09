"""How the workers' app-server is launched."""

from __future__ import annotations

import pytest

from baton.codex.launch import speaks_of_our_settings


@pytest.mark.parametrize(
    ("notice", "ours"),
    [
        ("`[features].multi_agent` is deprecated. Use something else.", True),
        ("[features].goals is deprecated", True),
        ("`[features].something_new` is deprecated.", False),
        ("Model metadata for `x` was not found.", False),
    ],
)
def test_a_notice_about_what_every_worker_has_switched_off_is_known(notice: str, ours: bool) -> None:
    assert speaks_of_our_settings(notice) is ours
