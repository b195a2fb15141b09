"""The configuration file of the earlier batch runner, `orchestration.toml`: same keys, same modes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from baton.contract.base import faults_of
from baton.contract.errors import InvalidInput
from baton.policy.layer import Layer
from baton.policy.section import FolderPath

ModeName = Literal["conservative", "balanced", "large"]

REQUESTED_ROUTE = "requested-via-cli-arguments-not-runtime-attested"
"""How the earlier runner, and the `exec` back end, label a route that nobody attested."""


class _Table(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class EarlierPool(_Table):
    """`[pool]`: how much runs at once, how long and how often."""

    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None
    job_timeout_seconds: Annotated[int, Field(ge=1, le=604_800)] | None = None
    retry_backoff_seconds: Annotated[float, Field(ge=0, le=3600)] | None = None


class EarlierWrites(_Table):
    """`[writes]`: writers at once."""

    max_write_concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    allow_disjoint_parallel_writers: bool | None = None


class EarlierCollection(_Table):
    """`[collection]`: had one possible value each, which is how Baton works."""

    persist_partial_results: Literal[True] | None = None
    return_raw_logs: Literal[False] | None = None


class EarlierRunner(_Table):
    """`[runner]`: what carries out the jobs, and where they are kept."""

    backend: Literal["codex-exec", "exec", "app-server"] | None = None
    run_root: FolderPath | None = None
    route_attestation: Literal["requested-via-cli-arguments-not-runtime-attested"] | None = None


class Earlier(_Table):
    """The whole file."""

    mode: ModeName | None = None
    pool: EarlierPool = EarlierPool()
    writes: EarlierWrites = EarlierWrites()
    collection: EarlierCollection = EarlierCollection()
    runner: EarlierRunner = EarlierRunner()


def read_earlier(layer: Layer) -> Earlier:
    """The file as parsed, checked by itself. Raises `InvalidInput`, one line, with every fault."""
    file: Path = layer.origin.file
    faults = [text.removeprefix(".") for text in faults_of(Earlier, layer.data, "")]
    if faults:
        raise InvalidInput(f"{file}: " + "; ".join(faults))
    return Earlier.model_validate(layer.data)
