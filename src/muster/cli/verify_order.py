"""A verification as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from muster.app.loads import Quoting
from muster.app.verifications import Prepared
from muster.cli.ending import drive_and_conclude
from muster.cli.manner import Manner
from muster.cli.question import check_name
from muster.cli.report_files import VERIFY_FORMATS, Wanted, wanted_reports
from muster.cli.run_terms import Terms
from muster.cli.speech import note
from muster.cli.verify_ending import WavesEnding
from muster.cli.verify_fix import FixingEnding
from muster.cli.verify_options import Asked
from muster.cli.verify_sending import VerifySending
from muster.cli.verify_words import first_words, tell_nothing
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars
from muster.settings import parse_budget

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

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
        reports = wanted_reports(terms.reports, VERIFY_FORMATS, manner)
        return Order(asked=asked, sent=sent, terms=terms, reports=reports, fix=fix)


def preparing(muster: "Muster", asked: Asked, sent: VerifySending) -> "AbstractAsyncContextManager[Prepared]":
    """Choose the files and the agents."""
    selection = asked.selection(muster.settings.verify.pending)
    return muster.verify.prepare(Path.cwd(), selection, asked.choice(live=sent.live, cache=sent.cache))


async def carry_out(muster: "Muster", order: Order, manner: Manner) -> int:
    """Verify as it was ordered; gives the exit code."""
    begun = await _begin(muster, order, manner)
    if isinstance(begun, Prepared):
        selection = order.asked.selection(muster.settings.verify.pending)
        return tell_nothing(manner, selection, begun, allowed=order.asked.allow_empty)

    async def again(spent: Microdollars) -> "RunHandle | None":
        left = replace(order, terms=replace(order.terms, budget=_rest(order.terms.budget, spent)))
        after = await _begin(muster, left, manner)
        return None if isinstance(after, Prepared) else after

    ending = FixingEnding(again) if order.fix else WavesEnding()
    return await drive_and_conclude(muster, begun, ending, order.reports, manner)


def _rest(budget: str | None, spent: Microdollars) -> str | None:
    """Give what is left of a budget; when nothing is, it is so small that nothing can be asked."""
    cap = parse_budget(budget)
    return None if cap is None else f"{max(cap - spent, 1) / 1_000_000:.6f}"


async def _begin(muster: "Muster", order: Order, manner: Manner) -> "RunHandle | Prepared":
    """Start a verification; returns what was prepared instead when there is nothing to verify."""
    async with preparing(muster, order.asked, order.sent) as prepared:
        if not prepared.spec.files:
            return prepared
        options = order.terms.options(muster, order.sent.sending.dispatch)
        planned = muster.verify.plan(prepared.spec, options.dispatch, Quoting.FIRST)
        order.sent.require_batches(planned.parts)
        note(manner, first_words(planned, prepared))
        return await muster.verify.start(prepared, options, detach=order.sent.sending.detach)
