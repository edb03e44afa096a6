"""Runs in the database: made, claimed, released and canceled, inside somebody's transaction."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from muster.domain.budget import Budgets, levels_above, lineage_level, require_left, run_level
from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import (
    AlreadyContinued,
    AwaitsSignal,
    Conflict,
    LeaseLost,
    MusterError,
    NameTaken,
    NotFound,
    RunCanceled,
    state_verb,
)
from muster.domain.ids import RunId
from muster.domain.money import Microdollars, show_usd
from muster.domain.run import TERMINAL, Driver, NewRun, Run, RunState, Spent, StartLimit, StartRequest, move
from muster.store.base import Claim, RunPage, RunRelease
from muster.store.claims import require_unclaimed
from muster.store.codec import Codec, restore_parameters, run_of, run_parameters, spent_of
from muster.store.database.calls.events import NewEvent, write_event
from muster.store.database.calls.settlements import settle_open_attempts
from muster.store.database.deletions import require_deleted
from muster.store.database.lineages import link_restored, note_continuation
from muster.store.database.media import name_media
from muster.store.database.signals import begin_awaiting, queue_answered
from muster.store.queries import DatabaseConnection, Parameters, first


def get(database: DatabaseConnection, run: RunId) -> Run:
    """Read a run that must be there."""
    row = first(database.rows("select_run", {"id": run}))
    if row is None:
        raise NotFound(f"run {run} not found")
    return run_of(row)


def named_by(database: DatabaseConnection, query: str, parameters: Parameters) -> Run | None:
    """Read the run whose id a query finds."""
    row = first(database.rows(query, parameters))
    return get(database, RunId(row["id"])) if row else None


def end_of_lineage(database: DatabaseConnection, run: RunId) -> Run | None:
    """Read the run that a run was last continued as; at one moment, or it could have a continuation by then."""
    with database.snapshot():
        return named_by(database, "end_of_lineage", {"id": run})


def create(database: DatabaseConnection, codec: Codec, new: NewRun) -> Run:
    """Store a run as queued with its budget; a child that exists already is given back instead.

    A resumed run joins the lineage of the one it continues. It is refused when that has a continuation already, and
    when nothing is left of the budget.
    """
    if new.parent is not None and get(database, new.parent).cancel_requested:
        raise RunCanceled(f"run {new.parent} was canceled")
    if new.is_only:
        _require_only(database, codec, new)
    if new.request is not None:  # whoever sends one may choose the id
        require_deleted(database, new.id)
    parameters = run_parameters(new, codec)
    if database.execute("insert_run", parameters) == 0:
        return _existing(database, new)
    if new.request is not None and new.request.limit is not None:
        _require_start(database, new, new.request, new.request.limit)
    if new.origin is not None:
        note_continuation(database, new, new.origin.run)
    database.execute("insert_budget", {"id": run_level(new.id), "cap": None})
    _note_levels(database, new.id, new.budgets)
    _join_lineage(database, new)
    if new.media or new.origin is not None or new.parent is not None:
        name_media(database, codec, new, parameters["spec"])
    data: JsonObject = {"workload": new.workload, "name": new.name}
    if new.origin is not None:
        data |= {"from": new.origin.run, "reuse": str(new.origin.reuse)}
    write_event(database, codec, NewEvent(run=new.id, kind="run.created", data=data, at=new.created_at))
    return get(database, new.id)


def _require_start(database: DatabaseConnection, new: NewRun, request: StartRequest, limit: StartLimit) -> None:
    """Raise LimitReached when the client of a request had started as many runs as it may, at whichever server."""
    scope = {"client": request.client, "since": new.created_at - limit.seconds, "id": new.id}
    row = database.rows("count_starts", scope)[0]
    limit.require(request.client, row["starts"], new.created_at - (row["oldest"] or new.created_at))


def start_locks(new: NewRun) -> tuple[str, ...]:
    """Return the locks under which the starts of a client are counted, and the only run of a name is made."""
    counted = [f"starts:{new.request.client}"] if new.request is not None and new.request.limit is not None else []
    return (*counted, *([f"name:{_owner(new) or ''}:{new.name}"] if new.is_only else []))


def newest_named(database: DatabaseConnection, name: str, owner: str | None) -> Run | None:
    """Read the newest run of a name that is not a child, of a user or of somebody at this machine."""
    return named_by(database, "newest_named", {"name": name, "owner": owner or ""})


def _require_only(database: DatabaseConnection, codec: Codec, new: NewRun) -> None:
    """Raise NameTaken when the user has a run of that name."""
    taken = newest_named(database, codec.clean(new.name or ""), _owner(new))
    if taken is not None:
        raise NameTaken(f"run {taken.id} has the name {new.name!r} already", suggestions=("resume it",))


def _owner(new: NewRun) -> str | None:
    return new.budgets.user.name if new.budgets and new.budgets.user else None


def _existing(database: DatabaseConnection, new: NewRun) -> Run:
    """Return the run in place of which another was to be made: a child, or one of the same request."""
    row = first(database.rows("select_child", {"parent_id": new.parent, "parent_key": new.parent_key}))
    if row is not None:
        return get(database, RunId(row["id"]))
    found = requested(database, _owner(new), new.request) if new.request is not None else None
    if found is None:
        raise Conflict(f"run {new.id} exists already")
    return found


def requested(database: DatabaseConnection, owner: str | None, request: StartRequest) -> Run | None:
    """Return the run that a user's request started before; raises Conflict for another request under its key."""
    if request.key is None:
        return None
    row = first(database.rows("select_requested", {"owner": owner or "", "request_key": request.key}))
    found = None if row is None else get(database, RunId(row["id"]))
    if found is not None and found.request is not None and not request.asks_for(found.request):
        raise Conflict(
            "another request was made under this idempotency key or id", suggestions=("use a new one for each request",)
        )
    return found


