"""A suite run as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.app.loads import Quoting
from muster.app.run_options import RunOptions
from muster.app.suite_survey import Survey
from muster.app.suite_values import NOTHING, SuiteSpec
from muster.app.suites import AnswerSource, SuiteChoice
from muster.cli.ending import drive_and_conclude
from muster.cli.going_on import new_run_words
from muster.cli.manner import Manner
from muster.cli.question import check_name
from muster.cli.report_files import SUITE_FORMATS, Wanted, wanted_reports
from muster.cli.run_ending import SuiteEnding
from muster.cli.run_terms import Terms
from muster.cli.sending import Sending
from muster.cli.speech import note, warn
from muster.settings import parse_budget

if TYPE_CHECKING:
    from muster.app import Muster


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How a suite is to be run, apart from what it is about."""

    terms: Terms
    sending: Sending
    reports: tuple[Wanted, ...] = ()

    @staticmethod
    def of(terms: Terms, sending: Sending, manner: Manner) -> "Order":
        """Check what was said before anything is opened."""
        check_name(terms.name)
        parse_budget(terms.budget)
        return Order(terms=terms, sending=sending, reports=wanted_reports(terms.reports, SUITE_FORMATS, manner))

    def options(self, muster: "Muster") -> RunOptions:
        """Return the options of the run."""
        return self.terms.options(muster, self.sending.dispatch)


async def carry_out(muster: "Muster", chosen: SuiteChoice, source: AnswerSource, order: Order, manner: Manner) -> int:
    """Run suites as they were chosen; returns the exit code."""
    spec = await muster.suites.spec(chosen, source)
    options = order.options(muster)
    found = muster.suites.plan(spec, options.dispatch, Quoting.FIRST if source.asks else Quoting.NONE)
    known = source.run is not None or chosen.only_failed is not None
    anew = f"; this is {new_run_words(options.budget)}" if known and source.asks else ""
    tell_warnings(found, spec)
    note(manner, _first_words(found) + _source_words(source) + anew)
    handle = await muster.suites.start(spec, options, origin=source.origin, detach=order.sending.detach)
    return await drive_and_conclude(muster, handle, SuiteEnding(), order.reports, manner)


async def judge_again(muster: "Muster", reference: str, said: Mapping[str, Any], order: Order, manner: Manner) -> int:
    """Judge the answers of a run anew; returns the exit code."""
    before = await muster.suites.find(reference)
    options = order.options(muster)
    handle = await muster.suites.rejudge(before, said, options, detach=order.sending.detach)
    judged = f"the answers of run {before.id} are judged by {said['judge']}; no agent is asked anew"
    note(manner, f"{judged}; this is {new_run_words(options.budget)}")
    return await drive_and_conclude(muster, handle, SuiteEnding(), order.reports, manner)


def _source_words(source: AnswerSource) -> str:
    """Return where known answers come from, in words."""
    if source.run is None and source.answers is None:
        return ""
    where = source.answers or f"run {source.run.id if source.run else ''}"
    if not source.replays:
        return f"; what {where} knows is reused"
    return f"; answers come from {where} and {'nobody' if source.answers is None else 'no agent'} is asked"


def tell_warnings(found: Survey, spec: SuiteSpec) -> None:
    """Print what is wrong or doubtful in the cases, also when quiet: some of them are not asked."""
    if spec.threshold <= NOTHING:
        warn("warning: --threshold 0: a case without a threshold of its own passes whatever it scores")
    for flaw in found.warnings:
        warn(f"warning: {flaw}")
    if found.more_warnings:
        warn(f"warning: {found.more_warnings:,} more; muster validate PATH shows them")


def _first_words(found: Survey) -> str:
    """Say what is about to happen, before anything is spent."""
    calls = sum(load.calls for load in found.agents.values())
    suites = "1 suite" if found.suites == 1 else f"{found.suites} suites"
    words = f"{'1 case' if found.cases == 1 else f'{found.cases:,} cases'} of {suites}"
    words += f", {'1 call' if calls == 1 else f'{calls:,} calls'}" if calls else ""
    return words + (f", {found.judge.calls:,} to the judge" if found.judge.calls else "")
