"""`muster worker`: drives submitted runs until it is stopped."""

import sys
from typing import Annotated

from muster.app import Muster
from muster.app.base.stores import START_SECONDS
from muster.app.views.errors import overdrawn_runs
from muster.app.views.runs import DrivenRunsView, driven_runs_view
from muster.cli.drive import SignalHandler
from muster.cli.line import Option
from muster.cli.options import PatienceOptions, UnpricedOption
from muster.cli.service.options import LoggingOptions
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note, warn, write_to
from muster.cli.terminal.runs import summary
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.text.words import count


def worker(
    common: CommonOptions,
    patience: PatienceOptions,
    log: LoggingOptions,
    concurrency: Annotated[
        int, Option("--concurrency", metavar="N", min=1, help="Maximum number of concurrent runs.")
    ] = 3,
    queues: Annotated[
        str,
        Option(
            "--queues",
            metavar="NAMES",
            help="Only runs of these queues, separated by commas: battles, scale-tests, and runs for all others.",
        ),
    ] = "battles,scale-tests,runs",
    until_idle: Annotated[bool, Option("--until-idle", help="Exit when there is nothing left to do.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Execute submitted runs, such as those of --detach, until stopped; exit 1 if one exceeded a budget.

    A submitted run whose process died is continued. A run that a command started for itself is not: resume it, or
    submit it with `muster runs resume RUN --detach`.

    With REDIS_URL, workers on several machines share them through BullMQ.
    """
    ended: list[Run] = []
    names = tuple(dict.fromkeys(name.strip() for name in queues.split(",") if name.strip()))

    async def work(muster: Muster) -> DrivenRunsView:
        await _serve(muster, common, concurrency, names, until_idle, ended)
        return driven_runs_view([(run, await muster.runs.batches_of(run.id)) for run in ended])

    data = with_muster(
        common,
        work,
        allow_unpriced=allow_unpriced,
        patience=patience,
        create=True,
        log=log,
        start_secs=START_SECONDS,
    )
    error = overdrawn_runs(ended)
    if error is not None:
        return fail_with(common, error, 1, data)
    answer(common, data, lambda console: None)
    return 0


async def _serve(
    muster: Muster, common: CommonOptions, concurrency: int, queues: tuple[str, ...], until_idle: bool, ended: list[Run]
) -> None:
    def on_end(run: Run) -> None:
        ended.append(run)
        over = run.overdraft
        if over is not None:
            warn(str(over["message"]) if run.id in str(over["message"]) else f"run {run.id}: {over['message']}")
        if not common.json:
            write_to(sys.stdout, clean(summary(run)) + "\n")

    def on_error(run: RunId, error: MusterError) -> None:
        warn(f"run {run} could not be executed: {error.message}")

    def on_note(text: str) -> None:
        muster.log("worker.queue", note=text)
        warn(text)

    engine_worker = muster.worker(most=concurrency, queues=queues, on_end=on_end, on_error=on_error, on_note=on_note)
    SignalHandler(muster, warn, on_first=engine_worker.close).install()
    through = "" if muster.settings.redis_url is None else f", through Redis ({', '.join(queues)})"
    note(common, f"working for {muster.settings.store_place}, {count(concurrency, 'run')} at a time{through}")
    await engine_worker.serve(until_idle=until_idle)
    await _tell_unknown(muster, common)


async def _tell_unknown(muster: Muster, common: CommonOptions) -> None:
    """Print which submitted runs nobody here can drive."""
    left = await muster.runs.unknown()
    if left:
        names = ", ".join(sorted({run.workload for run in left}))
        are = "is" if len(left) == 1 else "are"
        note(common, f"{count(len(left), 'queued run')} {are} left, of workloads that are unknown here: {names}")
        note(common, "  name the modules that define them in muster.toml under [workloads] import")
