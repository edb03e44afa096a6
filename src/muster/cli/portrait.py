"""A run as it is shown: as JSON for programs, in a few words for people."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from muster.domain.entry import Entry
from muster.domain.errors import resume_command
from muster.domain.event import Event
from muster.domain.money import show_usd, to_usd
from muster.domain.run import DRIVEN, Run, RunState

COLOURS: Mapping[RunState, str] = {
    RunState.QUEUED: "cyan",
    RunState.RUNNING: "blue",
    RunState.WAITING: "blue",
    RunState.INTERRUPTED: "yellow",
    RunState.COMPLETED: "green",
    RunState.FAILED: "red",
    RunState.CANCELED: "magenta",
    RunState.TIMEOUT: "red",
}


def run_json(run: Run) -> dict[str, Any]:
    """Give a run as JSON."""
    calls = run.calls
    return {
        "id": run.id,
        "name": run.name,
        "workload": run.workload,
        "state": str(run.state),
        "ended_reason": run.ended_reason,
        "budget_usd": None if run.cap is None else to_usd(run.cap),
        "spent_usd": to_usd(run.spent.billed),
        "imputed_usd": to_usd(run.spent.imputed),
        "uncertain_usd": to_usd(run.spent.uncertain),
        "lineage": {
            "spent_usd": to_usd(run.total.billed),
            "imputed_usd": to_usd(run.total.imputed),
            "uncertain_usd": to_usd(run.total.uncertain),
        },
        "calls": {
            "total": calls.total,
            "done": calls.done,
            "failed": calls.failed,
            "uncertain": calls.uncertain,
            "reused": calls.reused,
        },
        "dispatch": str(run.dispatch.mode),
        "created_at": moment(run.created_at),
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
        "tags": list(run.tags),
        "parent": run.parent,
        "origin": _origin_json(run),
        "driver": str(run.lease.driver) if driven(run) else None,
        "error": run.error,
        "result": run.result,
    }


def driven(run: Run) -> bool:
    """Whether somebody drives it; a run may also wait for its batches all alone."""
    return run.state in DRIVEN and run.lease.driver is not None


def _origin_json(run: Run) -> dict[str, Any] | None:
    if run.origin is None:
        return None
    return {"run": run.origin.run, "reuse": str(run.origin.reuse), "from_key": run.origin.fork_key}


def entry_json(entry: Entry) -> dict[str, Any]:
    """Give a call as JSON, without its text."""
    reply = entry.reply
    return {
        "key": entry.key,
        "agent": entry.agent,
        "state": str(entry.state),
        "attempts": entry.attempts,
        "quality": None if reply is None else str(reply.quality),
        "cost_usd": None if reply is None or entry.reused_from else to_usd(reply.cost),
        "seconds": None if reply is None else round(reply.timings.shown, 3),
        "reused_from": entry.reused_from,
        "error": entry.error,
    }


def event_json(event: Event) -> dict[str, Any]:
    """Give an event as JSON."""
    return {
        "run": event.run,
        "seq": event.seq,
        "kind": event.kind,
        "at": moment(event.at),
        "data": dict(event.data),
    }


def event_line(event: Event) -> str:
    """Put an event on one line."""
    data = event.data
    names = ["key", "batch", "quality", "reason", "driver"]
    if event.kind != "batch.progress":  # else it is the reason of an older step
        names.insert(2, "why")
    parts = [str(data[name]) for name in names if data.get(name)]
    if data.get("cost"):
        parts.append(show_usd(int(data["cost"])))
    error = data.get("error")
    if isinstance(error, Mapping):
        parts.append(str(error.get("message", "")))
    return f"{datetime.fromtimestamp(event.at).astimezone():%H:%M:%S}  {event.kind:<15} {'  '.join(parts)}".rstrip()


def summary(run: Run) -> str:
    """Say on one line what became of a run."""
    name = f" ({run.name})" if run.name else ""
    reused = f", {run.calls.reused} of them reused" if run.calls.reused else ""
    failed = f", {run.calls.failed} failed" if run.calls.failed else ""
    uncertain = f", {show_usd(run.spent.uncertain)} uncertain" if run.spent.uncertain else ""
    why = f": {run.error['message']}" if run.error and "message" in run.error else ""
    money = show_usd(run.spent.billed + run.spent.imputed)
    return f"run {run.id}{name} is {run.state}: {run.calls.done} calls done{reused}{failed}, {money}{uncertain}{why}"


def moment(at: float | None) -> str | None:
    """Write a time in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def ways_on(run: Run) -> tuple[str, ...]:
    """Say what can be done next."""
    if driven(run):
        return (f"muster runs watch {run.id}", f"muster runs cancel {run.id}")
    match run.state:
        case RunState.QUEUED:
            return (f"muster runs resume {run.id}", "or a `muster worker` drives it, if it was submitted")
        case RunState.INTERRUPTED | RunState.WAITING | RunState.RUNNING:
            return (f"muster runs resume {run.id}",)
        case RunState.COMPLETED:
            return (f"muster runs export {run.id} -o FILE", f"muster runs fork {run.id} --from KEY")
    return (f"{resume_command(run.id, run.ended_reason, run.error)}   (a new run that reuses every reply)",)
