"""A verification as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.verify_office import Prepared, Quoting, Selection, Whereabouts, prepare, survey
from muster.cli.ending import drive_and_conclude
from muster.cli.manner import Manner
from muster.cli.question import check_name
from muster.cli.report_files import Wanted, wanted_reports
from muster.cli.run_terms import Terms
from muster.cli.speech import note
from muster.cli.verify_ending import WavesEnding
from muster.cli.verify_fix import FixingEnding
from muster.cli.verify_options import Asked
from muster.cli.verify_reports import FORMATS
from muster.cli.verify_sending import VerifySending
from muster.cli.verify_words import first_words, tell_nothing
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars
from muster.domain.waves import WORKLOAD
from muster.formats.waves.spec import stored
from muster.settings import parse_budget

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be verified, by whom, and on which terms."""

    asked: Asked
    sent: VerifySending
    terms: Terms
    reports: tuple[Wanted, ...] = ()
    fix: bool = False

    @staticmethod
    def of(asked: Asked, sent: VerifySending, terms: Terms, manner: Manner, *, fix: bool = False) -> "Order":
        """Check what was said before anything is opened."""
        check_name(terms.name)
        parse_budget(terms.budget)
        if fix and (asked.staged or sent.sending.detach):
            other = "--staged" if asked.staged else "--detach"
            raise BadArgument(
                f"--fix changes files when all is known, which does not go with {other}",
                suggestions=(f"leave one of them out: --fix or {other}",),
            )
        reports = wanted_reports(terms.reports, FORMATS, manner)
        return Order(asked=asked, sent=sent, terms=terms, reports=reports, fix=fix)


class Preparation:
    """A verification that was put together; what was staged for it is gone afterwards, unless a run needs it."""

    def __init__(self, selection: Selection, prepared: Prepared) -> None:
        self.selection, self.prepared = selection, prepared
        self.handed_over = False


@asynccontextmanager
async def preparing(muster: "Muster", asked: Asked, sent: VerifySending) -> AsyncIterator[Preparation]:
    """Choose the files and the agents."""
    selection = asked.selection(muster.settings.verify.pending)
    choice = asked.choice(live=sent.live, cache=sent.cache)
    found = Preparation(selection, await prepare(muster, Path.cwd(), selection, choice))
    try:
        yield found
    finally:
        if not found.handed_over:
            Whereabouts(muster.settings).tidy(found.prepared.spec)


async def carry_out(muster: "Muster", order: Order, manner: Manner) -> int:
    """Verify as it was ordered; gives the exit code."""
    begun = await _begin(muster, order, manner)
    if isinstance(begun, Preparation):
        return tell_nothing(manner, begun.selection, begun.prepared, allowed=order.asked.allow_empty)

    async def again(spent: Microdollars) -> "RunHandle | None":
        left = replace(order, terms=replace(order.terms, budget=_rest(order.terms.budget, spent)))
        after = await _begin(muster, left, manner)
        return None if isinstance(after, Preparation) else after

    ending = FixingEnding(again) if order.fix else WavesEnding()
    return await drive_and_conclude(muster, begun, ending, order.reports, manner)


def _rest(budget: str | None, spent: Microdollars) -> str | None:
    """Give what is left of a budget; when nothing is, it is so small that nothing can be asked."""
    cap = parse_budget(budget)
    return None if cap is None else f"{max(cap - spent, 1) / 1_000_000:.6f}"


async def _begin(muster: "Muster", order: Order, manner: Manner) -> "RunHandle | Preparation":
    """Start a verification; gives what was prepared instead when there is nothing to verify."""
    async with preparing(muster, order.asked, order.sent) as found:
        if not found.prepared.spec.files:
            return found
        spec, sending = found.prepared.spec, order.sent.sending
        surveyed = survey(muster, spec, sending.dispatch, Quoting.FIRST)
        order.sent.require_batches(surveyed.parts)
        note(manner, first_words(surveyed, found.prepared))
        WavesEnding().require_places(muster)
        handle = await _start(muster, found.prepared, order)
        found.handed_over = True
    return handle


async def _start(muster: "Muster", prepared: Prepared, order: Order) -> "RunHandle":
    terms, sending = order.terms, order.sent.sending
    return await muster.start(
        WORKLOAD,
        stored(prepared.spec),
        budget_usd=terms.budget,
        name=terms.name,
        timeout=terms.timeout,
        concurrency=terms.concurrency,
        dispatch=sending.dispatch,
        detach=sending.detach,
    )
