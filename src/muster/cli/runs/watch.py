"""`muster runs watch`: the events of a run as they come."""

import sys

from muster.app import Muster
from muster.app.views.events import event_view
from muster.cli.drive import ProgressSource
from muster.cli.options import RunArgument
from muster.cli.runs.endings import ending_of, exit_code_of_run
from muster.cli.session import with_muster
from muster.cli.terminal.display import display, shown
from muster.cli.terminal.output import CommonOptions, clean, json_text, note, say
from muster.cli.terminal.progress import ProgressState
from muster.cli.terminal.runs import event_line, summary
from muster.domain.run import Run


def watch(common: CommonOptions, run: RunArgument) -> int:
    """Follow a run until it ends or waits; exit with the exit code of the run."""

    async def work(muster: Muster) -> tuple[Run, int]:
        found = await muster.runs.find(run)
        ending, seen = ending_of(found), sys.stderr.isatty() and not common.json and not common.quiet
        if ending is not None and ending.shows_content and seen:
            return await _watch_shown(muster, found, ending.progress_source(muster), common)
        async for event in muster.runs.watch(found).events():
            if common.json:
                say(json_text(event_view(event, local=True)))
            else:
                say(clean(event_line(event)))
        over = await muster.runs.get(found.id)
        return over, await exit_code_of_run(muster, over)

    over, code = with_muster(common, work)
    if not common.json:
        note(common, summary(over))
    return code


async def _watch_shown(muster: Muster, run: Run, source: ProgressSource, common: CommonOptions) -> tuple[Run, int]:
    """Show a run while it goes on: of a council its round and bars of support, of a battle its last messages."""
    handle = muster.runs.watch(run)

    async def look() -> ProgressState:
        return await source.look(await handle.run(), 0)

    with display(common) as shown_on:
        over = await shown(handle.wait(), look, shown_on)
        shown_on.show(await source.look(over, 0), last=True)
    return over, await exit_code_of_run(muster, over)
