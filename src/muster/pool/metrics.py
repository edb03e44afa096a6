"""Figures over tasks: how they ended, what they cost, how long they took, by model too. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from muster.domain.money import NOTHING, Microdollars
from muster.domain.run import Spent
from muster.domain.task import TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTask:
    """What is counted of one task."""

    state: TaskState
    spent: Spent = field(default_factory=Spent)
    elapsed: float | None = None  # seconds from its start to its end
    turns: int | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFigures:
    """What the tasks of one model came to."""

    tasks: int = 0
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolMetrics:
    """Figures over some tasks; None where nothing was measured."""

    tasks: int
    states: Mapping[TaskState, int]
    spent: Spent
    average_cost: Microdollars | None
    highest_cost: Microdollars | None
    elapsed: tuple[float, float, float, float] | None  # shortest, median, average, longest
    turns: int
    models: Mapping[str, ModelFigures]
    unknown_model: ModelFigures = field(default_factory=ModelFigures)  # of tasks that named none, such as canceled ones
    unlisted: Microdollars = NOTHING  # what other tasks of the pool have cost: deleted ones, those of other users


def pool_metrics(tasks: Sequence[MeasuredTask]) -> PoolMetrics:
    """Return the figures of some tasks."""
    counted, costs = Counter(task.state for task in tasks), [task.spent.settled for task in tasks]
    times = [task.elapsed for task in tasks if task.elapsed is not None]
    models = sorted({task.model for task in tasks if task.model})
    return PoolMetrics(
        tasks=len(tasks),
        states={state: counted[state] for state in TaskState},
        spent=_sum(tasks),
        average_cost=Microdollars(round(sum(costs) / len(costs))) if costs else None,
        highest_cost=max(costs, default=None),
        elapsed=(min(times), median(times), fmean(times), max(times)) if times else None,
        turns=sum(task.turns or 0 for task in tasks),
        models={model: _figures([task for task in tasks if task.model == model]) for model in models},
        unknown_model=_figures([task for task in tasks if not task.model]),
    )


def _figures(tasks: Sequence[MeasuredTask]) -> ModelFigures:
    return ModelFigures(tasks=len(tasks), spent=_sum(tasks))


def _sum(tasks: Sequence[MeasuredTask]) -> Spent:
    return sum((task.spent for task in tasks), Spent())
