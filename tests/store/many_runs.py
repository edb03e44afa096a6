"""A database with as many runs as a year of work leaves, made by a few statements: for what must not read all of them.

Every tenth run is a child, every fiftieth was resumed, every fifth is a task; all but the last few have ended.
"""

RUNS = 100_000
BATCHES = RUNS // 10
LAST_ENDED = RUNS - 10

_NUMBERS = {
    "sqlite": f"WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {RUNS})",
    "postgres": f"WITH numbers (i) AS (SELECT generate_series(1, {RUNS}))",
}


def run_id(number: int) -> str:
    """Return the id of a run."""
    return f"r{number:06}"


def _text(expression: str) -> str:
    return f"CAST({expression} AS TEXT)"


def _id(number: str) -> str:
    """Return the expression for the id of the run with a number."""
    return f"'r' || SUBSTR({_text(f'1000000 + {number}')}, 2)"


_RUN, _BEFORE = _id("i"), _id("i - 1")
_CHILD, _RESUMED = "i % 10 = 0", "i % 50 = 3"
_LINEAGE = f"'lineage:' || CASE WHEN {_RESUMED} THEN {_BEFORE} ELSE {_RUN} END"
_ABOVE = f"CASE WHEN {_CHILD} THEN '\"run:' || {_BEFORE} || '\",\"lineage:' || {_BEFORE} || '\"' ELSE '' END"
_LEVELS = f"""'{{"lineage":"' || {_LINEAGE} || '","above":[' || {_ABOVE} || ']}}'"""

_RUN_COLUMNS = {
    "id": _RUN,
    "name": f"'n' || {_text('i % 1000')}",
    "workload": "CASE WHEN i % 5 = 4 THEN 'task' WHEN i % 5 = 1 THEN 'suite' ELSE 'ask' END",
    "spec": "'{}'",
    "state": f"CASE WHEN i > {LAST_ENDED} THEN 'queued' ELSE 'completed' END",
    "tags": "'{}'",
    "seed": "1",
    "concurrency": "1",
    "submitted": "1",
    "parent_id": f"CASE WHEN {_CHILD} THEN {_BEFORE} END",
    "parent_key": f"CASE WHEN {_CHILD} THEN 'k' END",
    "origin_id": f"CASE WHEN {_RESUMED} THEN {_BEFORE} END",
    "origin_reuse": f"CASE WHEN {_RESUMED} THEN 'replies' END",
    "created_at": "i",
    "started_at": "i",
    "ended_at": f"CASE WHEN i <= {LAST_ENDED} THEN i END",
    "lineage": _LINEAGE,
    "levels": _LEVELS,
    "owner": f"'u' || {_text('i % 20')}",
    "client": f"'c' || {_text('i % 20')}",
    "last_seq": "1",
}
_ATTEMPT_COLUMNS = {
    "run_id": _RUN,
    "key": "'k'",
    "n": "1",
    "epoch": "1",
    "state": "'succeeded'",
    "reserved": "2",
    "cost": "1",
    "lane": "'billed'",
    "levels": f"'run:' || {_RUN}",
    "started_at": "i",
}
_JOURNAL_COLUMNS = {
    "run_id": _RUN,
    "key": "'k'",
    "kind": "'call'",
    "state": "'done'",
    "digest": "'d'",
    "agent": "'a'",
    "attempts": "1",
    "opened_at": "i",
}
_BATCH_COLUMNS = {
    "id": f"'b' || {_RUN}",
    "desk": "'d'",
    "account": "'a'",
    "nonce": "'n'",
    "state": "'collected'",
    "requests": "1",
    "bytes": "1",
    "tariffs": "'{}'",
    "created_at": "i",
    "provider_id": f"'p' || {_text('i')}",
}
_AUDIT_COLUMNS = {
    "at": "i",
    "user_name": "'u'",
    "client": "'c'",
    "action": "'start'",
    "subject": _RUN,
    "request_id": "'q'",
}
_SIGNAL_COLUMNS = {
    "address": _LINEAGE,
    "channel": f"'c' || {_text('i')}",
    "seq": "1",
    "client_id": f"'c' || {_text('i')}",
    "payload": "'{}'",
    "sender": "'s'",
    "sent_at": "i",
}
_COST_COLUMNS = {
    "day": f"CASE WHEN i > {LAST_ENDED} THEN 1 ELSE 0 END",
    "agent": "'a'",
    "lane": "'billed'",
    "run_id": _RUN,
    "attempts": "1",
    "cost": "1",
}
_AGENT_COLUMNS = {
    "agent": "CASE WHEN i % 5000 = 7 THEN 'seldom' ELSE 'often' END",
    "created_at": "i",
    "run_id": _RUN,
}
_PART_COLUMNS = {"batch_id": f"'b' || {_RUN}", "part": "0", "data": "'x'"}


def _insert(table: str, columns: dict[str, str], database: str, where: str = "") -> str:
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) {_NUMBERS[database]} "
        f"SELECT {', '.join(columns.values())} FROM numbers{f' WHERE {where}' if where else ''}"
    )


def statements(database: str) -> list[str]:
    """Return what fills the empty tables of a database of this kind."""
    batched = "i % 10 = 1"
    return [
        _insert("runs", _RUN_COLUMNS, database),
        _insert("budgets", {"id": f"'run:' || {_RUN}"}, database),
        _insert("budgets", {"id": _LINEAGE}, database, f"NOT {_RESUMED}"),
        _insert("journal", _JOURNAL_COLUMNS, database),
        "INSERT INTO requests (position, request) SELECT position, '{}' FROM journal",
        "INSERT INTO outcomes (position, outcome) SELECT position, '{}' FROM journal",
        _insert("attempts", _ATTEMPT_COLUMNS, database),
        _insert("agent_costs", _COST_COLUMNS, database),
        _insert("run_agents", _AGENT_COLUMNS, database),
        _insert("events", {"run_id": _RUN, "seq": "1", "kind": "'k'", "at": "i", "data": "'{}'"}, database),
        _insert("signals", _SIGNAL_COLUMNS, database, batched),
        _insert("batches", _BATCH_COLUMNS, database, batched),
        _insert("batch_runs", {"batch_id": f"'b' || {_RUN}", "run_id": _RUN, "members": "1"}, database, batched),
        _insert("batch_bodies", _PART_COLUMNS, database, batched),
        _insert("batch_lines", _PART_COLUMNS, database, batched),
        _insert("audit", _AUDIT_COLUMNS, database),
        _insert("slot_tasks", {"lineage": _LINEAGE, "slot": "'s'", "run_id": _RUN}, database, "i % 5 = 4"),
    ]
