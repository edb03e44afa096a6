"""`muster runs resume | fork | replay`: going on with what is stored; replies that are known cost nothing."""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from muster.app import Muster, Patience
from muster.app.runs.handle import RunHandle
from muster.app.views.runs import whole_run_view
from muster.cli.batches.words import calls
from muster.cli.drive import drive, refuse_driven
from muster.cli.line import Option
from muster.cli.options import PatienceOptions, RunArgument
from muster.cli.outcome import WantedReport, conclude, drive_and_conclude
from muster.cli.runs.ask import leave
from muster.cli.runs.endings import ENDINGS
from muster.cli.runs.words import new_run_words, saving_words, summary
from muster.cli.session import with_muster
from muster.cli.terminal.output import OutputOptions, answer, clean, fail_with, note
from muster.cli.terminal.progress import display
from muster.domain.money import show_usd
from muster.domain.run import Run, RunState

BudgetOption = Annotated[
    str | None,
    Option("--budget", metavar="USD", help="A new total for the run and all that it is resumed as."),
]
ForkBudgetOption = Annotated[
    str | None,
    Option("--budget", metavar="USD", help="The budget of the new run; left out, as much as the other had, anew."),
]
UnpricedOption = Annotated[bool, Option("--allow-unpriced", help="Ask models whose price is not known.")]


def resume(
    manner: OutputOptions,
    patience: PatienceOptions,
    run: RunArgument,
    budget: BudgetOption = None,
    detach: Annotated[bool, Option("--detach", help="Queue it for workers instead of driving it here.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Go on with a run; replies that are known cost nothing."""

    async def prepare(muster: Muster) -> Run:
        return await prepare_resume(muster, manner, run, budget, here=not detach)

    async def hand_over(muster: Muster) -> dict[str, Any]:
        queued = await muster.runs.queue((await prepare(muster)).id)
        view = whole_run_view(queued, await muster.runs.batches_of(queued.id))
        return view | {"workers": await muster.runs.workers()}

    if detach:
        _answer_queued(manner, with_muster(manner, hand_over))
        return 0
    return go_on(manner, prepare, patience, allow_unpriced=allow_unpriced)


async def prepare_resume(
    muster: Muster, manner: OutputOptions, reference: str, budget: str | None, *, here: bool = True
) -> Run:
    """Give the run to go on with; what would keep this process from its batches is told before anything changes."""
    before = await muster.runs.find(reference)
    if before.workload in ENDINGS and _is_over(before):
        # Whoever lost its exit code, because the process died after its last commit, gets it here.
        note(manner, f"run {before.id} is completed; this is what it came to")
        return before
    refuse_driven(before)
    if before.workload in ENDINGS:
        ENDINGS[before.workload].require_places(muster)
    if here:
        await muster.runs.require_batches(before.id)
    held = await muster.runs.batches_of(before.id)
    after = await muster.runs.prepare_resume(before.id, budget_usd=budget)
    note(manner, _before_spending(before, after, held.saving.parked))
    return after


def fork(
    manner: OutputOptions,
    patience: PatienceOptions,
    run: RunArgument,
    from_key: Annotated[str, Option("--from", metavar="KEY", help="The first key to ask anew.")],
    budget: ForkBudgetOption = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Make a new run that asks anew from a key on."""

    async def prepare(muster: Muster) -> Run:
        made = await muster.runs.fork(run, from_key, budget_usd=budget)
        taken = f"run {made.id} takes over what stands before {from_key} in run {_origin(made)}"
        note(manner, f"{taken}; it is {new_run_words(made.cap)}")
        return made

    return go_on(manner, prepare, patience, allow_unpriced=allow_unpriced)


def replay(manner: OutputOptions, run: RunArgument) -> int:
    """Do a run again from what is stored; nobody is asked."""

    async def prepare(muster: Muster) -> Run:
        made = await muster.runs.replay(run)
        note(manner, f"run {made.id} replays run {_origin(made)}; nobody is asked")
        return made

    return go_on(manner, prepare, None, allow_unpriced=True)  # a replay pays for nothing and waits for nobody


def go_on(
    manner: OutputOptions,
    prepare: Callable[[Muster], Awaitable[Run]],
    patience: Patience | None,
    *,
    allow_unpriced: bool,
    wanted: tuple[WantedReport, ...] = (),
) -> int:
    """Drive a run to its end; it ends as the command does that starts such runs, with the same exit code."""

    async def work(muster: Muster) -> int:
        run = await prepare(muster)
        ending = ENDINGS.get(run.workload)
        if ending is None:
            return await drive_any(muster, muster.runs.drive(run), manner)
        if _is_over(run):
            return await conclude(muster, run, ending, wanted, manner, again=True)
        return await drive_and_conclude(muster, muster.runs.drive(run), ending, wanted, manner)

    return with_muster(manner, work, allow_unpriced=allow_unpriced, patience=patience)


def _is_over(run: Run) -> bool:
    return run.state is RunState.COMPLETED


async def drive_any(muster: Muster, handle: RunHandle, manner: OutputOptions, *, with_result: bool = False) -> int:
    """Drive a run of any workload and sum it up; returns the exit code, and raises what stopped it."""
    run = await drive(muster, handle, display(manner))
    batches = await muster.runs.batches_of(run.id)
    if run.is_detached:
        return leave(manner, run, batches, await muster.runs.workers())
    saved = saving_words(batches)
    lines = [summary(run), *([saved] if saved else []), f"see it with: muster runs show {run.id}"]
    if with_result and run.result is not None:
        lines.append(f"result: {clean(json.dumps(run.result, ensure_ascii=False))}")
    over, data = run.overdraft, whole_run_view(run, batches)
    if over is None or not manner.json:
        answer(manner, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0 if over is None else fail_with(manner, over, 1, data)


def _answer_queued(manner: OutputOptions, queued: dict[str, Any]) -> None:
    workers = queued["workers"]
    alive = "1 worker is" if workers == 1 else f"{workers} workers are"
    who = f"{alive} there to drive it" if workers else "no worker is alive; start one with: muster worker"
    text = f"run {queued['id']} is queued; {who}"
    answer(manner, queued, lambda console: console.print(text, soft_wrap=True))


def _before_spending(before: Run, after: Run, parked: int) -> str:
    counts, lost = before.calls, show_usd(before.spent.uncertain)
    words = f"{counts.done} replies reused, {counts.uncertain} calls were uncertain ({lost})"
    if parked:
        words += f", {calls(parked)} already in batches"
    if after.cap is not None:
        words += f"; {show_usd(after.total.settled)} of the budget of {show_usd(after.cap)} is spent"
    if after.id == before.id:
        return words
    return f"run {before.id} is {before.state}; going on as run {after.id}\n{words}"


def _origin(run: Run) -> str:
    return run.origin.run if run.origin is not None else ""
