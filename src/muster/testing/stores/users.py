"""What every store must do about users: runs that belong to them, requests that start once, and the audit log."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from collections.abc import Awaitable
from dataclasses import replace

from muster.domain.budget import Budgets, UserBudget
from muster.domain.errors import Conflict, LimitReached
from muster.domain.ids import RunId
from muster.domain.run import NewRun, Run, RunState, StartLimit, StartRequest
from muster.store.base import AuditRecord, QueueTurn, RunPage, RunRelease, Store
from muster.testing.stores.values import DRIVER, NOW, SECRET, Check, driven, new_run, opening, raises, stored


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
    assert len(await store.runs.page(RunPage(search="%", searched_workloads=("other", workload)))) == 5
    assert await store.runs.page(RunPage(search="%", searched_workloads=("other",))) == []


async def finds_the_runs_that_called_an_agent(store: Store) -> None:
    """A run is found by every agent that it or a run under it has called, in an open call too, until it is deleted."""
    root, claim = await driven(store, "run0")
    await store.journal.open(opening(root, claim.epoch, "k"))
    child = await store.runs.create(replace(new_run("run1"), created_at=NOW + 1, parent=root, parent_key="c"))
    claim = await store.leases.claim(child.id, DRIVER, child.lease.epoch, NOW, NOW + 15)
    for key in ("k1", "k2"):
        await store.journal.open(opening(child.id, claim.epoch, key)._replace(agent="sim/other"))
    await store.runs.create(replace(new_run("run2"), created_at=NOW + 2))

    async def found(**wanted: object) -> list[str]:
        return [run.id for run in await store.runs.page(RunPage(**wanted))]  # type: ignore[arg-type]

    assert await found(agent="sim/echo") == ["run0"]
    assert await found(agent="sim/other") == ["run1", "run0"]
    assert await found(agent="sim/other", limit=1, before=(NOW + 1, "run1")) == ["run0"]
    assert await found(agent="sim/other", roots=True, states=(RunState.RUNNING,)) == ["run0"]
    assert await found(agent="sim/other", workloads=(child.workload,), search="run1") == ["run1"]
    assert await found(agent="sim/other", since=NOW + 1) == ["run1"]
    assert await found(agent="other") == []
    for run in (child.id, root):
        await store.leases.release(run, 1, RunRelease(state=RunState.FAILED, reason="error", at=NOW + 3))
    await store.runs.delete(child.id, NOW + 4)
    assert await found(agent="sim/other") == ["run0"]
    await store.runs.delete(root, NOW + 4)
    assert await found(agent="sim/other") == []


async def finds_the_runs_of_some_days(store: Store) -> None:
    """The beginning of a time belongs to it and its end does not; pages within it follow each other."""
    for number in range(5):
        await store.runs.create(owned(f"run{number}", "ci", at=NOW + number))
    days = RunPage(since=NOW + 1, until=NOW + 4, limit=2)
    assert [run.id for run in await store.runs.page(days)] == ["run3", "run2"]
    assert [run.id for run in await store.runs.page(replace(days, before=(NOW + 2, "run2")))] == ["run1"]
    assert [run.id for run in await store.runs.page(replace(days, owner="ci"))] == ["run3", "run2"]


async def knows_which_runs_ended_before(store: Store) -> None:
    """Runs that ended before a time are found, the oldest first; those that have not ended are not."""
    for number in range(3):
        await store.runs.create(new_run(f"run{number}"))
    await store.runs.cancel(RunId("run1"), NOW + 5)
    await store.runs.cancel(RunId("run0"), NOW + 9)
    assert await store.runs.ended(NOW + 6, 10) == ["run1"]
    assert await store.runs.ended(NOW + 10, 10) == ["run1", "run0"]
    assert await store.runs.ended(NOW + 10, 1) == ["run1"]


async def remembers_what_users_did(store: Store) -> None:
    """The audit log gives the newest first, in pages, without secrets; what was begun is there before it is done."""
    for number in range(3):
        await store.audit.begin(
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
    assert [(one.at, one.outcome) for one in newest] == [(NOW + 2, "unknown"), (NOW + 1, "unknown")]
    assert all(SECRET not in one.subject for one in newest)
    (oldest,) = await store.audit.newest(before=newest[-1].seq)
    assert (oldest.user, oldest.client, oldest.action, oldest.request_id) == (None, "10.0.0.1", "start", "r")
    await store.audit.end(oldest.seq, f"run {SECRET}", "done")
    await store.audit.withdraw(newest[0].seq)
    second, first = await store.audit.newest()
    assert (second.seq, first.outcome, SECRET in first.subject) == (newest[1].seq, "done", False)


async def gives_clients_their_turns(store: Store) -> None:
    """One run of a client after one of the next, the oldest first; a client with many runs hides nobody."""
    for number, client in enumerate(("10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2", None)):
        request = None if client is None else StartRequest(client=client)
        new = replace(new_run(f"run{number}", submitted=True), created_at=NOW + number, request=request)
        await store.runs.create(new)
    (workload,) = await store.queue.workloads()
    turn, found = QueueTurn(workloads=(workload,)), list[str]()
    while run := await store.queue.next(turn):
        found.append(run.id)
        client = run.request.client if run.request else ""
        turn = replace(turn, after=client, passed=turn.passed | {run.id})
    assert found == ["run0", "run3", "run4", "run1", "run2"]
    held = await store.queue.next(QueueTurn(workloads=(workload,), full=frozenset({"10.0.0.1"})))
    assert held is not None
    assert held.id == "run3"
    assert await store.queue.next(QueueTurn(workloads=("other",))) is None
    assert await store.queue.starts(NOW + 1) == [("10.0.0.1", NOW + 2), ("10.0.0.2", NOW + 3)]


async def holds_the_starts_of_a_client(store: Store) -> None:
    """A client starts as many runs within some seconds as it may; what is refused is not stored, another may."""
    limit = StartLimit(most=2, seconds=60)

    def start(name: str, client: str, at: float) -> Awaitable[Run]:
        request = StartRequest(client=client, limit=limit)
        return store.runs.create(replace(new_run(name), created_at=at, request=request))

    await start("run1", "10.0.0.1", NOW)
    await start("run2", "10.0.0.1", NOW + 10)
    error = await raises(LimitReached, start("run3", "10.0.0.1", NOW + 20))
    assert isinstance(error, LimitReached)
    assert error.retry_after == 40
    assert await store.runs.get(RunId("run3")) is None
    await start("run4", "10.0.0.2", NOW + 20)
    await start("run3", "10.0.0.1", NOW + 60)


async def notes_runs_that_have_ended_for_hooks(store: Store) -> None:
    """While it is wanted, every end of a run is noted once, taken by one, and due again until somebody is done."""
    for number in range(3):
        await store.runs.create(new_run(f"run{number}"))
    await store.runs.cancel(RunId("run0"), NOW)
    await store.announcements.want(True)
    await store.runs.cancel(RunId("run1"), NOW)
    (one,) = await store.announcements.due(NOW, 10)
    assert (one.run, one.tries) == ("run1", 0)
    assert await store.announcements.take(one, NOW, NOW + 9)
    assert not await store.announcements.take(one, NOW, NOW + 9)
    assert not await store.announcements.due(NOW + 8, 10)
    (again,) = await store.announcements.due(NOW + 9, 10)
    assert (again.run, again.tries) == ("run1", 1)
    await store.announcements.done(again)
    assert not await store.announcements.due(NOW + 99, 10)
    await store.runs.cancel(RunId("run2"), NOW)
    await store.announcements.want(False)
    assert not await store.announcements.due(NOW + 99, 10)


CHECKS: tuple[Check, ...] = (
    remembers_who_started_a_run,
    starts_a_request_once,
    finds_only_the_runs_of_a_user,
    pages_through_runs,
    finds_the_runs_that_called_an_agent,
    finds_the_runs_of_some_days,
    knows_which_runs_ended_before,
    remembers_what_users_did,
    gives_clients_their_turns,
    holds_the_starts_of_a_client,
    notes_runs_that_have_ended_for_hooks,
)
