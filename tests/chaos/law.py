"""The law of the crash proofs, checked from the store and the provider's audit alone.

It imports nothing of the program whose store it reads, and can be run without it:

    python -I -S tests/chaos/law.py DATABASE AUDIT_URL

It expects a store of completed runs whose agents repeat what they are asked, at the prices that the provider charges.
Every violation is one line; exit code 1.
"""

import hashlib
import json
import sqlite3
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LANES = ("billed", "imputed", "uncertain")
CAPPED = ("billed", "uncertain")  # what counts against a budget
BATCH_ENDS = ("collected", "refused", "abandoned")
RUN_ENDS = ("completed", "failed", "canceled", "timeout")
ERRORS = ("failed", "canceled", "expired")  # states of attempts that ended with a stored error
AGAIN = "\x1f"  # in the key of a child that was tried again: between its key and the run before

Names = dict[tuple[str, str], str]  # run and key of a call to the digest of its request
Runs = dict[str, Any]  # rows by id, of either database
Work = tuple[str, ...]  # one piece of work: lineage of the root, keys of the children from there, key, digest

CALLS = """
SELECT journal.run_id, journal.key, journal.digest, journal.state, journal.agent, requests.request, outcomes.outcome
FROM journal
LEFT JOIN requests ON requests.position = journal.position
LEFT JOIN outcomes ON outcomes.position = journal.position
WHERE journal.kind = 'call'
"""


def violations(database: sqlite3.Connection, audit: dict[str, Any]) -> Iterator[str]:
    """Give everything that must not be."""
    database.row_factory = sqlite3.Row
    (whole,) = database.execute("PRAGMA integrity_check").fetchone()
    if whole != "ok":
        yield f"the file is damaged: {whole}"
    attempts = database.execute("SELECT * FROM attempts").fetchall()
    calls = database.execute(CALLS).fetchall()
    yield from of_runs(database)
    yield from of_attempts(attempts)
    yield from of_money(database, attempts)
    yield from of_calls(calls, attempts)
    names = {(call["run_id"], call["key"]): digest(body(call)) for call in calls}
    yield from of_payments(names, attempts, audit["by_digest"])
    yield from of_charges(names, attempts, audit)
    yield from of_batches(database, audit)
    yield from of_work(database, audit)


def of_runs(database: sqlite3.Connection) -> Iterator[str]:
    """Every run is completed, its events have no gaps, and its batches are over."""
    for run in database.execute("SELECT id, state, last_seq FROM runs"):
        if run["state"] != "completed":
            yield f"run {run['id']} is {run['state']}"
        found = database.execute("SELECT seq FROM events WHERE run_id = ? ORDER BY seq", (run["id"],))
        if [seq for (seq,) in found] != list(range(1, run["last_seq"] + 1)):
            yield f"the events of run {run['id']} have gaps"
    for batch in database.execute("SELECT id, state FROM batches"):
        if batch["state"] not in BATCH_ENDS:
            yield f"batch {batch['id']} is {batch['state']}"


def of_attempts(attempts: list[sqlite3.Row]) -> Iterator[str]:
    """Every attempt is over, and no amount is below zero."""
    for attempt in attempts:
        if attempt["state"] in ("started", "parked"):
            yield f"attempt {attempt['n']} of {attempt['key']} is {attempt['state']}"
        if attempt["cost"] < 0 or attempt["reserved"] < 0:
            yield f"attempt {attempt['n']} of {attempt['key']} has an amount below zero"
        unsure = attempt["state"] == "uncertain"
        if unsure and (attempt["cost"], attempt["lane"]) != (attempt["reserved"], "uncertain"):
            yield f"attempt {attempt['n']} of {attempt['key']} is uncertain and not booked as its reservation"


@dataclass
class Tenure:
    """One driver's time with a run, from its claim until it let go or was found dead."""

    epoch: int
    pid: int
    since: float
    released: bool = False


