"""Lineages in the database: a run and the runs it was resumed as, which have one end."""

from collections.abc import Mapping

from muster.domain.budget import lineage_level, run_level
from muster.domain.errors import AlreadyContinued
from muster.domain.ids import RunId
from muster.domain.run import NewRun, Run, RunState
from muster.store.codec import run_of
from muster.store.queries import DatabaseConnection, first


def note_continuation(database: DatabaseConnection, new: NewRun, origin: RunId) -> None:
    """Write into the run that a new one continues which one that is; raise AlreadyContinued if it has another, or went.

    A fork, a replay and whatever else only takes replies over has a lineage of its own, and continues nothing.
    """
    lineage = new.budgets.lineage if new.budgets else lineage_level(new.id)
    if lineage == lineage_level(new.id):
        return
    row = first(database.rows("select_run", {"id": origin}))
    if row is None:
        raise AlreadyContinued(f"run {origin} was deleted meanwhile")
    if run_of(row).lineage_level != lineage:
        return
    if database.execute("continue_run", {"id": origin, "continued_by": new.id}) == 0:
        raise AlreadyContinued(f"run {origin} is continued as run {row['continued_by']}")


def relink_deleted(database: DatabaseConnection, run: Run) -> None:
    """Lead the runs that a deleted one continued past it; one that completed stays named as the end of its lineage."""
    if run.state is RunState.COMPLETED:
        return
    database.execute("relink_run", {"id": run.id, "next": run.continued_by})
    scope = _scope(run)
    if run.parent is None and _deleted_end(database, scope) is None:
        _link(database, scope)


def link_restored(database: DatabaseConnection, run: Run) -> None:
    """Choose the end of the lineage that a run from elsewhere joins: the oldest completed one, else the newest."""
    scope = _scope(run)
    deleted = _deleted_end(database, scope)
    if deleted is None:
        _link(database, scope)
    elif run.state is not RunState.COMPLETED:
        database.execute("continue_run", {"id": run.id, "continued_by": deleted})


def _link(database: DatabaseConnection, scope: Mapping[str, str]) -> None:
    """Choose the end of a lineage; what was queued and is continued elsewhere waits for nobody any more."""
    database.execute("link_lineage", scope)
    database.execute("rest_continued", scope)


def _deleted_end(database: DatabaseConnection, scope: Mapping[str, str]) -> RunId | None:
    row = first(database.rows("select_deleted_end", scope))
    return None if row is None else RunId(row["continued_by"])


def _scope(run: Run) -> Mapping[str, str]:
    """Return what finds the runs of a lineage: its level, or the run with that level of its own in an older store."""
    level, own = run.lineage_level, run_level(RunId(""))
    return {"lineage": level, "first": level.removeprefix(own) if level.startswith(own) else ""}
