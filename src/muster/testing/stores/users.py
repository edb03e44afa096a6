"""What every store must do about users: runs that belong to them, requests that start once, and the audit log."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from dataclasses import replace

from muster.domain.budget import Budgets, UserBudget
from muster.domain.errors import Conflict
from muster.domain.ids import RunId
from muster.domain.run import NewRun, RunState, StartRequest
from muster.store.base import AuditRecord, RunPage, Store
from muster.testing.stores.values import NOW, SECRET, Check, new_run, raises, stored


def owned(name: str, user: str | None, *, key: str | None = None, digest: str = "d", at: float = NOW) -> NewRun:
    """Return a run of a user, started by a request."""
    budget = None if user is None else UserBudget(name=user)
    return replace(
        new_run(name),
        created_at=at,
        budgets=Budgets(lineage=f"lineage:{name}", user=budget),
        request=StartRequest(client="10.0.0.1", key=key, digest=digest),
    )


async def remembers_who_started_a_run(store: Store) -> None:
    """A run comes back with its user, and with the request that started it."""
    await store.runs.create(owned("run1", "ci", key="k"))
    run = await stored(store, RunId("run1"))
    assert run.owner == "ci"
    assert run.request == StartRequest(client="10.0.0.1", key="k", digest="d")


async def starts_a_request_once(store: Store) -> None:
    """A second run under the key of a user is the first one again; of another user it is another."""
    first = await store.runs.create(owned("run1", "ci", key="k"))
    assert (await store.runs.create(owned("run2", "ci", key="k"))).id == first.id
    assert (await store.runs.create(owned("run3", "eve", key="k"))).id == "run3"
    assert (await store.runs.create(owned("run4", None, key="k"))).id == "run4"
    assert (await store.runs.create(owned("run5", None, key="k"))).id == "run4"
    await raises(Conflict, store.runs.create(owned("run6", "ci", key="k", digest="other")))
    await raises(Conflict, store.runs.create(owned("run1", "ci", key="new")))
    request = StartRequest(client="elsewhere", key="k", digest="d")
    known = await store.runs.requested("ci", request)
    assert known is not None
    assert known.id == "run1"
    assert await store.runs.requested("nobody", request) is None
    assert await store.runs.requested("ci", replace(request, key=None)) is None
    await raises(Conflict, store.runs.requested("ci", replace(request, digest="other")))


async def finds_only_the_runs_of_a_user(store: Store) -> None:
    """Pages and references can be those of one user."""
    for number, user in enumerate(("ci", "eve", "ci", None)):
        await store.runs.create(owned(f"run{number}", user, at=NOW + number))
    assert [run.id for run in await store.runs.page(RunPage(owner="ci"))] == ["run2", "run0"]
    assert [run.id for run in await store.runs.match("run", "eve")] == ["run1"]
    assert [run.id for run in await store.runs.match("run")] == ["run3", "run2", "run1", "run0"]


async def pages_through_runs(store: Store) -> None:
    """Pages follow each other without gaps or repetitions, also where runs were created at the same time."""
    for name in ("a1", "a2", "a3", "a4", "a5"):
        await store.runs.create(new_run(name))
    found: list[str] = []
    before: tuple[float, str] | None = None
    while page := await store.runs.page(RunPage(before=before, limit=2)):
        found += [run.id for run in page]
        before = (page[-1].created_at, page[-1].id)
    assert found == ["a5", "a4", "a3", "a2", "a1"]
    assert await store.runs.page(RunPage(states=(RunState.RUNNING, RunState.FAILED))) == []
    assert len(await store.runs.page(RunPage(states=(RunState.QUEUED,), roots=True))) == 5
    workload = new_run("a1").workload
    assert len(await store.runs.page(RunPage(workloads=(workload, "other")))) == 5
    assert await store.runs.page(RunPage(workloads=("other",))) == []
    assert [run.id for run in await store.runs.page(RunPage(search="A3"))] == ["a3"]
    assert await store.runs.page(RunPage(search="%")) == []


async def knows_which_runs_ended_before(store: Store) -> None:
    """Runs that ended before a time are found, the oldest first; those that have not ended are not."""
    for number in range(3):
        await store.runs.create(new_run(f"run{number}"))
    await store.commands.cancel(RunId("run1"), NOW + 5)
    await store.commands.cancel(RunId("run0"), NOW + 9)
    assert await store.runs.ended(NOW + 6, 10) == ["run1"]
    assert await store.runs.ended(NOW + 10, 10) == ["run1", "run0"]
    assert await store.runs.ended(NOW + 10, 1) == ["run1"]


async def remembers_what_users_did(store: Store) -> None:
    """The audit log gives the newest first, in pages, without secrets."""
    for number in range(3):
        await store.audit.add(
            AuditRecord(
                at=NOW + number,
                user="ci" if number else None,
                client="10.0.0.1",
                action="start",
                subject=f"run{number} {SECRET}",
                request_id="r",
            )
        )
    newest = await store.audit.newest(limit=2)
    assert [one.at for one in newest] == [NOW + 2, NOW + 1]
    assert all(SECRET not in one.subject for one in newest)
    (oldest,) = await store.audit.newest(before=newest[-1].seq)
    assert (oldest.user, oldest.client, oldest.action, oldest.request_id) == (None, "10.0.0.1", "start", "r")


CHECKS: tuple[Check, ...] = (
    remembers_who_started_a_run,
    starts_a_request_once,
    finds_only_the_runs_of_a_user,
    pages_through_runs,
    knows_which_runs_ended_before,
    remembers_what_users_did,
)
