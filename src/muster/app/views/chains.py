"""Chains: progress, plans, and what is wrong with their files."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from muster.app.chains.plan import ChainPlan, PlannedStep
from muster.app.views.errors import error
from muster.app.views.flaws import FlawView, flaw_view
from muster.app.views.plans import LoadView, load_view
from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.errors import MusterError
from muster.domain.money import to_usd
from muster.domain.run import RunState
from muster.pool.chains.chain import StepRecord, StepStatus
from muster.pool.chains.progress import ChainProgress, RowProgress
from muster.pool.chains.reading import ChainInspection
from muster.text.views import View, asdict, moment


class StepView(View):
    """One step of a run of a chain."""

    name: str
    status: StepStatus
    output: Json
    values: Mapping[str, Json]
    cost_usd: float
    retries_used: int
    skipped: str | None
    items: int | None
    error: str | None


class RowView(View):
    """One row of inputs of a run of a chain."""

    row: int
    status: str
    output: Json
    branch: str | None
    error: str | None


class ProgressView(View):
    """How far a chain is."""

    id: str
    name: str | None
    chain: str
    status: RunState
    total_steps: int
    completed_steps: int
    current_step: int | None
    current_name: str | None
    partial_output: str | None
    started_at: str | None
    ended_at: str | None
    spent_usd: float
    error: Json
    worktree: str | None
    setup: str | None
    branch: str | None
    summary: str | None
    repository_changes: Sequence[Any]
    repository_unknown: str | None
    steps: Sequence[StepView]
    rows: Sequence[RowView]


class ChainProgressesView(View):
    """How far several chains are."""

    chains: Sequence[ProgressView]


class PlannedStepView(LoadView):
    """What a step would do and cost."""

    name: str
    kind: Literal["command", "prompt"]
    agent: str | None
    dispatch: Mode | None


class ChainPlanView(View):
    """What a chain would do and cost; with a budget, whether that is enough."""

    chain: str
    rows: int
    steps: Sequence[PlannedStepView]
    total: LoadView
    budget_usd: float | None
    fits: bool | None


class ChainInspectionView(View):
    """What is wrong in a file with a chain."""

    file: str
    chain: str | None
    steps: Sequence[str]
    flaws: Sequence[FlawView]


def progress_view(progress: ChainProgress) -> ProgressView:
    """Return how far a chain is."""
    number, name = progress.current or (None, None)
    run = progress.run
    return ProgressView(
        id=run.id,
        name=run.name,
        chain=progress.chain,
        status=run.state,
        total_steps=progress.total,
        completed_steps=progress.completed,
        current_step=number,
        current_name=name,
        partial_output=progress.partial_output or None,
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
        spent_usd=to_usd(run.spent.settled),
        error=None if run.error is None else run.error.get("message"),
        worktree=progress.worktree or None,
        setup=progress.setup or None,
        branch=progress.branch or None,
        summary=progress.summary or None,
        repository_changes=progress.repository.get("repository_changes", []),
        repository_unknown=progress.repository.get("repository_unknown"),
        steps=[step_view(step) for step in progress.steps],
        rows=[row_view(row) for row in progress.rows],
    )


def step_view(step: StepRecord) -> StepView:
    """Return one step of a run."""
    return StepView(
        name=step.name,
        status=step.status,
        output=step.output if step.status in (StepStatus.COMPLETED, StepStatus.FAILED) else None,
        values=step.values,
        cost_usd=to_usd(step.cost),
        retries_used=step.retries_used,
        skipped=step.skipped or None,
        items=step.items,
        error=step.error or None,
    )


def row_view(row: RowProgress) -> RowView:
    """Return one row of a run."""
    return RowView(row=row.index + 1, status=row.status, output=row.output, branch=row.branch, error=row.error or None)


def chain_plan_view(plan: ChainPlan, cap: int | None) -> ChainPlanView:
    """Return what a chain would do and cost."""
    return ChainPlanView(
        chain=plan.chain.name,
        rows=plan.rows,
        steps=[_planned_step_view(planned) for planned in plan.steps],
        total=load_view(plan.all),
        budget_usd=None if cap is None else to_usd(cap),
        fits=None if cap is None else plan.all.fits(cap),
    )


def _planned_step_view(planned: PlannedStep) -> PlannedStepView:
    step = planned.step
    return PlannedStepView(
        **asdict(load_view(planned.load)),
        name=step.name,
        kind="command" if step.is_command else "prompt",
        agent=step.agent or None,
        dispatch=planned.mode,
    )


def chains_error(errors: Sequence[MusterError]) -> Any:
    """Return which of several chains did not complete, as the error of an envelope."""
    first = errors[0].record()
    suggestions = list(dict.fromkeys(way for one in errors for way in one.suggestions))
    return error(str(first["code"]), "; ".join(one.message for one in errors), suggestions)


def chain_inspection_view(inspection: ChainInspection) -> ChainInspectionView:
    """Return what is wrong in a file with a chain."""
    chain = inspection.chain
    return ChainInspectionView(
        file=inspection.file,
        chain=None if chain is None else chain.name,
        steps=[] if chain is None else [step.name for step in chain.steps],
        flaws=[flaw_view(flaw) for flaw in inspection.flaws],
    )
