"""Runs: as they stand, in lists, with what belongs to them, and what became of them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from muster.app.kinds import word_of
from muster.app.questions.ask import AskOutcome
from muster.app.runs.details import RunBatches, RunDetails
from muster.app.runs.questions import OpenQuestion
from muster.app.runs.shown import shown_run
from muster.app.views.batches import BatchReferenceView, batch_reference
from muster.app.views.calls import EntryView, QuestionView, ReplyView, entry_view, question_view, reply_view
from muster.app.views.events import EventView, event_view
from muster.app.views.money import CostView, cost_view
from muster.app.views.subjects import subject_of
from muster.app.views.verdicts import RunVerdict, verdict_of
from muster.domain.call import Quality, Reply
from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.entry import UnusedEntries
from muster.domain.ids import RunId
from muster.domain.money import to_usd
from muster.domain.run import BudgetedCost, Reuse, Run, RunState
from muster.store.base import Attempt
from muster.text.views import UNSET, UnsetType, View, asdict, instant, moment, replace


class CallCountsView(View):
    """How the calls of a run stand."""

    total: int
    done: int
    failed: int
    uncertain: int
    reused: int


class OriginView(View):
    """The run that a run comes from, and how much of its journal counts."""

    run: str
    reuse: Reuse
    from_key: str | None


class RunBatchesView(View, kw_only=True):
    """The batches of a run, and what its calls cost in them and would have cost live; and the same of the tier flex."""

    parked: int
    batches: Sequence[BatchReferenceView]
    batch_usd: float | None
    live_usd: float | None
    flex_usd: float | UnsetType = UNSET
    flex_live_usd: float | UnsetType = UNSET


class RunView(CostView):
    """A run as it stands.

    Lists leave out its result, which can be large; starts leave out its batches. `driver` is told to users of this
    machine only, and `workers`, of which so many are alive, with a run that was left to them.
    """

    id: str
    name: str | None
    subject: str | None
    workload: str
    kind: str
    state: RunState
    ended_reason: str | None
    verdict: RunVerdict | None
    lineage: CostView
    calls: CallCountsView
    dispatch: Mode
    created_at: str
    started_at: str | None
    ended_at: str | None
    tags: Sequence[str]
    parent: str | None
    origin: OriginView | None
    continued_by: str | None
    started_by: str | None
    error: Mapping[str, Json] | None
    driver: str | UnsetType | None = UNSET
    result: Json | UnsetType = UNSET
    parked: int | UnsetType = UNSET
    batches: Sequence[BatchReferenceView] | UnsetType = UNSET
    batch_usd: float | UnsetType | None = UNSET
    live_usd: float | UnsetType | None = UNSET
    flex_usd: float | UnsetType = UNSET
    flex_live_usd: float | UnsetType = UNSET
    workers: int | UnsetType = UNSET


class RunPageView(View):
    """A page of runs, the newest first."""

    runs: Sequence[RunView]
    next: str | None


class ChainsView(View):
    """The newest chains."""

    chains: Sequence[RunView]


class CouncilsView(View):
    """The newest councils."""

    councils: Sequence[RunView]


class VerificationsView(View):
    """The newest verifications."""

    verifications: Sequence[RunView]


class PreviousRunView(View):
    """The completed run of the same suites and name before a suite run; null: there is none."""

    run: RunView | None


class DrivenRunsView(View):
    """The runs that a worker has driven."""

    runs: Sequence[RunView]


class UncertainAttemptView(View):
    """An attempt whose outcome is unknown."""

    key: str
    attempt: int
    cost_usd: float
    error: Mapping[str, Json] | None


class UnusedView(View):
    """The first keys of what a run had stored before it was resumed, and did not use.

    `repeated` of them were done once more under other keys.
    """

    keys: Sequence[str]
    total: int
    repeated: int


class DetailsView(RunView):
    """A run with the calls and events that were asked for, and the questions that it waits for people to answer."""

    call_list: Sequence[EntryView] | UnsetType = UNSET
    calls_left_out: int | UnsetType = UNSET
    uncertain_attempts: Sequence[UncertainAttemptView] | UnsetType = UNSET
    events: Sequence[EventView] | UnsetType = UNSET
    questions: Sequence[QuestionView] | UnsetType = UNSET
    unused: UnusedView | UnsetType = UNSET


class DeletedRunsView(View):
    """The runs that were deleted."""

    deleted: Sequence[str]


class ExportedRunView(View):
    """A run that was written to a file."""

    id: str
    file: str
    entries: int


class AskView(ReplyView, kw_only=True):
    """The reply to a question, with what it cost."""

    run: str
    state: RunState
    quality: Quality | None
    cost_usd: float
    uncertain_usd: float
    seconds: float
    attempts: int
    dispatch: Mode
    parked: int
    batches: Sequence[BatchReferenceView]
    batch_usd: float | None
    live_usd: float | None
    flex_usd: float | UnsetType = UNSET
    flex_live_usd: float | UnsetType = UNSET


class LeftRunView(RunBatchesView):
    """A run that was left waiting, with its open questions and the commands that continue it."""

    run: str
    state: RunState
    dispatch: Mode
    go_on: Sequence[str]
    workers: int
    questions: Sequence[QuestionView] | UnsetType = UNSET


def run_view(run: Run, *, local: bool = False) -> RunView:
    """Return a run; who drives it and tracebacks are told to users of this machine only."""
    run, calls = shown_run(run), run.calls
    driver = str(run.lease.driver) if run.is_driven else None
    return RunView(
        **asdict(cost_view(BudgetedCost(spent=run.spent, cap=run.cap))),
        id=run.id,
        name=run.name,
        subject=subject_of(run),
        workload=run.workload,
        kind=word_of(run.workload),
        state=run.state,
        ended_reason=run.ended_reason,
        verdict=verdict_of(run),
        lineage=cost_view(run.cost),
        calls=CallCountsView(
            total=calls.total, done=calls.done, failed=calls.failed, uncertain=calls.uncertain, reused=calls.reused
        ),
        dispatch=run.dispatch.mode,
        created_at=instant(run.created_at),
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
        tags=run.tags,
        parent=run.parent,
        origin=_origin_view(run),
        continued_by=run.continued_by,
        started_by=run.owner,
        driver=driver if local else UNSET,
        error=run.error if local else run.failure,
        result=run.result,
    )


def _origin_view(run: Run) -> OriginView | None:
    if run.origin is None:
        return None
    return OriginView(run=run.origin.run, reuse=run.origin.reuse, from_key=run.origin.fork_key)


def run_batches_view(held: RunBatches) -> RunBatchesView:
    """Return the batches of a run."""
    saving = held.saving
    return RunBatchesView(
        parked=saving.parked,
        batches=[batch_reference(batch) for batch in held.batches],
        batch_usd=to_usd(saving.cost) if held.batches else None,
        live_usd=to_usd(saving.live_cost) if held.batches else None,
        flex_usd=to_usd(saving.flex_cost) if saving.flex_calls else UNSET,
        flex_live_usd=to_usd(saving.flex_live_cost) if saving.flex_calls else UNSET,
    )


def whole_run_view(run: Run, batches: RunBatches, *, local: bool = False) -> RunView:
    """Return a run with its batches."""
    return replace(run_view(run, local=local), **asdict(run_batches_view(batches)))


def listed_run_view(run: Run, batches: RunBatches, *, local: bool = False) -> RunView:
    """Return a run of a list, without its result."""
    return replace(run_view(run, local=local), **asdict(run_batches_view(batches)), result=UNSET)


def queued_run_view(run: Run, batches: RunBatches, workers: int, *, local: bool = False) -> RunView:
    """Return a run that was left to workers, with how many of them are alive."""
    return replace(whole_run_view(run, batches, local=local), workers=workers)


def run_page_view(runs: Sequence[tuple[Run, RunBatches]], limit: int) -> RunPageView:
    """Return a page of at most so many runs."""
    after = runs[-1][0].id if len(runs) == limit else None
    return RunPageView(runs=[listed_run_view(run, batches) for run, batches in runs], next=after)


def driven_runs_view(runs: Iterable[tuple[Run, RunBatches]]) -> DrivenRunsView:
    """Return the runs that a worker has driven."""
    return DrivenRunsView(runs=[whole_run_view(run, batches, local=True) for run, batches in runs])


def deleted_view(runs: Sequence[RunId]) -> DeletedRunsView:
    """Return the runs that were deleted."""
    return DeletedRunsView(deleted=runs)


def details_view(details: RunDetails, *, local: bool = False) -> DetailsView:
    """Return a run with the calls and events that were asked for."""
    calls, events, questions = details.calls, details.events, details.questions
    return DetailsView(
        **asdict(whole_run_view(details.run, details.batches, local=local)),
        call_list=UNSET if calls is None else [entry_view(entry) for entry in calls],
        calls_left_out=UNSET if calls is None else details.calls_left_out,
        uncertain_attempts=UNSET if calls is None else [_uncertain_view(attempt) for attempt in details.uncertain],
        events=UNSET if events is None else [event_view(event, local=local) for event in events],
        questions=[question_view(question) for question in questions] or UNSET,
        unused=UNSET if (unused := details.unused) is None else _unused_view(unused),
    )


def _unused_view(unused: UnusedEntries) -> UnusedView:
    return UnusedView(keys=unused.keys, total=unused.total, repeated=unused.repeated)


def _uncertain_view(attempt: Attempt) -> UncertainAttemptView:
    return UncertainAttemptView(key=attempt.key, attempt=attempt.n, cost_usd=to_usd(attempt.cost), error=attempt.error)


def ask_view(asked: AskOutcome, reply: Reply, *, thinking: bool = False) -> AskView:
    """Return the reply to a question, with what it cost."""
    return AskView(
        **asdict(reply_view(reply, thinking=thinking)),
        **asdict(run_batches_view(asked.batches)),
        run=asked.run.id,
        state=asked.run.state,
        quality=asked.quality,
        cost_usd=to_usd(reply.cost),
        uncertain_usd=to_usd(asked.run.spent.uncertain),
        seconds=round(reply.timings.shown, 3),
        attempts=reply.attempt,
        dispatch=asked.run.dispatch.mode,
    )


def ways_on(run: Run, held: RunBatches) -> list[str]:
    """Return the commands with which a run that waits for batches can be continued."""
    batches = held.under_way or held.batches
    return [f"muster runs resume {run.id}", *(f"muster batch watch {batch.id}" for batch in batches)]


def left_run_view(run: Run, held: RunBatches, workers: int, questions: Sequence[OpenQuestion] = ()) -> LeftRunView:
    """Return a run that was left waiting, with its open questions and the commands that continue it."""
    return LeftRunView(
        **asdict(run_batches_view(held)),
        run=run.id,
        state=run.state,
        dispatch=run.dispatch.mode,
        go_on=ways_on(run, held),
        workers=workers,
        questions=[question_view(question) for question in questions] or UNSET,
    )


def exported_run_view(run: Run, path: Path, entries: int) -> ExportedRunView:
    """Return a run that was written to a file."""
    return ExportedRunView(id=run.id, file=str(path), entries=entries)
