"""Chains as they were ordered: checked before anything is stored, driven at once, and each concluded."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from muster.app import Muster
from muster.app.chains.chains import ChainSpec, read_rows
from muster.app.kinds import CHAIN
from muster.app.runs.handle import RunHandle
from muster.app.runs.options import RunOptions
from muster.app.runs.runs import require_completed
from muster.app.views.chains import ChainProgressesView, ProgressView, chains_error, progress_view
from muster.cli.chains.table import tell_progress
from muster.cli.drive import FreshEvents, ProgressSource, SignalHandler
from muster.cli.outcome import RunOutcome, drive_and_conclude
from muster.cli.reports import WantedReport
from muster.cli.terminal.output import CommonOptions, answer, fail_with, note, warn
from muster.cli.terminal.progress import ProgressState, run_progress
from muster.domain.batch import Batch
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, MusterError, exit_code_of
from muster.domain.run import Run
from muster.pool.chains.order import ChainOrder

if TYPE_CHECKING:
    from rich.console import Console


def specs_of(muster: Muster, order: ChainOrder) -> list[ChainSpec]:
    """Read the chains that are meant; of several each gets the inputs that it has."""
    given = order.inputs
    chains = [muster.chains.load(path) for path in order.files]
    rows = () if order.rows_file is None else read_rows(order.rows_file)
    if len(chains) == 1:
        return [muster.chains.ordered(order, chains[0], given, rows=rows)]
    known = {name for chain in chains for name in chain.inputs}
    if unknown := [name for name in given if name not in known]:
        raise BadArgument(f"none of the chains has an input {unknown[0]!r}")
    return [muster.chains.ordered(order, chain, _own(given, chain.inputs)) for chain in chains]


def _own(given: Mapping[str, Json], inputs: Mapping[str, object]) -> dict[str, Json]:
    return {name: value for name, value in given.items() if name in inputs}


async def carry_out(muster: Muster, order: ChainOrder, common: CommonOptions, *, detach: bool) -> int:
    """Run chains as it was ordered; returns the exit code."""
    options = muster.runs.ordered(order)
    specs = specs_of(muster, order)
    for spec in specs:
        muster.chains.plan(spec, options.dispatch)  # all of them can be done before the first is started
        if told := await muster.chains.folder_note(spec):
            note(common, told)
    if detach:
        return await _submit(muster, specs, options, common)
    handles = [await muster.chains.start(spec, options) for spec in specs]
    if len(handles) == 1:
        return await drive_and_conclude(muster, handles[0], CHAINS, (), common)
    return await _drive_all(muster, handles, common)


async def _submit(muster: Muster, specs: Sequence[ChainSpec], options: RunOptions, common: CommonOptions) -> int:
    handles = [await muster.chains.submit(spec, options) for spec in specs]
    found = [await muster.chains.progress(handle.id) for handle in handles]
    workers = await muster.runs.workers()
    who = "a worker will execute it" if workers else "no worker is alive; start one with: muster worker"

    def tell(console: "Console") -> None:
        for one in found:
            console.print(f"run {one.run.id} is queued; {who}", soft_wrap=True)

    answer(common, _data(found), tell)
    return 0


async def _drive_all(muster: Muster, handles: Sequence[RunHandle], common: CommonOptions) -> int:
    """Drive several chains at once; the exit code is that of the first that did not complete."""
    SignalHandler(muster, warn).install()
    note(common, "\n".join(f"started run {handle.id}" for handle in handles))
    runs = await asyncio.gather(*(handle.wait() for handle in handles))
    for run in runs:
        await muster.chains.save(run)
    found = [await muster.chains.progress_of(run) for run in runs]
    errors = [error for run in runs if (error := _error_of(run)) is not None]

    def tell(console: "Console") -> None:
        for one in found:
            tell_progress(console, one)

    if not errors:
        answer(common, _data(found), tell)
        return 0
    if common.json:
        return fail_with(common, chains_error(errors), exit_code_of(errors[0]), _data(found))
    answer(common, {}, tell)
    for error in errors:
        warn(f"error: {error.message}")
    return exit_code_of(errors[0])


def _error_of(run: Run) -> MusterError | None:
    try:
        require_completed(run)
    except MusterError as error:
        return error
    return None


def _data(chains: Sequence[Any]) -> ChainProgressesView | ProgressView:
    views = [progress_view(chain) for chain in chains]
    return ChainProgressesView(chains=views) if len(views) > 1 else views[0]


class ChainEnding:
    """Ends chains."""

    kind = CHAIN
    shows_content = False
    tell_report = None

    def progress_source(self, muster: Muster) -> ProgressSource:
        """Look at a run while it is driven."""
        return ChainProgressSource(muster)

    async def outcome(
        self, muster: Muster, run: Run, wanted: tuple[WantedReport, ...], common: CommonOptions
    ) -> RunOutcome:
        """Sum a run up."""
        await muster.chains.save(run)
        found = await muster.chains.progress_of(run)
        return RunOutcome(
            ok=True,
            verdict="",
            data=progress_view(found),
            closer=f"muster chain progress {run.id}",
            tell=lambda console: tell_progress(console, found),
        )


class ChainProgressSource:
    """Looks at a chain."""

    def __init__(self, muster: Muster) -> None:
        self._muster, self._events = muster, FreshEvents(muster)
        self._done, self._words = 0, ""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""
        async for event in self._events.of(run):
            if event.kind == "chain.step.started":
                self._words = str(event.data["name"])
            elif event.kind == "chain.setup":
                self._words = f"preparing the worktree: {event.data['command']}"
            elif event.kind in ("chain.step.ended", "chain.row.ended"):
                self._done += 1
        usual, size = run_progress(run, on_wire, batches), self._muster.chains.size(run)
        return ProgressState(
            title=usual.title,
            words=", ".join(part for part in (self._words, usual.words) if part),
            done=self._done,
            total=size.rows or size.steps,
            unit="rows" if size.rows else "steps",
            waits=usual.waits,
            since=usual.since,
        )


CHAINS = ChainEnding()