def of_drivers(database: sqlite3.Connection, deaths: Mapping[int, float]) -> Iterator[str]:
    """No run has two drivers at once: whoever is replaced has let go or is dead, and what it writes carries its epoch.

    Epochs begin at 0 and grow by one with every claim, and whenever a driver is declared dead. `deaths` says when
    processes were killed, by their ids.
    """
    attempts = {(row["run_id"], row["key"], row["n"]): row for row in database.execute("SELECT * FROM attempts")}
    for run in database.execute("SELECT id, epoch FROM runs").fetchall():
        told = database.execute("SELECT kind, at, data FROM events WHERE run_id = ? ORDER BY seq", (run["id"],))
        epoch, tenures = 0, list[Tenure]()
        for event in told:
            data = json.loads(event["data"])
            died = event["kind"].startswith("run.") and data.get("reason") == "driver_died"
            if died or event["kind"] in ("run.started", "run.resumed"):
                epoch += 1
                yield from of_replaced(run["id"], tenures, deaths, event["at"])
            if event["kind"] in ("run.started", "run.resumed"):
                tenures.append(Tenure(epoch, int(data["driver"].split()[1]), event["at"]))
            elif event["kind"] in ("run.completed", "run.waiting") or (event["kind"] == "run.interrupted" and not died):
                tenures[-1].released = True
            elif event["kind"] in ("call.done", "call.retry", "call.failed"):
                found = attempts[run["id"], data["key"], data["attempt"]]
                if tenures[-1].released or found["epoch"] != tenures[-1].epoch:
                    yield f"run {run['id']}: attempt of epoch {found['epoch']} settled in epoch {tenures[-1].epoch}"
        if epoch != run["epoch"]:
            yield f"run {run['id']} has epoch {run['epoch']}, and its events tell of {epoch}"
        yield from of_tenures(run["id"], tenures, [one for name, one in attempts.items() if name[0] == run["id"]])


def of_replaced(run: str, tenures: list[Tenure], deaths: Mapping[int, float], at: float) -> Iterator[str]:
    """The last driver of a run has let go of it, or was killed before somebody else took it."""
    if tenures and not tenures[-1].released and deaths.get(tenures[-1].pid, at + 1) > at:
        yield f"run {run} was taken from process {tenures[-1].pid}, which was alive"


def of_tenures(run: str, tenures: list[Tenure], attempts: list[sqlite3.Row]) -> Iterator[str]:
    """Every attempt began while its driver had the run; only those of drivers that were killed are uncertain."""
    ends = [*(tenure.since for tenure in tenures[1:]), float("inf")]
    known = {tenure.epoch: (tenure, end) for tenure, end in zip(tenures, ends, strict=True)}
    for attempt in attempts:
        tenure, end = known[attempt["epoch"]]
        if not tenure.since <= attempt["started_at"] <= end:
            yield f"run {run}: attempt {attempt['n']} of {attempt['key']} began when another driver had the run"
        if attempt["state"] == "uncertain" and tenure.released:
            yield f"run {run}: attempt {attempt['n']} of {attempt['key']} is uncertain, and its driver was not killed"


def of_batches(database: sqlite3.Connection, audit: dict[str, Any]) -> Iterator[str]:
    """Every batch at the provider is in the books: under its id, or as one that was given up."""
    rows = list(database.execute("SELECT provider_id, state FROM batches"))
    known = {row["provider_id"] for row in rows}
    given_up = sum(row["state"] == "abandoned" and row["provider_id"] is None for row in rows)
    strangers = [made["id"] for made in audit["batches"] if made["id"] not in known]
    if len(strangers) > given_up:
        yield f"batches {', '.join(strangers)} are at the provider, and {given_up} were given up"


def of_money(database: sqlite3.Connection, attempts: list[sqlite3.Row]) -> Iterator[str]:
    """Nothing is reserved, and every budget is the sum of the attempts that count under it."""
    sums: Counter[tuple[str, str]] = Counter()
    for attempt in attempts:
        for level in attempt["levels"].split():
            sums[level, attempt["lane"]] += attempt["cost"]
    for budget in database.execute("SELECT * FROM budgets"):
        if budget["cap"] is not None and sum(budget[lane] for lane in CAPPED) > budget["cap"]:
            yield f"{budget['id']} has spent more than its {budget['cap']}"
        if budget["reserved"] != 0:
            yield f"{budget['reserved']} are still reserved in {budget['id']}"
        for lane in LANES:
            if budget[lane] != sums[budget["id"], lane]:
                yield f"{budget['id']} has {budget[lane]} {lane}, its attempts {sums[budget['id'], lane]}"


