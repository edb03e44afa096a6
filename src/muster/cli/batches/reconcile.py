"""`muster batch reconcile`: batches of which nobody knows whether they were created, looked for at their providers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster, Patience
from muster.app.runs.batches import BatchLook, Reconciled
from muster.app.views.batches import reconciliation_view
from muster.app.views.errors import reconciliation_error
from muster.cli.drive import interruptible
from muster.cli.line import Option
from muster.cli.options import PatienceOptions
from muster.cli.session import with_muster
from muster.cli.terminal.batches import batch_name, some_batches, standing
from muster.cli.terminal.display import display, shown
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note, warn
from muster.cli.terminal.progress import ProgressState
from muster.cli.terminal.times import local, span
from muster.domain.batch import OVER, BatchState
from muster.domain.ids import BatchId, RunId

if TYPE_CHECKING:
    Found = tuple[Reconciled, list[RunId]]

MAX_SHOWN = 20  # batches among which the one is chosen that is shown
TWICE = "calls of abandoned batches are sent again and may be paid twice"


def reconcile(
    common: CommonOptions,
    patience: PatienceOptions,
    resubmit: Annotated[
        bool, Option("--resubmit", help="Resubmit the calls of batches that were not found; they may be paid twice.")
    ] = False,
    grace: Annotated[
        float | None,
        Option(
            "--grace",
            metavar="S",
            min=0,
            shown="120",
            help="Seconds for which a batch is looked for in the provider's list; a list that cannot be read is tried "
            "for 20 at least.",
        ),
    ] = None,
) -> int:
    """Check whether batches whose submission was interrupted exist at the provider."""
    if grace is not None:
        patience = replace(patience, grace=grace)

    async def work(muster: Muster) -> "list[Found]":
        return await _reconcile(muster, common, patience, resubmit)

    with interruptible() as said:
        said.words, said.ways = "interrupted; what was found is kept", ("muster batch reconcile",)
        found = with_muster(common, work, patience=patience)
    return _tell(common, found)


async def _reconcile(muster: Muster, common: CommonOptions, patience: Patience, resubmit: bool) -> "list[Found]":
    unclear = await muster.batches.unclear()
    if unclear:
        most = f"that can take {span(patience.look_seconds)} for each (--grace)"
        note(common, f"looking for {some_batches(unclear)} at the provider; {most}")
    if unclear and resubmit:
        warn(f"--resubmit: {TWICE}")

    looks: dict[BatchId, BatchLook] = {}

    def begin(look: BatchLook) -> None:
        looks[look.batch.id] = look
        if look.holder is not None:
            note(common, holder_words(look))

    async def progress() -> ProgressState:
        batches = [await muster.batches.get(name) for name in list(looks)[-MAX_SHOWN:]]
        return looks_progress([replace(looks[batch.id], batch=batch) for batch in batches])

    with display(common, stays=False) as screen:
        decided = await shown(muster.batches.reconcile(resubmit=resubmit, on_look=begin), progress, screen)
    return [(one, list(await muster.batches.resumable(one.batch.id))) for one in decided]


def looks_progress(looks: Sequence[BatchLook]) -> ProgressState:
    """Return which batch keeps whoever reconciles waiting, why, and until when at most."""
    open_ = [look for look in looks if look.batch.state not in OVER]
    if not open_:
        return ProgressState(title="batch reconcile", words="looking")
    look = next((look for look in reversed(open_) if look.batch.stalled), open_[-1])
    why = f"{look.batch.note}; " if look.batch.stalled else ""
    waits = f"{why}the provider is asked until {local(look.until)} at most"
    return ProgressState(title=batch_name(look.batch), words=standing(look.batch), waits=clean(waits))


def holder_words(look: BatchLook) -> str:
    """Return who is at a batch, and what that means for whoever reconciles."""
    since = "" if look.batch.claimed_at is None else f" since {local(look.batch.claimed_at)}"
    if look.batch.grace_until is None:
        return f"{batch_name(look.batch)} is being created by {look.holder}{since}; waiting for the provider's answer"
    if look.batch.by_hand:
        return f"{batch_name(look.batch)} is being reconciled by {look.holder}{since}; waiting until that is done"
    return f"{batch_name(look.batch)} is looked for by {look.holder}{since}; it is taken over from there"


def _tell(common: CommonOptions, found: "list[Found]") -> int:
    data, error = reconciliation_view(found), reconciliation_error([one for one, _ in found])
    lines = [_line(one) for one, _ in found] or ["nothing to reconcile"]
    lines += [f"continue with: muster runs resume {run}" for run in data.resumable]
    if not common.json:
        answer(common, data, lambda console: console.print("\n".join(lines), soft_wrap=True))
    elif error is None:
        answer(common, data, lambda console: None)
    return 0 if error is None else fail_with(common, error, 4, data)


def _line(one: Reconciled) -> str:
    if one.error is None:
        decision = _decision(one.batch.state)
        return clean(f"{batch_name(one.batch)}: {decision}{': ' if decision else ''}{one.batch.note}")
    named = "" if one.batch.id in one.error.message else f"{batch_name(one.batch)}: "
    return clean(f"still open: {named}{one.error.message}")


def _decision(state: BatchState) -> str:
    words = {
        BatchState.PLANNED: "was not created; it is sent when its run continues",
        BatchState.ABANDONED: "",  # its note begins with it
        BatchState.RUNNING: "found",
    }
    return words.get(state, str(state))