def page(database: DatabaseConnection, wanted: RunPage) -> list[Run]:
    """Read a page of runs, the newest first."""
    ends = [end for end in (wanted.before, (wanted.until, "") if wanted.until is not None else None) if end]
    before_at, before_id = min(ends, default=(None, None))
    parameters = {
        "owner": wanted.owner,
        "states": _listed(wanted.states),
        "workloads": _listed(wanted.workloads),
        "roots": int(wanted.roots),
        "name": wanted.name,
        "agent": wanted.agent,
        "since": wanted.since,
        "search": _pattern(wanted.search),
        "searched_workloads": _listed(wanted.searched_workloads),
        "before_at": before_at,
        "before_id": before_id,
        "limit": wanted.limit,
    }
    rows = [row for query, more in _page_queries(wanted) for row in database.rows(query, {**parameters, **more})]
    found = sorted((run_of(row) for row in rows), key=lambda run: (run.created_at, run.id), reverse=True)
    return found[: wanted.limit]


def _page_queries(wanted: RunPage) -> Sequence[tuple[str, Mapping[str, str]]]:
    """Return the queries that find a page in the smallest part of the runs for which there is an index.

    Most runs have completed: to look for that state would spare little.
    """
    if wanted.name is not None:
        return [("page_named_runs", {})]
    if wanted.owner is not None:
        return [("page_runs_of_owner", {})]
    if wanted.states and RunState.COMPLETED not in wanted.states:
        return [("page_runs_in_state", {"state": str(state)}) for state in dict.fromkeys(wanted.states)]
    if wanted.agent is not None:
        return [("page_runs_of_agent", {})]
    if wanted.workloads:
        groups = itertools.product(dict.fromkeys(wanted.workloads), dict.fromkeys(wanted.states or RunState))
        return [("page_runs_of_workload", {"workload": name, "state": str(state)}) for name, state in groups]
    return [("page_runs", {})]


def submitted(database: DatabaseConnection, limit: int, workloads: Iterable[str], after: Run | None) -> list[Run]:
    """Read runs that wait for a worker, the oldest first."""
    parameters = {
        "limit": limit,
        "workloads": _listed(workloads),
        "after_at": None if after is None else after.created_at,
        "after_id": None if after is None else after.id,
    }
    return [run_of(row) for row in database.rows("select_submitted", parameters)]


def _pattern(words: str) -> str:
    """Return the pattern of LIKE for texts that contain some words as they are."""
    for sign in "!%_":
        words = words.replace(sign, f"!{sign}")
    return f"%{words.lower()}%" if words else ""


