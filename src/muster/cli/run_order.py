"""A suite run as it was ordered: surveyed before anything is stored, driven, and concluded whatever it comes to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.app.suite_office import (
    Quoting,
    Survey,
    file_of,
    find_or_import,
    is_answers,
    not_passed,
    require_judge,
    survey,
)
from muster.cli.ending import drive_and_conclude
from muster.cli.going_on import new_run_words
from muster.cli.manner import Manner
from muster.cli.question import check_name
from muster.cli.report_files import Wanted, wanted_reports
from muster.cli.run_ending import SuiteEnding
from muster.cli.run_options import Chosen
from muster.cli.run_terms import Terms
from muster.cli.sending import Sending
from muster.cli.speech import note, warn
from muster.cli.suite_reports import FORMATS
from muster.domain.errors import BadArgument, NotFound
from muster.domain.money import Microdollars
from muster.domain.run import Origin, Reuse, Run
from muster.formats.leniency import NOTHING
from muster.formats.suite_spec import SuiteSpec, read_spec
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
        return Order(terms=terms, sending=sending, reports=wanted_reports(terms.reports, FORMATS, manner))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where known answers come from: an earlier run, or a file of recorded answers."""

    replays: bool = False
    run: Run | None = None
    answers: str | None = None

    @property
    def origin(self) -> Origin | None:
        """Say what the new run takes over."""
        if self.run is None:
            return None
        return Origin(run=self.run.id, reuse=Reuse.RECORDED if self.replays else Reuse.CALLS)

    def words(self) -> str:
        """Say it to a person."""
        if self.run is None and self.answers is None:
            return ""
        where = self.answers or f"run {self.run.id if self.run else ''}"
        if not self.replays:
            return f"; what {where} knows is reused"
        return f"; answers come from {where} and {'nobody' if self.answers is None else 'no agent'} is asked"


async def carry_out(muster: "Muster", chosen: Chosen, source: Source, order: Order, manner: Manner) -> int:
    """Run suites as they were chosen; gives the exit code."""
    spec = await wanted_spec(muster, chosen, source)
    asks = not source.replays or source.answers is not None
    found = survey(muster, spec, order.sending.dispatch, Quoting.FIRST if asks else Quoting.NONE)
    known = source.run is not None or chosen.only_failed is not None
    anew = f"; this is {new_run_words(_budget(muster, order))}" if known and asks else ""
    tell_warnings(found, spec)
    note(manner, _first_words(found) + source.words() + anew)
    return await _start(muster, spec, source.origin, order, manner)


async def judge_again(muster: "Muster", reference: str, said: Mapping[str, Any], order: Order, manner: Manner) -> int:
    """Judge the answers of a run anew; gives the exit code."""
    before = await _suite_run(muster, reference)
    given = {name: value for name, value in said.items() if value is not None}
    spec = read_spec({**before.spec, **given, "generate": False})
    require_judge(muster, spec)
    judged = f"the answers of run {before.id} are judged by {spec.judge}; no agent is asked anew"
    note(manner, f"{judged}; this is {new_run_words(_budget(muster, order))}")
    return await _start(muster, spec, Origin(run=before.id, reuse=Reuse.REPLIES), order, manner)


def _budget(muster: "Muster", order: Order) -> Microdollars | None:
    budget = parse_budget(order.terms.budget)
    return muster.settings.run_cap if budget is None else budget


async def source_of(muster: "Muster", replay: str | None, reuse: str | None) -> Source:
    """Find where known answers are to come from."""
    if replay is not None and reuse is not None:
        raise BadArgument("--replay asks nobody, --reuse asks for what is new: give one of them")
    file = None if replay is None else file_of(replay)
    if file is not None and is_answers(file):
        return Source(replays=True, answers=str(file))
    reference = replay or reuse
    run = None if reference is None else await _suite_run(muster, reference)
    return Source(replays=replay is not None, run=run)


async def wanted_spec(muster: "Muster", chosen: Chosen, source: Source) -> SuiteSpec:
    """Make the spec of what was chosen; what was left open is as in the run that is replayed, reused or repeated."""
    only, failed = None, None
    if chosen.only_failed is not None:
        failed = await _suite_run(muster, chosen.only_failed)
        only = await not_passed(muster, failed)
        if not only:
            raise NotFound(f"every case of run {failed.id} passed; there is nothing to run again")
    earlier = source.run or failed
    before = None if earlier is None else read_spec(earlier.spec)
    return chosen.spec(before, answers=source.answers, only=only)


async def _start(muster: "Muster", spec: SuiteSpec, origin: Origin | None, order: Order, manner: Manner) -> int:
    terms = order.terms
    handle = await muster.start(
        "suite",
        spec.stored(),
        budget_usd=terms.budget,
        name=terms.name,
        timeout=terms.timeout,
        concurrency=terms.concurrency,
        dispatch=order.sending.dispatch,
        detach=order.sending.detach,
        origin=origin,
    )
    return await drive_and_conclude(muster, handle, SuiteEnding(), order.reports, manner)


async def _suite_run(muster: "Muster", reference: str) -> Run:
    run = await find_or_import(muster, reference)
    if run.workload != "suite":
        raise BadArgument(
            f"run {run.id} is a run of {run.workload!r} and not of a suite", suggestions=("muster runs list",)
        )
    return run


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
