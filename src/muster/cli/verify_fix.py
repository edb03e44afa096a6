"""`muster verify --fix`: proposed changes are made, and what came of them is verified once more."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from muster.app.verify_fixing import Fixed
from muster.app.views.verify import fixed_view
from muster.cli.driving import drive
from muster.cli.ending import Outcome
from muster.cli.manner import Manner
from muster.cli.progress import display
from muster.cli.report_files import Wanted
from muster.cli.speech import note, warn
from muster.cli.verify_ending import WavesEnding
from muster.domain.errors import BadArgument, BadFile
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import Run, RunState
from muster.reports.words import count

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle

Again = Callable[[Microdollars], Awaitable["RunHandle | None"]]  # with what was spent before


class FixingEnding(WavesEnding):
    """Ends a verification that did not pass by mending what it found, and by verifying that; once."""

    def __init__(self, again: Again) -> None:
        self._again = again

    async def outcome(self, muster: "Muster", run: Run, wanted: tuple[Wanted, ...], manner: Manner) -> Outcome:
        """Give what the last of the two verifications came to; a changed file that it did not see is no success."""
        first = await super().outcome(muster, run, (), manner)
        if first.ok or run.state is not RunState.COMPLETED:
            return await super().outcome(muster, run, wanted, manner)
        fixed = await muster.verify.fix(run)
        note(manner, _words(first, run, fixed))
        last = await self._verified_again(muster, run, manner) if fixed.changed else run
        found = await super().outcome(muster, last, wanted, manner)
        missed = [] if last is run else await muster.verify.unverified(last, fixed)
        if missed:
            verdict = f"Changed and not verified any more: {', '.join(missed)}."
            warn(verdict)
            found = replace(found, ok=False, verdict=verdict)
        return replace(found, data={**found.data, "fix": fixed_view(run, fixed)}) if manner.json else found

    async def _verified_again(self, muster: "Muster", run: Run, manner: Manner) -> Run:
        """Verify what was changed; where that cannot be done, the first verification is what counts."""
        try:
            handle = await self._again(run.total.settled)
        except (BadArgument, BadFile) as error:
            warn(f"what was changed cannot be verified: {error.message}")
            return run
        if handle is None:
            warn("what was changed leaves nothing to verify")
            return run
        return await drive(muster, handle, display(manner), self.sights(muster))


def _words(first: Outcome, run: Run, fixed: Fixed) -> str:
    if not fixed.changed:
        lines = ["nothing was changed: no finding proposes a change that can be made"]
    else:
        lines = [f"{first.verdict} This cost {show_usd(run.spent.settled)}."]
        lines.append(f"changed {count(len(fixed.changed), 'file')}: {', '.join(fixed.changed)}")
        lines.append("what was changed is verified once more; look at it with: git diff")
    return "\n".join([*lines, *(f"not changed: {one}" for one in fixed.left)])
