"""What a command does that is made from the declaration of a kind of work."""

from muster.app import Muster
from muster.app.orders import start_of
from muster.cli.formats import formats_of
from muster.cli.options import filled, require_sendable
from muster.cli.outcome import drive_and_conclude
from muster.cli.reports import wanted_reports
from muster.cli.runs.endings import ending_of_kind
from muster.cli.runs.resume import drive_any
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, note
from muster.cli.work.options import WorkArguments
from muster.domain.named import named_files


def start(common: CommonOptions, arguments: WorkArguments) -> int:
    """Start work of a kind and wait for its end: its report, or its result if it has none."""
    kind, given, detach = arguments.known.kind, arguments.order, arguments.detach
    require_sendable(given, arguments.patience, detach=detach)
    ending, begin = ending_of_kind(kind), start_of(arguments.known)
    wanted = wanted_reports(arguments.reports, formats_of(kind), common, list(named_files(given)))
    order = filled(given, kind)

    async def work(muster: Muster) -> int:
        handle = await begin(muster, order, detach=detach)
        note(common, f"started run {handle.id}; {arguments.known.doors.hint.format(run=handle.id)}")
        if ending is None:
            return await drive_any(muster, handle, common, with_result=True)
        return await drive_and_conclude(muster, handle, ending, wanted, common)

    patience, unpriced = arguments.patience, arguments.allow_unpriced
    return with_muster(common, work, allow_unpriced=unpriced, patience=patience, create=True)
