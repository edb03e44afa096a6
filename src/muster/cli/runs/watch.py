"""`muster runs watch`: the events of a run as they come."""

import json

from muster.app import Muster
from muster.app.views.runs import event_view
from muster.cli.options import RunArgument
from muster.cli.runs.endings import exit_code_of_run
from muster.cli.runs.words import event_line, summary
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, clean, note, say
from muster.domain.run import Run


def watch(common: CommonOptions, run: RunArgument) -> int:
    """Follow a run until it ends or waits; exit with the exit code of the run."""

    async def work(muster: Muster) -> tuple[Run, int]:
        found = await muster.runs.find(run)
        async for event in muster.runs.watch(found).events():
            if common.json:
                say(json.dumps(event_view(event), ensure_ascii=False))
            else:
                say(clean(event_line(event)))
        over = await muster.runs.get(found.id)
        return over, await exit_code_of_run(muster, over)

    over, code = with_muster(common, work)
    if not common.json:
        note(common, summary(over))
    return code
