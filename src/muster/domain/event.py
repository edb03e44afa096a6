"""An event: one numbered fact about a run."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.canonical import Json
from muster.domain.ids import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact; numbers of one run start at 1 and have no gaps."""

    run: RunId
    seq: int
    kind: str  # "run.started", "call.done", … or what a workload emits
    at: float
    data: Mapping[str, Json]
