"""The exit code that the command of a run had, or would have had: for whoever only watches it."""

from typing import TYPE_CHECKING

from muster.cli.answering import WARNINGS
from muster.cli.driving import completed, detached, overdraft
from muster.cli.endings import ENDINGS
from muster.cli.question import KEY
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
    if detached(run):
        return 0
    return 1 if overdraft(run) is not None or not await _is_good(muster, run) else 0


async def _is_good(muster: "Muster", run: Run) -> bool:
    """Return whether what a completed run came to is a success by the rules of its own command."""
    if run.workload in ENDINGS:
        return (await ENDINGS[run.workload].reports(muster.store, run, run.id)).ok
    if run.workload == "generate":
        return bool(len(run.result["cases"]) >= run.result["asked"])
    if run.workload == "ask":
        entry = await muster.store.journal.find(run.id, KEY)
        return entry is not None and entry.reply is not None and str(entry.reply.quality) not in WARNINGS
    return True
