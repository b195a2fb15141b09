"""Why the full server cannot run yet."""

from __future__ import annotations

from baton.contract.errors import BatonError


class RuntimeBuilding(BatonError):
    """Raised when the environment is not ready within the caller's patience; call again later."""

    code = "runtime_building"


class RuntimeUnavailable(BatonError):
    """Raised when the environment could not be built: no network, no installer; the next call tries again.

    A Python that is too old is `Unsupported`; a full or read-only disk is `StateUnavailable`.
    """

    code = "runtime_unavailable"