def _listed(names: Iterable[str]) -> str:
    found = ",".join(names)
    return f",{found}," if found else ""


def _note_levels(database: DatabaseConnection, run: RunId, budgets: Budgets | None) -> None:
    """Write down under which budgets of other runs a run counts."""
    levels = dict.fromkeys(levels_above(budgets))
    database.send_many("insert_run_level", [{"level": level, "run_id": run} for level in levels])


def _join_lineage(database: DatabaseConnection, new: NewRun) -> None:
    lineage = new.budgets.lineage if new.budgets else lineage_level(new.id)
    database.execute("insert_budget", {"id": lineage, "cap": new.cap})
    if lineage == lineage_level(new.id):
        return
    if new.cap is not None:
        database.execute("cap_budget", {"id": lineage, "cap": new.cap})
    if new.parent is None:  # of a child that is tried again its parent expects a run, whose calls are refused then
        _require_left(database, new.origin.run if new.origin else new.id, lineage)


def _require_left(database: DatabaseConnection, run: RunId, lineage: str) -> None:
    row = first(database.rows("select_budgets", {"id": lineage}))
    if row is not None:
        require_left(run, row["cap"], spent_of(row).settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """A run that a driver wants, as it was when that was decided."""

    run: RunId
    driver: Driver
    epoch: int
    at: float
    until: float
    seen_until: float | None  # the end of the lease that another driver had

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the query needs."""
        driver = {"host": self.driver.host, "pid": self.driver.pid, "started": self.driver.started}
        times = {"at": self.at, "until": self.until, "seen_until": self.seen_until}
        return {"id": self.run, "epoch": self.epoch, **driver, **times}


def claim(database: DatabaseConnection, codec: Codec, taking: Taking) -> Claim:
    """Take a run if nobody else has since its epoch was read, and its last driver has not renewed its lease."""
    run, at = taking.run, taking.at
    require_unclaimed(database, at)
    before = get(database, run)
    _require_end(before)
    move(before.state, RunState.RUNNING)
    if database.execute("claim_run", taking.parameters) == 0:
        raise Conflict(f"run {run} has another driver")
    database.execute("delete_awaits", {"run_id": run})
    uncertain, cost = settle_open_attempts(database, codec, run, at)
    kind = "run.started" if before.started_at is None else "run.resumed"
    data = {"driver": str(taking.driver), "done": before.calls.done, "uncertain": uncertain, "uncertain_cost": cost}
    write_event(database, codec, NewEvent(run=run, kind=kind, data=data, at=at))
    return Claim(epoch=taking.epoch + 1, uncertain=uncertain, uncertain_cost=cost)


def _require_end(run: Run) -> None:
    """Raise AlreadyContinued for a run that stood still when its continuation came from elsewhere."""
    if run.continued_by is not None:
        raise AlreadyContinued(f"run {run.id} was continued as run {run.continued_by}")


class Heartbeat(NamedTuple):
    """The lease of a run that is kept by its driver."""

    run: RunId
    epoch: int
    until: float
    active: float
    state: RunState


def beat(database: DatabaseConnection, beats: Sequence[Heartbeat]) -> Sequence[bool | MusterError]:
    """Keep leases; return of each whether somebody asked to cancel the run, or LeaseLost."""
    rows = database.rows_of_many("beat_runs", [_beat_parameters(one) for one in beats])
    canceled = {(row["id"], row["epoch"]): bool(row["cancel_requested"]) for row in rows}
    lost = {one.run: LeaseLost(f"another driver has taken run {one.run}") for one in beats}
    return [canceled.get((one.run, one.epoch), lost[one.run]) for one in beats]


def _beat_parameters(beat: Heartbeat) -> Parameters:
    return {"id": beat.run, "epoch": beat.epoch, "until": beat.until, "active": beat.active, "state": str(beat.state)}


def release(database: DatabaseConnection, codec: Codec, run: RunId, epoch: int, ending: RunRelease) -> Run:
    """Let go of a run in its new state and tell it; if a cancel was asked for, it wins over whatever came later."""
    before = get(database, run)
    if before.lease.epoch != epoch:
        raise LeaseLost(f"another driver has taken run {run}")
    if before.cancel_requested and ending.state is not RunState.CANCELED:
        ending = replace(ending, state=RunState.CANCELED, reason=RunCanceled.code, error=None, result=None)
    move(before.state, ending.state)
    settle_open_attempts(database, codec, run, ending.at)  # there are none, unless a settlement could not be written
    database.execute("release_run", _ending_parameters(run, epoch, ending, codec))
    database.execute("delete_partials", {"run_id": run})
    data: JsonObject = {"reason": ending.reason}
    if ending.error is not None:
        data["error"] = ending.error
    write_event(database, codec, NewEvent(run=run, kind=f"run.{ending.state}", data=data, at=ending.at))
    if ending.state in TERMINAL or ending.reason == AwaitsSignal.code:
        database.execute("announce_run", {"id": run})
    if ending.state is RunState.CANCELED:
        _cancel_batches(database, [run])
    elif ending.state is RunState.WAITING:
        root = _root(database, before)
        begin_awaiting(database, before, root, ending.awaited)
        queue_answered(database, codec, root, ending.at)
    return get(database, run)


def _root(database: DatabaseConnection, run: Run) -> RunId:
    """Return the run that drives a run: itself, or the one above it that is nobody's child."""
    while run.parent is not None:
        run = get(database, run.parent)
    return run.id


def _ending_parameters(run: RunId, epoch: int, ending: RunRelease, codec: Codec) -> Mapping[str, Json]:
    return {
        "id": run,
        "epoch": epoch,
        "state": str(ending.state),
        "reason": ending.reason,
        "error": codec.optional(ending.error),
        "result": codec.optional(ending.result),
        "active": ending.active,
        "ended_at": ending.at if ending.state in TERMINAL else None,
    }


def expire(database: DatabaseConnection, codec: Codec, run: RunId, scope: Mapping[str, Any], message: str) -> Claim:
    """Mark the run of a dead driver as interrupted, or canceled if that was asked for, and book what it left open."""
    error, at = {"code": "driver_died", "message": message}, scope["at"]
    if database.execute("expire_run", {**scope, "error": codec.text(error)}) == 0:
        raise Conflict(f"run {run} has another driver, or its driver lives")
    uncertain, cost = settle_open_attempts(database, codec, run, at)
    data = {"reason": "driver_died", "error": error, "uncertain": uncertain, "uncertain_cost": cost}
    state = get(database, run).state
    write_event(database, codec, NewEvent(run=run, kind=f"run.{state}", data=data, at=at))
    if state is RunState.CANCELED:
        database.execute("announce_run", {"id": run})
        _cancel_batches(database, [run, *_cancel_children(database, codec, run, at)])
    return Claim(epoch=scope["epoch"] + 1, uncertain=uncertain, uncertain_cost=cost)


def cancel(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> Run:
    """Ask the driver to stop, or cancel at once what nobody drives; children likewise. A canceled run stays so."""
    canceled = _cancel(database, codec, run, at)
    found = get(database, run)
    if canceled is None and found.state is not RunState.CANCELED:
        raise Conflict(f"run {run} {state_verb(found.state)}; there is nothing to cancel")
    _cancel_batches(database, canceled or ())
    return found


def _cancel(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> Sequence[RunId] | None:
    """Cancel a run with its children and return those that nobody drove; None when it is over."""
    canceled: list[RunId] = []
    if database.execute("cancel_idle_run", {"id": run, "at": at}):
        write_event(database, codec, NewEvent(run=run, kind="run.canceled", data={"reason": "canceled"}, at=at))
        database.execute("announce_run", {"id": run})
        database.execute("delete_awaits", {"run_id": run})
        canceled.append(run)
    elif database.execute("ask_cancel", {"id": run}):
        write_event(database, codec, NewEvent(run=run, kind="run.canceling", data={}, at=at))
    else:
        return None
    return [*canceled, *_cancel_children(database, codec, run, at)]


def _cancel_children(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> Sequence[RunId]:
    children = [RunId(row["id"]) for row in database.rows("select_children", {"parent_id": run})]
    return [one for child in children for one in _cancel(database, codec, child, at) or ()]


def _cancel_batches(database: DatabaseConnection, canceled: Sequence[RunId]) -> None:
    """Ask to cancel the batches that no other run needs; after all runs, since their locks come before.

    Of two who cancel the runs of one batch at the same moment, the second waits here, and sees what the first did.
    """
    rows = [{"run_id": run} for run in canceled]
    database.rows_of_many("lock_batches_of_runs", rows)
    for row in rows:
        database.execute("cancel_batches_of_run", row)


def requeue(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> Run:
    """Hand a run that stands still to the workers."""
    before = get(database, run)
    _require_end(before)
    if database.execute("requeue_run", {"id": run}) == 0:
        raise Conflict(f"run {run} {state_verb(before.state)}; only a stopped run can be queued")
    write_event(database, codec, NewEvent(run=run, kind="run.queued", data={}, at=at))
    return get(database, run)


def amend(database: DatabaseConnection, codec: Codec, run: RunId, spec: Json) -> Run:
    """Change the spec of a run that has not begun."""
    if database.execute("amend_run", {"id": run, "spec": codec.text(spec)}) == 0:
        raise Conflict(
            f"run {run} {state_verb(get(database, run).state)}; only a task that has not started can be changed"
        )
    return get(database, run)


def set_cap(database: DatabaseConnection, run: RunId, cap: Microdollars, before: Microdollars | None) -> None:
    """Change the budget of a run that stands still, which is that of its lineage; refused when less than is spent."""
    found = get(database, run)
    if found.state in TERMINAL:
        raise Conflict(f"run {run} has ended; its budget cannot change")
    if found.is_driven:
        raise Conflict(f"run {run} is being executed by {found.lease.driver}; its budget cannot change meanwhile")
    if found.cap not in (before, cap):
        now = "no budget" if found.cap is None else f"a budget of {show_usd(found.cap)}"
        raise Conflict(f"run {run} was given {now} meanwhile", suggestions=("look at it, and try again",))
    require_left(run, cap, found.total.settled)
    database.execute("cap_budget", {"id": found.lineage_level, "cap": cap})


def cap_level(database: DatabaseConnection, level: str, cap: Microdollars) -> None:
    """Set the cap of a budget, made if it is not there."""
    database.execute("insert_budget", {"id": level, "cap": cap})
    database.execute("cap_budget", {"id": level, "cap": cap})


def levels_of(run: Run) -> tuple[str, ...]:
    """Return the levels that a run counts under, without the day's."""
    above = run.budgets.above if run.budgets else ()
    return tuple(dict.fromkeys((run_level(run.id), run.lineage_level, *above)))


def restore(database: DatabaseConnection, codec: Codec, run: Run) -> None:
    """Store a run from elsewhere."""
    if first(database.rows("select_run", {"id": run.id})) is not None:
        raise Conflict(f"run {run.id} is already in this store")
    require_deleted(database, run.id)
    database.execute("restore_run", restore_parameters(run, codec))
    _note_levels(database, run.id, run.budgets)
    if run.parent is None:
        link_restored(database, run)
    if run.budgets is None:
        database.execute("restore_budget", {"id": run_level(run.id), "cap": run.cap, **_lanes(run.spent)})
        return
    database.execute("restore_budget", {"id": run_level(run.id), "cap": None, **_lanes(run.spent)})
    # Other runs of the lineage may be here already, and have brought what they knew of it.
    database.execute("restore_budget", {"id": run.budgets.lineage, "cap": run.cap, **_lanes(run.total)})


def _lanes(spent: Spent) -> dict[str, int]:
    return {"billed": spent.billed, "imputed": spent.imputed, "uncertain": spent.uncertain}


def select(database: DatabaseConnection, states: Sequence[RunState], limit: int) -> list[Run]:
    """Read the newest runs, of these states if any are named."""
    if not states:
        return [run_of(row) for row in database.rows("select_runs", {"limit": limit})]
    rows = [
        row for state in states for row in database.rows("select_runs_in_state", {"state": str(state), "limit": limit})
    ]
    found = sorted((run_of(row) for row in rows), key=lambda run: (run.created_at, run.id), reverse=True)
    return found[:limit]
