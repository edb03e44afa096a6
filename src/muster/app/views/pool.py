"""Slots and the pool: how they stand, what they cost, messages to slots and texts for their prompts."""

from collections.abc import Mapping, Sequence

from muster.app.pool.monitor import PoolSnapshot
from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.views.money import CostView, MoneyView, cost_view, money_view
from muster.app.views.tasks import TaskView, task_view
from muster.domain.entry import Signal
from muster.domain.money import to_usd
from muster.domain.task import TaskState
from muster.pool.metrics import ModelFigures, PoolMetrics
from muster.text.views import UNSET, UnsetType, View, asdict, field, instant, replace

SLOT_STATES = ("idle", "busy", "stopped", "errored")


class SlotView(CostView):
    """A slot as it stands."""

    id: str
    name: str
    role: str | None
    state: str
    current_task: str | None
    current_task_name: str | None
    session_id: str | None
    worktree: str | None
    tasks_completed: int
    restart_count: int
    error: str | None


class SlotsView(View):
    """The slots of the pool."""

    slots: Sequence[SlotView]


class PoolView(CostView):
    """The pool at a glance; when it has been driven, with the tasks that ended."""

    slots: Mapping[str, int]
    tasks: Mapping[TaskState, int]
    spend_usd: float
    unlisted_usd: float
    draining: bool
    driver: str | None
    ended: Sequence[TaskView] | UnsetType = UNSET


class SnapshotView(View):
    """The pool at one moment, with its slots and the tasks that are shown."""

    pool: PoolView
    slots: Sequence[SlotView]
    tasks: Sequence[TaskView]
    tasks_left_out: int
    writing: Mapping[str, str]


class ModelFiguresView(MoneyView):
    """What the tasks of one model came to."""

    tasks: int


class ElapsedView(View):
    """How long tasks took, in milliseconds."""

    min: int
    median: int
    avg: int
    max: int


class PoolMetricsView(ModelFiguresView):
    """Figures over tasks."""

    states: Mapping[TaskState, int]
    average_cost_usd: float | None
    highest_cost_usd: float | None
    unlisted_usd: float
    elapsed_ms: ElapsedView | None
    turns: int
    models: Mapping[str, ModelFiguresView]
    unknown_model: ModelFiguresView


class SlotMessageView(View):
    """A message to a slot."""

    id: int
    sender: str | None = field(name="from")
    text: str
    sent_at: str


class SlotMessagesView(View):
    """Messages that a slot has not read, or had not."""

    messages: Sequence[SlotMessageView]


class UnreadView(View):
    """How many messages a slot has not read."""

    unread: int


class ReachedSlotsView(View):
    """The slots that a message was sent to."""

    slots: Sequence[str]


class ContextView(View):
    """The texts that are added to the prompts of every slot."""

    context: Mapping[str, str]


class ContextTextView(View):
    """One of the texts that are added to the prompts of every slot."""

    name: str
    text: str


class DeletedContextView(View):
    """The name of a text that was deleted."""

    deleted: str


def slot_view(slot: Slot) -> SlotView:
    """Return a slot as it stands."""
    task = slot.task
    return SlotView(
        **asdict(cost_view(slot.cost)),
        id=slot.profile.id,
        name=slot.profile.name,
        role=slot.profile.role or None,
        state=slot.state,
        current_task=None if task is None else task.id,
        current_task_name=None if task is None else task.run.name,
        session_id=slot.session,
        worktree=None if task is None else task.tree.get("path"),
        tasks_completed=slot.record.completed,
        restart_count=slot.record.failures,
        error=slot.record.error or None,
    )


def slots_view(slots: Sequence[Slot]) -> SlotsView:
    """Return slots as they stand."""
    return SlotsView(slots=[slot_view(slot) for slot in slots])


def pool_view(status: PoolStatus) -> PoolView:
    """Return the pool at a glance."""
    return PoolView(
        **asdict(cost_view(status.cost)),
        slots={state: sum(slot.state == state for slot in status.slots) for state in SLOT_STATES},
        tasks=status.tasks,
        spend_usd=to_usd(status.cost.total),
        unlisted_usd=to_usd(status.unlisted),
        draining=status.draining,
        driver=None if status.driver is None else str(status.driver),
    )


def driven_pool_view(status: PoolStatus, ended: Sequence[Task]) -> PoolView:
    """Return the pool when it has been driven, with the tasks that ended."""
    return replace(pool_view(status), ended=[task_view(task) for task in ended])


def snapshot_view(snapshot: PoolSnapshot) -> SnapshotView:
    """Return the pool at one moment."""
    return SnapshotView(
        pool=pool_view(snapshot.status),
        slots=[slot_view(slot) for slot in snapshot.status.slots],
        tasks=[task_view(task) for task in snapshot.tasks],
        tasks_left_out=snapshot.left_out,
        writing=snapshot.writing,
    )


def metrics_view(metrics: PoolMetrics) -> PoolMetricsView:
    """Return figures over tasks."""
    return PoolMetricsView(
        **asdict(money_view(metrics.spent)),
        tasks=metrics.tasks,
        states=metrics.states,
        average_cost_usd=None if metrics.average_cost is None else to_usd(metrics.average_cost),
        highest_cost_usd=None if metrics.highest_cost is None else to_usd(metrics.highest_cost),
        unlisted_usd=to_usd(metrics.unlisted),
        elapsed_ms=None if metrics.elapsed is None else _elapsed_view(*metrics.elapsed),
        turns=metrics.turns,
        models={model: _model_view(figures) for model, figures in metrics.models.items()},
        unknown_model=_model_view(metrics.unknown_model),
    )


def _elapsed_view(shortest: float, middle: float, average: float, longest: float) -> ElapsedView:
    ms = [round(seconds * 1000) for seconds in (shortest, middle, average, longest)]
    return ElapsedView(min=ms[0], median=ms[1], avg=ms[2], max=ms[3])


def _model_view(figures: ModelFigures) -> ModelFiguresView:
    return ModelFiguresView(tasks=figures.tasks, **asdict(money_view(figures.spent)))


def message_view(message: Signal) -> SlotMessageView:
    """Return a message to a slot."""
    return SlotMessageView(
        id=message.seq, sender=message.sender or None, text=str(message.payload), sent_at=instant(message.at)
    )


def messages_view(messages: Sequence[Signal]) -> SlotMessagesView:
    """Return messages to a slot."""
    return SlotMessagesView(messages=[message_view(message) for message in messages])
