"""Which task goes where: pure decisions about slots, priorities, dependencies and money."""

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.task import TaskState
from muster.pool.scheduling import EarlierTask, PendingTask, PoolFunds, schedule
from muster.pool.tasks import SlotProfile, TaskSpec, merged

CODER = SlotProfile(id="slot-1", name="coder", role="writer", tags=("python",))
OTHER = SlotProfile(id="slot-2", name="slot-2")


def pending(run: str, at: float = 0.0, most: int = 0, slot: str | None = None, **rest: object) -> PendingTask:
    spec = TaskSpec(prompt="x", **rest)  # type: ignore[arg-type]
    return PendingTask(run=RunId(run), spec=spec, created_at=at, most=Microdollars(most), slot=slot)


def earlier(state: TaskState) -> dict[str, EarlierTask]:
    return {"x": EarlierTask(title="x (build)", state=state)}


def test_the_highest_priority_goes_first_then_the_oldest() -> None:
    tasks = [pending("young", 2.0), pending("old", 1.0), pending("urgent", 3.0, priority=1)]
    found = schedule([CODER, OTHER], tasks, {}, PoolFunds())
    assert dict(found.assigned) == {"urgent": "slot-1", "old": "slot-2"}


def test_a_task_goes_only_to_a_slot_that_it_asks_for_and_blocks_nobody_else() -> None:
    tasks = [pending("a", 1.0, role="writer"), pending("b", 2.0, slot=None, tags=("rust",)), pending("c", 3.0)]
    assert dict(schedule([OTHER], tasks, {}, PoolFunds()).assigned) == {"c": "slot-2"}
    wants = PendingTask(run=RunId("d"), spec=TaskSpec(prompt="x", slot="coder", tags=("python",)), created_at=0.0)
    assert dict(schedule([OTHER, CODER], [wants], {}, PoolFunds()).assigned) == {"d": "slot-1"}


def test_a_task_goes_back_to_its_slot_if_that_is_free() -> None:
    again = pending("a", slot="slot-2")
    assert dict(schedule([CODER, OTHER], [again], {}, PoolFunds()).assigned) == {"a": "slot-2"}
    assert dict(schedule([CODER], [again], {}, PoolFunds()).assigned) == {"a": "slot-1"}


def test_dependencies_are_waited_for_and_fail_their_dependants_by_name() -> None:
    tasks = [pending("a", after=("x",))]
    assert not schedule([CODER], tasks, earlier(TaskState.RUNNING), PoolFunds()).assigned
    assert schedule([CODER], tasks, earlier(TaskState.COMPLETED), PoolFunds()).assigned
    failed = schedule([CODER], tasks, earlier(TaskState.FAILED), PoolFunds()).failed
    assert failed == {"a": "task x (build), on which it depends, failed"}
    assert "canceled" in schedule([CODER], tasks, earlier(TaskState.CANCELED), PoolFunds()).failed[RunId("a")]
    assert "does not exist" in schedule([CODER], tasks, {}, PoolFunds()).failed[RunId("a")]


def test_money_that_may_come_back_is_waited_for_and_what_never_fits_is_refused_with_the_numbers() -> None:
    cap = Microdollars(1_000_000)
    waits = PoolFunds(cap=cap, settled=Microdollars(300_000), reserved=Microdollars(600_000))
    small, large = pending("small", 2.0, most=100_000), pending("large", 1.0, most=500_000)
    found = schedule([CODER, OTHER], [small, large], {}, waits)
    assert dict(found.assigned) == {"small": "slot-1"}
    assert not found.refused
    spent = PoolFunds(cap=cap, settled=Microdollars(600_000))
    refused = schedule([CODER], [large], {}, spent).refused[RunId("large")]
    assert "$0.60 of the pool's budget of $1.00 is spent" in refused
    assert "$0.50" in refused


@given(
    st.lists(st.integers(0, 50), max_size=30),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 100),
    st.integers(1, 8),
)
def test_what_is_given_away_never_passes_the_cap(
    mosts: list[int], cap: int, settled: int, reserved: int, slots: int
) -> None:
    free = [SlotProfile(id=f"slot-{place}", name=f"slot-{place}") for place in range(1, slots + 1)]
    funds = PoolFunds(cap=Microdollars(cap), settled=Microdollars(settled), reserved=Microdollars(reserved))
    tasks = [pending(f"t{number:02}", float(number), most=most) for number, most in enumerate(mosts)]
    found = schedule(free, tasks, {}, funds)
    given_away = sum(one.most for one in tasks if one.run in found.assigned)
    assert not found.assigned or settled + reserved + given_away <= cap
    assert len(set(found.assigned.values())) == len(found.assigned) <= slots
    assert not set(found.assigned) & set(found.refused)


def test_settings_of_a_task_go_over_those_of_its_slot_and_lists_are_joined() -> None:
    found = merged({"model": "a", "tools": ["x", "y"]}, {"model": "b", "effort": "low", "tools": ["y", "z"]})
    assert found == {"model": "a", "effort": "low", "tools": ["x", "y", "z"]}
