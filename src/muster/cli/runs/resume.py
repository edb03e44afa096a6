"""`muster runs resume | fork | replay`: going on with what is stored; replies that are known cost nothing."""

import json
from collections.abc import Awaitable, Callable
from typing import Annotated

from muster.app import Muster, Patience
from muster.app.runs.handle import RunHandle
from muster.app.views.runs import RunView, queued_run_view, whole_run_view
from muster.cli.drive import drive
from muster.cli.line import Option
from muster.cli.options import PatienceOptions, RunArgument, UnpricedOption, refuse_useless
from muster.cli.outcome import conclude, drive_and_conclude, leave
from muster.cli.reports import WantedReport
from muster.cli.runs.endings import ending_of
from muster.cli.runs.options import BudgetOption, ForkBudgetOption
from muster.cli.session import with_muster
from muster.cli.terminal.batches import calls
from muster.cli.terminal.display import display
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note
from muster.cli.terminal.runs import new_run_words, saving_words, summary
from muster.domain.errors import state_verb
from muster.domain.money import show_usd
from muster.domain.run import Run, RunState


def resume(
    common: CommonOptions,
    patience: PatienceOptions,
    run: RunArgument,
    budget: BudgetOption = None,
    detach: Annotated[bool, Option("--detach", help="Submit the run to workers instead of running it here.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Continue a run; stored replies cost nothing. A failed, canceled or timed-out run continues as one new run."""

    async def prepare(muster: Muster) -> Run:
        await require_batches(muster, await muster.runs.find(run), patience)
        return await prepare_resume(muster, common, run, budget)

    async def hand_over(muster: Muster) -> RunView:
        await require_batches(muster, await muster.runs.find(run), patience)
        queued = await muster.submit_resume(run, budget_usd=budget)
        return queued_run_view(queued, await muster.runs.batches_of(queued.id), await muster.runs.workers(), local=True)

    if detach:
        queued = with_muster(common, hand_over)
        if queued.state == RunState.COMPLETED:  # its result is the answer, with the exit code of its own
            return go_on(common, prepare, patience, allow_unpriced=allow_unpriced)
        _answer_queued(common, queued)
        return 0
    return go_on(common, prepare, patience, allow_unpriced=allow_unpriced)


async def require_batches(muster: Muster, run: Run, patience: Patience) -> None:
    """Refuse options about batches when every call of a stored run is live."""
    refuse_useless(patience, batch=await muster.may_use_batches(run), way="leave it out")


async def prepare_resume(muster: Muster, common: CommonOptions, reference: str, budget: str | None) -> Run:
    """Return the run to go on with, or the completed one that is the answer; raises before anything changes."""
    before = await muster.runs.find(reference)
    held = await muster.runs.batches_of((await muster.runs.end_of_lineage(before)).id)
    after = await muster.prepare_resume(before.id, budget_usd=budget)
    continued = f"run {before.id} {state_verb(before.state)}; continued as run {after.id}"
    if _is_over(after):
        # Whoever lost its exit code, because the process died after its last commit, gets it here.
        subject = f"run {after.id}" if after.id == before.id else f"{continued}, which"
        note(common, f"{subject} has completed; its result:")
        return after
    words = _before_spending(await _reused(muster, before, after), after, held.saving.parked)
    note(common, words if after.id == before.id else f"{continued}\n{words}")
    return after


async def _reused(muster: Muster, before: Run, after: Run) -> Run:
    """Return the run whose replies are taken over: the one that goes on, or the one that it continues."""
    if after.id == before.id or after.origin is None or after.started_at is not None:
        return after
    return await muster.runs.get(after.origin.run)


def fork(
    common: CommonOptions,
    patience: PatienceOptions,
    run: RunArgument,
    from_key: Annotated[str, Option("--from", metavar="KEY", help="The key of the first call to repeat.")],
    budget: ForkBudgetOption = None,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Start a new run that repeats one call and all later ones."""

    async def prepare(muster: Muster) -> Run:
        await require_batches(muster, await muster.runs.find(run), patience)
        made = await muster.runs.fork(run, from_key, budget_usd=budget)
        taken = f"run {made.id} reuses everything before {from_key} of run {_origin(made)}"
        note(common, f"{taken}; it is {new_run_words(made.cap)}")
        return made

    return go_on(common, prepare, patience, allow_unpriced=allow_unpriced)


def replay(common: CommonOptions, run: RunArgument) -> int:
    """Repeat a run from stored replies; no agent is called."""

    async def prepare(muster: Muster) -> Run:
        made = await muster.runs.replay(run)
        note(common, f"run {made.id} replays run {_origin(made)}; no agent is called")
        return made

    return go_on(common, prepare, None, allow_unpriced=True)  # a replay pays for nothing and waits for nobody


def go_on(
    common: CommonOptions,
    prepare: Callable[[Muster], Awaitable[Run]],
    patience: Patience | None,
    *,
    allow_unpriced: bool,
    wanted: tuple[WantedReport, ...] = (),
) -> int:
    """Drive a run to its end; it ends as the command does that starts such runs, with the same exit code."""

    async def work(muster: Muster) -> int:
        run = await prepare(muster)
        ending = ending_of(run)
        if ending is None:
            return await drive_any(muster, muster.runs.go_on(run), common)
        if _is_over(run):
            return await conclude(muster, run, ending, wanted, common, again=True)
        return await drive_and_conclude(muster, muster.runs.drive(run), ending, wanted, common)

    return with_muster(common, work, allow_unpriced=allow_unpriced, patience=patience)


def _is_over(run: Run) -> bool:
    return run.state is RunState.COMPLETED


async def drive_any(muster: Muster, handle: RunHandle, common: CommonOptions, *, with_result: bool = False) -> int:
    """Drive a run of any workload and sum it up; returns the exit code, and raises what stopped it."""
    run = await drive(muster, handle, display(common), notes=not common.quiet)
    batches = await muster.runs.batches_of(run.id, flex=True)
    if run.is_detached:
        return leave(common, run, batches, await muster.runs.workers(), await muster.runs.questions(run.id))
    saved = saving_words(batches)
    lines = [summary(run), *([saved] if saved else []), f"see it with: muster runs show {run.id}"]
    if with_result and run.result is not None:
        lines.append(f"result: {clean(json.dumps(run.result, ensure_ascii=False))}")
    error, data = await muster.error_of(run), whole_run_view(run, batches, local=True)
    if error is None or not common.json:
        answer(common, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    return 0 if error is None else fail_with(common, error, 1, data)


def _answer_queued(common: CommonOptions, queued: RunView) -> None:
    workers = queued.workers
    if queued.state != RunState.QUEUED:
        text = f"run {queued.id} {state_verb(queued.state)}; there is nothing to start"
        answer(common, queued, lambda console: console.print(text, soft_wrap=True))
        return
    alive = "1 worker is" if workers == 1 else f"{workers} workers are"
    who = f"{alive} there to execute it" if workers else "no worker is alive; start one with: muster worker"
    text = f"run {queued.id} is queued; {who}"
    answer(common, queued, lambda console: console.print(text, soft_wrap=True))


def _before_spending(before: Run, after: Run, parked: int) -> str:
    counts, lost = before.calls, show_usd(before.spent.uncertain)
    words = f"{counts.done} replies reused, {counts.uncertain} calls were uncertain ({lost})"
    if parked:
        words += f", {calls(parked)} already in batches"
    if after.cap is not None:
        words += f"; {show_usd(after.total.settled)} of the budget of {show_usd(after.cap)} is spent"
    return words


def _origin(run: Run) -> str:
    return run.origin.run if run.origin is not None else ""
