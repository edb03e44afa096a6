"""Which pending task goes to which free slot: by priority, then first come first served, within the budget. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Microdollars, show_usd
from muster.domain.task import TaskState
from muster.pool.tasks import SlotProfile, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingTask:
    """A task that nobody works on."""

    run: RunId
    spec: TaskSpec
    created_at: float
    most: Microdollars = NOTHING  # that it may cost
    slot: str | None = None  # the id of the slot that it was given before


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierTask:
    """A task on which others depend."""

    title: str  # its id, with its name where it has one
    state: TaskState


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFunds:
    """What the budget of the pool has: without a cap, enough."""

    cap: Microdollars | None = None
    settled: Microdollars = NOTHING
    reserved: Microdollars = NOTHING  # by tasks that are at work, which may cost less

    def refusal(self, most: Microdollars) -> str:
        """Return why a task can never be paid for, with the numbers; empty when it can."""
        if self.cap is None or self.settled + most <= self.cap:
            return ""
        spent = f"{show_usd(self.settled)} of the pool's budget of {show_usd(self.cap)} is spent"
        return f"{spent}, and this task may cost up to {show_usd(most)}"

    def pays(self, most: Microdollars) -> bool:
        """Return whether a task can be paid for now, whatever those at work will cost."""
        return self.cap is None or self.settled + self.reserved + most <= self.cap


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSchedule:
    """Tasks by the slots they go to, tasks that fail with those they depend on, and why some stay pending."""

    assigned: Mapping[RunId, str]  # the id of a slot
    failed: Mapping[RunId, str]  # why
    refused: Mapping[RunId, str]  # why the budget does not pay for them


def schedule(
    free: Sequence[SlotProfile],
    pending: Sequence[PendingTask],
    earlier: Mapping[str, EarlierTask],
    funds: PoolFunds,
) -> TaskSchedule:
    """Decide who works on what; `earlier` has the tasks on which others depend, by id."""
    left = list(free)
    assigned: dict[RunId, str] = {}
    failed: dict[RunId, str] = {}
    refused: dict[RunId, str] = {}
    reserved = funds.reserved
    for one in sorted(pending, key=lambda task: (-task.spec.priority, task.created_at, task.run)):
        obstacle = broken_dependency(one.spec, earlier)
        if obstacle:
            failed[one.run] = obstacle
            continue
        if any(earlier[name].state is not TaskState.COMPLETED for name in one.spec.after):
            continue
        now = PoolFunds(cap=funds.cap, settled=funds.settled, reserved=reserved)
        if refusal := now.refusal(one.most):
            refused[one.run] = refusal
        elif now.pays(one.most) and (slot := _chosen(one, left)) is not None:
            left.remove(slot)
            assigned[one.run] = slot.id
            reserved = Microdollars(reserved + one.most)
    return TaskSchedule(assigned=assigned, failed=failed, refused=refused)


def broken_dependency(task: TaskSpec, earlier: Mapping[str, EarlierTask]) -> str:
    """Return why a task can never be done, because one that it depends on was not; empty when it can."""
    for name in task.after:
        found = earlier.get(name)
        if found is None:
            return f"task {name}, on which it depends, does not exist any more"
        if found.state is TaskState.FAILED:
            return f"task {found.title}, on which it depends, failed"
        if found.state is TaskState.CANCELED:
            return f"task {found.title}, on which it depends, was canceled"
    return ""


def _chosen(task: PendingTask, free: Sequence[SlotProfile]) -> SlotProfile | None:
    """Return the slot for a task: the one that it had before if it can be, else the first that fits."""
    fitting = [slot for slot in free if slot.fits(task.spec)]
    before = [slot for slot in fitting if slot.id == task.slot]
    return next(iter(before or fitting), None)
