"""The exit code that the command of a run had, or would have had: for whoever only watches it."""

from typing import TYPE_CHECKING

from muster.cli.driving import completed
from muster.domain.errors import MusterError, exit_code_of
from muster.domain.run import Run

if TYPE_CHECKING:
    from muster.app import Muster


async def exit_code_of_run(muster: "Muster", run: Run) -> int:
    """Return the exit code of a run that is over or stands still."""
    try:
        completed(run)
    except MusterError as error:
        return exit_code_of(error)
    if run.is_detached:
        return 0
    return 0 if await muster.succeeded(run) else 1
