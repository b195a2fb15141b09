"""Where the files that ship with Baton lie: in a checkout or plugin copy, or inside an installed wheel."""

from __future__ import annotations

from pathlib import Path

from baton.contract.errors import Unsupported

MARK = Path("policy") / "policy.toml"
"""A folder that holds this file is a bundle."""


def bundle_root() -> Path:
    """The folder that holds `policy/`, `skills/` and `agents/`.

    Raises `Unsupported` when the installation is incomplete.
    """
    here = Path(__file__).resolve()
    # The wheel's own copy comes first: what lies above a site-packages folder is not ours.
    for candidate in (here.parents[1] / "bundle", here.parents[3]):
        if (candidate / MARK).is_file():
            return candidate
    raise Unsupported(
        f"Baton is installed without its {MARK}; install it again (looked beside {here.parent})"
    )
