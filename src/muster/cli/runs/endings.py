"""How runs end, by their workload, and their exit codes."""

from collections.abc import Mapping

from muster.app import Muster
from muster.app.runs.runs import require_completed
from muster.cli.battles.order import BATTLES, SCALES
from muster.cli.chains.order import ChainEnding
from muster.cli.councils.order import COUNCILS
from muster.cli.outcome import RunEnding
from muster.cli.suites.order import SuiteEnding
from muster.cli.verify.order import VerifyEnding
from muster.domain.errors import MusterError, exit_code_of
from muster.domain.run import Run

ENDINGS: Mapping[str, RunEnding] = {
    "battle": BATTLES,
    "chain": ChainEnding(),
    "deliberation": COUNCILS,
    "scale": SCALES,
    "suite": SuiteEnding(),
    "waves": VerifyEnding(),
}


async def exit_code_of_run(muster: Muster, run: Run) -> int:
    """Return the exit code of a run that is over or stands still."""
    try:
        require_completed(run)
    except MusterError as error:
        return exit_code_of(error)
    if run.is_detached:
        return 0
    return 0 if await muster.succeeded(run) else 1
