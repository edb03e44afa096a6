"""Runs deleted from the database, in small transactions: first from the list, then piece by piece from all tables."""

import shlex

from muster.domain.budget import levels_above, part_level, run_level
from muster.domain.errors import Conflict, NotFound, state_verb
from muster.domain.ids import RunId
from muster.domain.run import TERMINAL, Run, RunState
from muster.store.codec import Codec, run_of
from muster.store.database.calls.settlements import settle_open_attempts
from muster.store.database.lineages import relink_deleted
from muster.store.database.media import delete_unnamed_media
from muster.store.queries import DatabaseConnection, first

DELETING = "deleting:"  # a trait for each run that is gone from the list and not yet from all tables
MAX_ROWS = 1000  # deleted in one transaction
MAX_PIECES = 16  # of a megabyte each
_AT_ONCE = (
    "partials", "reviews", "slot_tasks", "awaits", "run_levels", "figures", "agent_costs", "run_agents", "run_media",
)  # fmt: skip


def begin_deletion(database: DatabaseConnection, codec: Codec, run: RunId, at: float) -> None:
    """Take a run that nobody drives and nobody needs out of the list; what it cost stays in the day's budget.

    What is left of it in other tables is named by a trait, and found by no one else.
    """
    found = _get(database, run)
    if found.state in (RunState.RUNNING, RunState.WAITING):
        raise Conflict(f"run {run} {state_verb(found.state)}; cancel it first")
    row = first(database.rows("count_parked_of_run", {"run_id": run}))
    if row and row["parked"]:
        raise Conflict(
            f"{row['parked']} calls of run {run} are in batches whose results were not fetched yet",
            suggestions=("muster batch list", "muster batch fetch ID"),
        )
    if found.parent is not None and _get(database, found.parent).state not in TERMINAL:
        raise Conflict(f"run {run} is a child of run {found.parent}, which has not ended")
    _require_nameless(database, run)
    settle_open_attempts(database, codec, run, at)
    row = first(database.rows("count_heirs", {"id": run}))
    if row and row["heirs"]:
        raise Conflict(f"{row['heirs']} runs that are not completed may still need run {run}; delete them first")
    database.execute("set_trait", {"name": DELETING + run, "value": str(at)})
    for table in _AT_ONCE:
        database.execute(f"delete_{table}", {"run_id": run})
    has_children = database.execute("detach_children", {"id": run}) > 0
    database.execute("delete_run", {"id": run})
    relink_deleted(database, found)
    database.execute("delete_signals", {"address": found.lineage_level})
    _delete_budgets(database, found, has_children=has_children)


def _delete_budgets(database: DatabaseConnection, run: Run, *, has_children: bool) -> None:
    """Delete the budgets that no run counts under any more; those of days and pools stay."""
    parts = part_level(run.lineage_level, "")
    database.execute("delete_unused_parts", {"lineage": run.lineage_level, "low": parts, "high": parts[:-1] + "0"})
    if not has_children:  # they count under the budgets of this run, also when one of them is resumed
        for level in {run_level(run.id), run.lineage_level}:
            database.execute("delete_unused_budget", {"id": level})
    for level in levels_above(run.budgets):
        database.execute("delete_orphaned_budget", {"id": level, "owner": level.partition(":")[2]})


def _get(database: DatabaseConnection, run: RunId) -> Run:
    row = first(database.rows("select_run", {"id": run}))
    if row is None:
        raise NotFound(f"run {run} not found")
    return run_of(row)


def _require_nameless(database: DatabaseConnection, run: RunId) -> None:
    """Refuse to forget what others are compared with."""
    names = [row["name"] for row in database.rows("select_baselines_of_run", {"run_id": run})]
    if names:
        raise Conflict(
            f"run {run} is the baseline {names[0]!r} and cannot be deleted",
            suggestions=tuple(f"muster baseline remove {shlex.quote(name)}" for name in names),
        )


def unfinished_deletions(database: DatabaseConnection) -> list[RunId]:
    """Return the runs of which something is left."""
    rows = database.rows("select_traits", {"low": DELETING, "high": DELETING[:-1] + ";"})
    return [RunId(row["name"].removeprefix(DELETING)) for row in rows]


def delete_some(database: DatabaseConnection) -> bool:
    """Delete a part of what is left of deleted runs; returns whether there may be more."""
    left = unfinished_deletions(database)
    if not left:
        return False
    scope = {"run_id": left[0], "most": MAX_ROWS}
    for query in ("delete_some_requests", "delete_some_outcomes"):
        database.execute(query, scope)
    for query in ("delete_some_journal", "delete_some_attempts", "delete_some_events"):
        if database.execute(query, scope) == MAX_ROWS:
            return True
    for query in ("delete_some_bodies", "delete_some_lines"):  # prompts and answers go; the figures stay
        if database.execute(query, {"run_id": left[0], "most": MAX_PIECES}) == MAX_PIECES:
            return True
    if delete_unnamed_media(database):
        return True
    database.execute("delete_batch_runs", {"run_id": left[0]})
    for row in database.rows("select_traits", {"low": DELETING + left[0], "high": DELETING + left[0] + " "}):
        database.execute("delete_trait", {"name": row["name"], "value": row["value"]})
    return len(left) > 1


def require_deleted(database: DatabaseConnection, run: RunId) -> None:
    """Refuse to store a run of which something is still to be deleted."""
    if run in unfinished_deletions(database):
        raise Conflict(
            f"run {run} is being deleted", suggestions=("wait until that is done; after a crash: muster store vacuum",)
        )
