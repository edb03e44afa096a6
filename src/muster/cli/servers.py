"""`muster worker | sim`: processes that run until they are stopped."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import with_muster
from muster.cli.line import Option
from muster.cli.options import patient
from muster.cli.terminal.output import OutputOptions, answer, fail_with, note, say, warn

if TYPE_CHECKING:
    from muster.app import Muster, Patience
    from muster.domain.errors import MusterError
    from muster.domain.ids import RunId
    from muster.domain.run import Run


@patient
def worker(
    manner: OutputOptions,
    patience: "Patience",
    concurrency: Annotated[int, Option("--concurrency", metavar="N", min=1, help="Runs at a time.")] = 3,
    until_idle: Annotated[bool, Option("--until-idle", help="End when nothing is left to do.")] = False,
    allow_unpriced: Annotated[bool, Option("--allow-unpriced", help="Ask models whose price is not known.")] = False,
) -> int:
    """Drive submitted runs, also those whose driver died; exit code 1 if one of them exceeded a budget."""
    from muster.app.views.runs import whole_run_view

    ended: list[Run] = []

    async def work(muster: "Muster") -> list[dict[str, Any]]:
        await _serve(muster, manner, concurrency, until_idle, ended)
        return [whole_run_view(run, await muster.runs.batches_of(run.id)) for run in ended]

    data = {"runs": with_muster(manner, work, allow_unpriced=allow_unpriced, patience=patience, create=True)}
    exceeded = [run.id for run in ended if run.overdraft is not None]
    if exceeded:
        return fail_with(manner, _exceeded(exceeded, len(ended)), 1, data)
    answer(manner, data, lambda console: None)
    return 0


def _exceeded(runs: "list[RunId]", of: int) -> dict[str, Any]:
    return {
        "code": "overdraft",
        "message": f"{len(runs)} of {of} runs exceeded a budget: {', '.join(runs)}",
        "suggestions": [f"muster runs show {runs[0]}"],
    }


async def _serve(
    muster: "Muster", manner: OutputOptions, concurrency: int, until_idle: bool, ended: "list[Run]"
) -> None:
    from muster.cli.drive import Stopper
    from muster.cli.runs.words import summary
    from muster.cli.terminal.output import clean

    def on_end(run: "Run") -> None:
        ended.append(run)
        over = run.overdraft
        if over is not None:
            warn(f"run {run.id}: {over['message']}")
        if not manner.json:
            say(clean(summary(run)))

    def on_error(run: "RunId", error: "MusterError") -> None:
        warn(f"run {run} could not be driven: {error.message}")

    crew = muster.worker(most=concurrency, on_end=on_end, on_error=on_error)
    Stopper(muster, warn, on_first=crew.close).install()
    note(manner, f"working for {muster.settings.database}, {concurrency} runs at a time")
    await crew.serve(until_idle=until_idle)
    await _tell_unknown(muster, manner)


async def _tell_unknown(muster: "Muster", manner: OutputOptions) -> None:
    """Say which submitted runs nobody here can drive."""
    left = await muster.runs.unknown()
    if left:
        names = ", ".join(sorted({run.workload for run in left}))
        note(manner, f"{len(left)} queued runs are left, of workloads that are not known here: {names}")
        note(manner, "  name the modules that define them in muster.toml under [workloads] import")


def sim(
    manner: OutputOptions,
    port: Annotated[int, Option("--port", metavar="N", min=0, max=65535, help="0 takes a free one.")] = 0,
    latency_ms: Annotated[float, Option("--latency-ms", metavar="MS", min=0, help="Until the answer.")] = 0.0,
    script: Annotated[Path | None, Option("--script", metavar="FILE", help="Answers, by rule.")] = None,
    faults: Annotated[Path | None, Option("--faults", metavar="FILE", help="What goes wrong, and when.")] = None,
    capacity: Annotated[
        int | None, Option("--capacity", metavar="N", min=1, help="Requests at a time; more get 429.")
    ] = None,
    require_key: Annotated[
        str | None, Option("--require-key", metavar="KEY", help="The only key that is taken.")
    ] = None,
    batch_ms: Annotated[
        float, Option("--batch-ms", metavar="MS", min=0, help="From the creation of a batch to its end.")
    ] = 0.0,
    batch_requests: Annotated[
        int | None,
        Option("--batch-requests", metavar="N", min=1, help="Most in one batch; else as the provider."),
    ] = None,
    state: Annotated[
        Path | None, Option("--state", metavar="FILE", help="Go on from it, and write it at the end.")
    ] = None,
    live_counts: Annotated[
        bool | None,
        Option("--live-counts/--no-live-counts", help="Whether batches tell how far they are; else as provider."),
    ] = None,
) -> None:
    """Serve the rehearsal; the first line is JSON with addresses."""
    import asyncio

    from muster.domain.errors import BadArgument
    from muster.sim.files import load_faults, load_script
    from muster.sim.options import ECHO_SCRIPT, NO_FAULTS, Options
    from muster.sim.server import run

    options = Options(
        port=port,
        latency_ms=latency_ms,
        script=load_script(script) if script else ECHO_SCRIPT,
        faults=load_faults(faults) if faults else NO_FAULTS,
        capacity=capacity,
        key=require_key,
        batch_ms=batch_ms,
        batch_requests=batch_requests,
        live_counts=live_counts,
        state=state,
    )
    try:
        asyncio.run(run(options))
    except OSError as error:
        raise BadArgument(f"port {port} cannot be used: {error.strerror}", suggestions=("--port 0",)) from error