def of_calls(calls: list[sqlite3.Row], attempts: list[sqlite3.Row]) -> Iterator[str]:
    """Every call has the right reply, from exactly one attempt."""
    succeeded = Counter((one["run_id"], one["key"]) for one in attempts if one["state"] == "succeeded")
    for call in calls:
        if call["state"] != "done" or call["outcome"] is None:
            yield f"call {call['key']} is {call['state']}"
        elif json.loads(call["outcome"])["text"] != asked(call):
            yield f"call {call['key']} has a reply to something else"
        if succeeded[call["run_id"], call["key"]] != 1:
            yield f"call {call['key']} has {succeeded[call['run_id'], call['key']]} replies"


def of_payments(names: Names, attempts: list[sqlite3.Row], paid: dict[str, int]) -> Iterator[str]:
    """For every request, named by its body: replies <= paid <= replies + uncertain."""
    states: Counter[tuple[str, str]] = Counter()
    for attempt in attempts:
        states[names[attempt["run_id"], attempt["key"]], attempt["state"]] += 1
    for name in sorted({*names.values(), *paid}):
        replies, uncertain = states[name, "succeeded"], states[name, "uncertain"]
        if not replies <= paid.get(name, 0) <= replies + uncertain:
            yield f"{keys_of(names, name)}: {replies} replies, {uncertain} uncertain, but {paid.get(name, 0)} paid"


def of_charges(names: Names, attempts: list[sqlite3.Row], audit: dict[str, Any]) -> Iterator[str]:
    """For every request and for all of them, in microdollars: booked <= charged <= booked + uncertain.

    Nothing is allowed for rounding: both sides round each answer up to a whole microdollar, in a batch after the
    price was halved, and sum up whole microdollars. The audit's dollars are a float, hence the `round`.
    """
    booked: Counter[str] = Counter()
    uncertain: Counter[str] = Counter()
    for attempt in attempts:
        lane = uncertain if attempt["lane"] == "uncertain" else booked
        lane[names[attempt["run_id"], attempt["key"]]] += attempt["cost"]
    charges = {name: round(dollars * 1_000_000) for name, dollars in audit["cost_usd_by_digest"].items()}
    for name in sorted({*names.values(), *charges}):
        if not booked[name] <= charges.get(name, 0) <= booked[name] + uncertain[name]:
            sums = f"{booked[name]} booked, {uncertain[name]} uncertain, but {charges.get(name, 0)} charged"
            yield f"{keys_of(names, name)}: {sums}"
    total = round(audit["cost_usd"] * 1_000_000)
    if not booked.total() <= total <= booked.total() + uncertain.total():
        yield f"in all {booked.total()} booked, {uncertain.total()} uncertain, but {total} charged"


def of_work(database: sqlite3.Connection, audit: dict[str, Any]) -> Iterator[str]:
    """A lineage has one end, and no piece of work of it is done twice; also in a store whose runs did not complete.

    For each piece of work: replies <= 1 + late ones. For every request, named by its body: paid <= pieces of work +
    uncertain attempts + attempts with a stored error + late replies.
    """
    database.row_factory = sqlite3.Row
    runs = {run["id"]: run for run in database.execute("SELECT * FROM runs")}
    yield from of_lineages(runs)
    calls = [call for call in database.execute(CALLS).fetchall() if call["run_id"] in runs]
    work = {(call["run_id"], call["key"]): work_of(runs, call) for call in calls}
    attempts = [one for one in database.execute("SELECT * FROM attempts") if (one["run_id"], one["key"]) in work]
    late = Counter(work[told] for told in told_late(database) if told in work)
    replies = Counter(work[one["run_id"], one["key"]] for one in attempts if one["state"] == "succeeded")
    for piece, times in sorted(replies.items()):
        if times > 1 + late[piece]:
            yield f"{' / '.join(piece[:-1])}: done {times} times, {late[piece]} of them late"
    names = {(call["run_id"], call["key"]): digest(body(call)) for call in calls if call["request"] is not None}
    yield from of_paid_work(names, work, attempts, late, audit["by_digest"])


