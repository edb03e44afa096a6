"""`muster verify --fix`: proposed changes are made, and what came of them is verified once more."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.app.verify_fixing import Fixed, fix
from muster.cli.driving import drive
from muster.cli.ending import Outcome
from muster.cli.manner import Manner
from muster.cli.progress import display
from muster.cli.report_files import Wanted
from muster.cli.speech import note
from muster.cli.verify_ending import WavesEnding
from muster.domain.run import Run, RunState
from muster.reports.words import count

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle

Again = Callable[[], Awaitable["RunHandle | int"]]


class FixingEnding(WavesEnding):
    """Ends a verification that did not pass by mending what it found, and by verifying that; once."""

    def __init__(self, again: Again) -> None:
        self._again = again

    async def outcome(self, muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> Outcome:
        """Give what the last of the two verifications came to."""
        first = await super().outcome(muster, run, (), manner)
        fixed = Fixed()
        if not first.ok and run.state is RunState.COMPLETED:
            fixed = await fix(muster, run)
            note(manner, _words(first, fixed))
        handle = await self._again() if fixed.changed else 0
        last = run if isinstance(handle, int) else await drive(muster, handle, display(manner), self.sights(muster))
        found = await super().outcome(muster, last, wanted, manner)
        return replace(found, data={**found.data, "fixed": list(fixed.changed)}) if manner.json else found


def _words(first: Outcome, fixed: Fixed) -> str:
    if not fixed.changed:
        lines = ["nothing was changed: no finding proposes a change that can be made"]
    else:
        lines = [first.verdict, f"changed {count(len(fixed.changed), 'file')}: {', '.join(fixed.changed)}"]
        lines.append("what was changed is verified once more; look at it with: git diff")
    return "\n".join([*lines, *(f"not changed: {one}" for one in fixed.left)])
