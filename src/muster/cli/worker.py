"""`muster worker`: drives submitted runs until it is stopped."""

from typing import Annotated, Any

from muster.app import Muster
from muster.app.views.runs import whole_run_view
from muster.cli.drive import Stopper
from muster.cli.line import Option
from muster.cli.options import PatienceOptions
from muster.cli.runs.words import summary
from muster.cli.session import with_muster
from muster.cli.terminal.output import OutputOptions, answer, clean, fail_with, note, say, warn
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.run import Run


def worker(
    manner: OutputOptions,
    patience: PatienceOptions,
    concurrency: Annotated[int, Option("--concurrency", metavar="N", min=1, help="Runs at a time.")] = 3,
    until_idle: Annotated[bool, Option("--until-idle", help="End when nothing is left to do.")] = False,
    allow_unpriced: Annotated[bool, Option("--allow-unpriced", help="Ask models whose price is not known.")] = False,
) -> int:
    """Drive submitted runs, also those whose driver died; exit code 1 if one of them exceeded a budget."""
    ended: list[Run] = []

    async def work(muster: Muster) -> list[dict[str, Any]]:
        await _serve(muster, manner, concurrency, until_idle, ended)
        return [whole_run_view(run, await muster.runs.batches_of(run.id)) for run in ended]

    data = {"runs": with_muster(manner, work, allow_unpriced=allow_unpriced, patience=patience, create=True)}
    exceeded = [run.id for run in ended if run.overdraft is not None]
    if exceeded:
        return fail_with(manner, _exceeded(exceeded, len(ended)), 1, data)
    answer(manner, data, lambda console: None)
    return 0


def _exceeded(runs: list[RunId], of: int) -> dict[str, Any]:
    return {
        "code": "overdraft",
        "message": f"{len(runs)} of {of} runs exceeded a budget: {', '.join(runs)}",
        "suggestions": [f"muster runs show {runs[0]}"],
    }


async def _serve(muster: Muster, manner: OutputOptions, concurrency: int, until_idle: bool, ended: list[Run]) -> None:
    def on_end(run: Run) -> None:
        ended.append(run)
        over = run.overdraft
        if over is not None:
            warn(f"run {run.id}: {over['message']}")
        if not manner.json:
            say(clean(summary(run)))

    def on_error(run: RunId, error: MusterError) -> None:
        warn(f"run {run} could not be driven: {error.message}")

    crew = muster.worker(most=concurrency, on_end=on_end, on_error=on_error)
    Stopper(muster, warn, on_first=crew.close).install()
    note(manner, f"working for {muster.settings.database}, {concurrency} runs at a time")
    await crew.serve(until_idle=until_idle)
    await _tell_unknown(muster, manner)


async def _tell_unknown(muster: Muster, manner: OutputOptions) -> None:
    """Say which submitted runs nobody here can drive."""
    left = await muster.runs.unknown()
    if left:
        names = ", ".join(sorted({run.workload for run in left}))
        note(manner, f"{len(left)} queued runs are left, of workloads that are not known here: {names}")
        note(manner, "  name the modules that define them in muster.toml under [workloads] import")
