"""What a part of an open Muster does about runs of its kind. Pure defaults: a kind without a part is done like this."""

import json
from collections.abc import Mapping
from typing import Any

from muster.app.runs.handle import RunHandle
from muster.app.runs.options import RunOptions
from muster.domain.canonical import Json
from muster.domain.dispatch import Dispatch
from muster.domain.run import Run


class KindPart:
    """Decides about runs of one kind: what is refused, what is stored, and what they leave behind.

    `Muster` calls these with runs of the kind only. A part overrides what is particular to its kind.
    """

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being done; elsewhere the keys of this process do not count."""

    def stored(self, spec: Json) -> Any:
        """Return a spec as it is stored: with what files say now, if it names some."""
        return spec

    async def start_stored(self, spec: Json, options: RunOptions, *, detach: bool) -> RunHandle | None:
        """Start a run from what was read to check it, so that it is not read again; None: it starts as any run."""
        return None

    def require_resumable(self, run: Run) -> None:
        """Raise before anything is spent when a run cannot go on here."""

    def uses_batches(self, run: Run) -> bool:
        """Return whether calls of a run go into batches though it is live."""
        return False

    async def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return why what a completed run came to is not a success; None when it is, or when its report says so."""
        return None

    async def after_end(self, run: Run) -> None:
        """Write what a run leaves behind beside the store; called once for each run that has ended here."""

    async def output(self, run: Run) -> str:
        """Return what a run came to as a text: JSON, unless the kind has something better."""
        return "" if run.result is None else json.dumps(run.result, ensure_ascii=False, indent=1)