def of_paid_work(
    names: Names,
    work: Mapping[tuple[str, str], Work],
    attempts: list[sqlite3.Row],
    late: Mapping[Work, int],
    paid: dict[str, int],
) -> Iterator[str]:
    """No request is paid oftener than its pieces of work and what went wrong with them explain."""
    pieces: dict[str, set[Work]] = {}
    wrong: Counter[str] = Counter()
    for attempt in attempts:
        call = attempt["run_id"], attempt["key"]
        pieces.setdefault(names.get(call, ""), set()).add(work[call])
        wrong[names.get(call, "")] += attempt["state"] in ("uncertain", *ERRORS)
    for name, times in sorted(paid.items()):
        found = pieces.get(name, set())
        most = len(found) + wrong[name] + sum(late[piece] for piece in found)
        if times > most:
            keys = ", ".join(sorted(" / ".join(piece[:-1]) for piece in found)) or "a request of no run"
            yield f"{keys}: paid {times} times, which is explained {most} times"


def of_lineages(runs: Runs) -> Iterator[str]:
    """Of the runs of a lineage one is its end, one at most can still go on, and the others lead to the end."""
    lineages: dict[str, list[sqlite3.Row]] = {}
    for run in runs.values():
        if run["parent_id"] is None:
            lineages.setdefault(lineage_of(run), []).append(run)
    for lineage, members in sorted(lineages.items()):
        ends = [run["id"] for run in members if run["continued_by"] is None]
        living = [run["id"] for run in members if run["state"] not in RUN_ENDS]
        if len(ends) > 1:
            yield f"{lineage} has {len(ends)} ends: {', '.join(sorted(ends))}"
        if len(living) > 1:
            yield f"{lineage} has {len(living)} runs that can go on: {', '.join(sorted(living))}"
        for run in members:
            if (end := end_of(runs, run)) not in (ends or [end]):
                yield f"run {run['id']} of {lineage} was continued as run {end}, which is not its end"
            if run["continued_by"] is not None and run["state"] not in RUN_ENDS:
                yield f"run {run['id']} was continued, and is {run['state']}"


def end_of(runs: Runs, run: sqlite3.Row) -> str:
    """Give the run at which the continuations of a run end; one that was deleted is the last."""
    seen: list[str] = [run["id"]]
    while seen[-1] in runs and runs[seen[-1]]["continued_by"] is not None:
        if runs[seen[-1]]["continued_by"] in seen:
            return f"{seen[-1]} in a circle"
        seen.append(runs[seen[-1]]["continued_by"])
    return seen[-1]


def work_of(runs: Runs, call: sqlite3.Row) -> Work:
    """Name what a call does, whichever run of a lineage makes it."""
    run, path = runs[call["run_id"]], list[str]()
    while run["parent_id"] is not None:
        path.insert(0, run["parent_key"].partition(AGAIN)[0])
        run = runs[run["parent_id"]]
    return (lineage_of(run), *path, call["key"], call["digest"])


def lineage_of(run: sqlite3.Row) -> str:
    """Give the lineage of a run, which is its own if none is stored."""
    return str(run["lineage"] or f"run:{run['id']}")


def told_late(database: sqlite3.Connection) -> list[tuple[str, str]]:
    """Give run and key of every reply that was told as late."""
    told = database.execute("SELECT run_id, data FROM events WHERE kind = 'call.late'")
    return [(event["run_id"], str(json.loads(event["data"])["key"])) for event in told]


def keys_of(names: Names, name: str) -> str:
    """Give the calls that sent a request."""
    return ", ".join(sorted(key for (_, key), found in names.items() if found == name)) or "nobody's request"


def asked(call: sqlite3.Row) -> str:
    """Give the one message of a call."""
    (message,) = json.loads(call["request"])["messages"]
    return str(message["text"])


def body(call: sqlite3.Row) -> dict[str, Any]:
    """Give what the provider receives, as its documentation says."""
    provider, _, model = call["agent"].partition("/")
    bound = "max_tokens" if provider == "anthropic" else "max_completion_tokens"
    request = json.loads(call["request"])
    system = {"system": request["system"]} if request.get("system") and provider == "anthropic" else {}
    messages = [{"role": one.get("role", "user"), "content": one["text"]} for one in request["messages"]]
    return {"model": model, "messages": messages, bound: request["max_tokens"], **system}


def digest(value: dict[str, Any]) -> str:
    """Name a body as the audit does: SHA-256 of JSON with sorted keys and no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def read_audit(url: str) -> dict[str, Any]:
    """Ask the provider what was paid, without any proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def main(path: str, url: str) -> int:
    """Print every violation."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    found = list(violations(database, read_audit(url)))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
