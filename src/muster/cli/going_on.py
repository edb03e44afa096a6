"""`muster runs resume | fork | replay`: going on with what is stored; replies that are known cost nothing."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.frame import command, with_muster
from muster.cli.manner import Manner
from muster.cli.speech import answer, note

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.domain.run import Run

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="An id, the beginning of one, a name, or `last`.")]
BudgetOption = Annotated[str | None, typer.Option("--budget", metavar="USD", help="A new cap for the run.")]
UnpricedOption = Annotated[bool, typer.Option("--allow-unpriced", help="Ask models whose price is not known.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "resume")(resume)
    command(app, "fork")(fork)
    command(app, "replay")(replay)


def resume(
    manner: Manner,
    run: RunArgument,
    budget: BudgetOption = None,
    detach: Annotated[bool, typer.Option("--detach", help="Queue it for workers instead of driving it here.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> None:
    """Go on with a run; replies that are known cost nothing."""

    async def prepare(muster: "Muster") -> "Run":
        from muster.cli.driving import refuse_driven

        before = await muster.find(run)
        refuse_driven(before)
        after = await muster.prepare_resume(before.id, budget_usd=budget)
        note(manner, _before_spending(before, after))
        return after

    async def hand_over(muster: "Muster") -> "tuple[Run, int]":
        return await muster.queue(await prepare(muster)), len(await muster.engine.workers())

    if detach:
        _answer_queued(manner, *with_muster(manner, hand_over))
    else:
        _drive(manner, prepare, allow_unpriced=allow_unpriced)


def fork(
    manner: Manner,
    run: RunArgument,
    from_key: Annotated[str, typer.Option("--from", metavar="KEY", help="The first key to ask anew.")],
    budget: BudgetOption = None,
    allow_unpriced: UnpricedOption = False,
) -> None:
    """Make a new run that asks anew from a key on."""

    async def prepare(muster: "Muster") -> "Run":
        made = await muster.fork(run, from_key, budget_usd=budget)
        note(manner, f"run {made.id} takes over what stands before {from_key} in run {_origin(made)}")
        return made

    _drive(manner, prepare, allow_unpriced=allow_unpriced)


def replay(manner: Manner, run: RunArgument) -> None:
    """Do a run again from what is stored; nobody is asked."""

    async def prepare(muster: "Muster") -> "Run":
        made = await muster.replay(run)
        note(manner, f"run {made.id} replays run {_origin(made)}; nobody is asked")
        return made

    _drive(manner, prepare, allow_unpriced=True)  # a replay pays for nothing


def _drive(manner: Manner, prepare: "Callable[[Muster], Awaitable[Run]]", *, allow_unpriced: bool) -> None:
    async def work(muster: "Muster") -> "Run":
        from muster.cli.driving import drive
        from muster.cli.progress import display

        run = await prepare(muster)
        return await drive(muster, muster.drive(run), display(manner))

    run = with_muster(manner, work, allow_unpriced=allow_unpriced)
    from muster.cli.portrait import run_json, summary

    text = f"{summary(run)}\nsee it with: muster runs show {run.id}"
    answer(manner, run_json(run), lambda console: console.print(text, soft_wrap=True))


def _answer_queued(manner: Manner, run: "Run", workers: int) -> None:
    from muster.cli.portrait import run_json

    alive = "1 worker is" if workers == 1 else f"{workers} workers are"
    who = f"{alive} there to drive it" if workers else "no worker is alive; start one with: muster worker"
    text = f"run {run.id} is queued; {who}"
    answer(manner, run_json(run) | {"workers": workers}, lambda console: console.print(text, soft_wrap=True))


def _before_spending(before: "Run", after: "Run") -> str:
    from muster.domain.money import show_usd

    calls = before.calls
    words = f"{calls.done} replies reused, {calls.uncertain} calls were uncertain ({show_usd(before.spent.uncertain)})"
    if after.id == before.id:
        return words
    return f"run {before.id} is {before.state}; going on as run {after.id}\n{words}"


def _origin(run: "Run") -> str:
    return run.origin.run if run.origin is not None else ""
