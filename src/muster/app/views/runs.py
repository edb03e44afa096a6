"""Runs, calls, replies and events as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.app.runs.ask import AskOutcome
from muster.app.runs.details import CallDetails, RunBatches, RunDetails
from muster.app.runs.questions import AnswerOutcome, OpenQuestion
from muster.app.runs.reading import kind_of
from muster.app.runs.shown import shown_event, shown_run
from muster.app.views.money import cost_view
from muster.app.views.subjects import subject_of
from muster.app.views.verdicts import verdict_view
from muster.domain.batch import OVER, Batch, ways_out
from muster.domain.call import Reply, Trace
from muster.domain.entry import Entry, Event
from muster.domain.ids import RunId
from muster.domain.money import to_usd
from muster.domain.run import TRACEBACK, BudgetedCost, Run, state_after
from muster.store.base import Attempt

if TYPE_CHECKING:
    from muster.app.batches import BatchStats, Durations, Reconciled


def run_view(run: Run, *, local: bool = False) -> dict[str, Any]:
    """Return a run as JSON; who drives it and tracebacks are told to users of this machine only."""
    run, calls = shown_run(run), run.calls
    driver = {"driver": str(run.lease.driver) if run.is_driven else None} if local else {}
    return {
        "id": run.id,
        "name": run.name,
        "subject": subject_of(run),
        "workload": run.workload,
        "kind": kind_of(run.workload),
        "state": str(run.state),
        "ended_reason": run.ended_reason,
        "verdict": verdict_view(run),
        **cost_view(BudgetedCost(spent=run.spent, cap=run.cap)),
        "lineage": cost_view(run.cost),
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
        "origin": _origin_view(run),
        "continued_by": run.continued_by,
        "started_by": run.owner,
        **driver,
        "error": run.error if local else run.failure,
        "result": run.result,
    }


def _origin_view(run: Run) -> dict[str, Any] | None:
    if run.origin is None:
        return None
    return {"run": run.origin.run, "reuse": str(run.origin.reuse), "from_key": run.origin.fork_key}


def listed_run_view(run: Run, batches: RunBatches, *, local: bool = False) -> dict[str, Any]:
    """Return a run of a list as JSON, without its result, which can be large."""
    view = whole_run_view(run, batches, local=local)
    del view["result"]
    return view


def queued_run_view(run: Run, batches: RunBatches, workers: int, *, local: bool = False) -> dict[str, Any]:
    """Return a run that was left to workers as JSON, with how many of them are alive."""
    return whole_run_view(run, batches, local=local) | {"workers": workers}


def driven_runs_view(runs: Iterable[tuple[Run, RunBatches]]) -> dict[str, Any]:
    """Return the runs that a worker has driven as JSON."""
    return {"runs": [whole_run_view(run, batches, local=True) for run, batches in runs]}


def deleted_view(runs: Sequence[RunId]) -> dict[str, Any]:
    """Return the runs that were deleted as JSON."""
    return {"deleted": list(runs)}


def run_batches_view(found: RunBatches) -> dict[str, Any]:
    """Return the batches of a run as JSON."""
    saving = found.saving
    return {
        "parked": saving.parked,
        "batches": [batch_reference(batch) for batch in found.batches],
        "batch_usd": to_usd(saving.cost) if found.batches else None,
        "live_usd": to_usd(saving.live_cost) if found.batches else None,
    }


def whole_run_view(run: Run, batches: RunBatches, *, local: bool = False) -> dict[str, Any]:
    """Return a run with its batches as JSON."""
    return run_view(run, local=local) | run_batches_view(batches)


def details_view(details: RunDetails, *, local: bool = False) -> dict[str, Any]:
    """Return a run with the calls and events that were asked for as JSON."""
    found = whole_run_view(details.run, details.batches, local=local)
    if details.calls is not None:
        found["call_list"] = [entry_view(entry) for entry in details.calls]
        found["calls_left_out"] = details.calls_left_out
        found["uncertain_attempts"] = [
            {"key": attempt.key, "attempt": attempt.n, "cost_usd": to_usd(attempt.cost), "error": attempt.error}
            for attempt in details.uncertain
        ]
    if details.events is not None:
        found["events"] = [event_view(event, local=local) for event in details.events]
    if details.questions:
        found["questions"] = [question_view(question) for question in details.questions]
    return found


def question_view(question: OpenQuestion) -> dict[str, Any]:
    """Return what a person is asked as JSON, with the command that answers it."""
    return {
        "run": question.run,
        "key": question.key,
        "agent": question.agent,
        "prompt": question.prompt,
        "schema": question.schema,
        "asked_at": moment(question.asked_at),
        "answer_with": question.command,
        **({"candidates": list(question.candidates)} if question.candidates else {}),
    }


def answer_view(found: AnswerOutcome) -> dict[str, Any]:
    """Return an answer that is stored as JSON, with the run that goes on with it."""
    return {
        "run": found.sent.run,
        "key": found.sent.key,
        "sent_at": moment(found.sent.signal.at),
        "root": found.root.id,
        "state": str(found.root.state),
        "goes_on": found.goes_on,
        "workers": found.workers,
    }


def entry_view(entry: Entry) -> dict[str, Any]:
    """Return a call as JSON, without its text."""
    reply = entry.reply
    return {
        "key": entry.key,
        "agent": entry.agent,
        "state": str(entry.state),
        "attempts": entry.attempts,
        "quality": None if reply is None else str(reply.quality),
        "cost_usd": None if reply is None or entry.reused_from else to_usd(reply.cost),
        "seconds": None if reply is None else round(reply.timings.shown, 3),
        "opened_at": moment(entry.opened_at),
        "settled_at": moment(entry.settled_at),
        "reused_from": entry.reused_from,
        "error": entry.error,
    }


def attempts_view(details: CallDetails) -> dict[str, Any]:
    """Return a call with its attempts as JSON, without its texts."""
    reply = details.entry.reply
    return {
        **entry_view(details.entry),
        "waited_seconds": None if reply is None else round(reply.timings.waited, 3),
        "attempt_list": [_attempt_view(attempt) for attempt in details.attempts],
    }


def call_view(details: CallDetails) -> dict[str, Any]:
    """Return a call with its texts and attempts as JSON."""
    reply = details.entry.reply
    return {
        **attempts_view(details),
        "request": details.entry.request,
        "reply": None if reply is None else reply_view(reply),
    }


def withheld_call_view(details: CallDetails, asked: Sequence[str]) -> dict[str, Any]:
    """Return a call of a council without its texts, which the persons that it asks must not know yet."""
    return {**attempts_view(details), "request": None, "reply": None, "withheld_for": list(asked)}


def _attempt_view(attempt: Attempt) -> dict[str, Any]:
    return {
        "n": attempt.n,
        "state": str(attempt.state),
        "reserved_usd": to_usd(attempt.reserved),
        "cost_usd": to_usd(attempt.cost),
        "lane": str(attempt.lane),
        "budget_exceeded": attempt.cost > attempt.reserved,
        "batch": attempt.batch,
        "started_at": moment(attempt.started_at),
        "ended_at": moment(attempt.ended_at),
        "error": attempt.error,
    }


def reply_view(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON with everything an agent left behind."""
    trace = reply.trace or Trace()
    return {
        "text": reply.text,
        "data": reply.data,
        "data_error": reply.data_error or None,
        "stop": str(reply.stop),
        "model": reply.model,
        "tokens": {"input": reply.usage.all_input, "output": reply.usage.output},
        "tool_calls": [
            {"id": c.id, "name": c.name, "arguments": c.arguments, "result": c.result, "failed": c.failed}
            for c in reply.tool_calls
        ],
        "lane": str(reply.lane),
        "session": trace.session,
        "turns": trace.turns,
        "log": trace.log,
        "note": trace.note,
    }


def ask_view(found: AskOutcome, reply: Reply) -> dict[str, Any]:
    """Return the reply to a question as JSON, with what it cost."""
    return {
        "run": found.run.id,
        "state": str(found.run.state),
        **reply_view(reply),
        "quality": str(found.quality),
        "cost_usd": to_usd(reply.cost),
        "uncertain_usd": to_usd(found.run.spent.uncertain),
        "seconds": round(reply.timings.shown, 3),
        "attempts": reply.attempt,
        "dispatch": str(found.run.dispatch.mode),
        **run_batches_view(found.batches),
    }


def ways_on(run: Run, found: RunBatches) -> list[str]:
    """Return the commands with which a run that waits for batches can be continued."""
    batches = found.under_way or found.batches
    return [f"muster runs resume {run.id}", *(f"muster batch watch {batch.id}" for batch in batches)]


def left_run_view(run: Run, found: RunBatches, workers: int, questions: Sequence[OpenQuestion] = ()) -> dict[str, Any]:
    """Return a run that was left waiting as JSON, with its open questions and the commands that continue it."""
    asked = {"questions": [question_view(question) for question in questions]} if questions else {}
    return {
        "run": run.id,
        "state": str(run.state),
        "dispatch": str(run.dispatch.mode),
        **run_batches_view(found),
        "go_on": ways_on(run, found),
        "workers": workers,
        **asked,
    }


def event_view(event: Event, *, local: bool = False) -> dict[str, Any]:
    """Return an event as JSON, with the new state if it tells one; machine details are for local users only."""
    data = dict(shown_event(event).data)
    if not local and event.kind.startswith("run."):
        data.pop("driver", None)
        if isinstance(error := data.get("error"), Mapping):
            data["error"] = {name: error[name] for name in error if name != TRACEBACK}
    found = {
        "run": event.run,
        "seq": event.seq,
        "kind": event.kind,
        "at": moment(event.at),
        "data": data,
    }
    state = state_after(event.kind)
    return found if state is None else found | {"state": str(state)}


def events_view(run: Run, events: Sequence[dict[str, Any]], after: int) -> dict[str, Any]:
    """Return a page of the events of a run as JSON; `next` is the number to ask for what follows after."""
    return {
        "events": list(events),
        "next": events[-1]["seq"] if events else after,
        "last_seq": run.last_seq,
        "state": str(run.state),
    }


def batch_view(batch: Batch, runs: Mapping[RunId, int] | None = None) -> dict[str, Any]:
    """Return a batch as JSON; with `runs`, how many calls of which runs it holds."""
    found = batch_reference(batch) | {
        "provider": batch.endpoint.kind,
        "base_url": batch.endpoint.base_url,
        "provider_state": batch.word or None,
        "provider_done": batch.done,
        "bytes": batch.bytes,
        "agents": {agent: tariff.model for agent, tariff in batch.tariffs.items()},
        "members": _members_view(batch),
        "reserved_usd": 0.0 if batch.state in OVER else to_usd(batch.reserved),
        "cost_usd": to_usd(batch.cost),
        "live_usd": to_usd(batch.live_cost),
        "saving_usd": to_usd(batch.live_cost - batch.cost),
        "tokens": {"input": batch.input_tokens, "output": batch.output_tokens},
        "created_at": moment(batch.created_at),
        "submitted_at": moment(batch.submitted_at),
        "polled_at": moment(batch.polled_at),
        "ended_at": moment(batch.ended_at),
        "collected_at": moment(batch.collected_at),
        "cancel_requested": batch.cancel_requested,
        "input_file": batch.file,
        "note": batch.note,
        "error": batch.error,
    }
    return found if runs is None else found | {"runs": [{"run": run, "calls": calls} for run, calls in runs.items()]}


def fetched_view(batch: Batch, runs: Sequence[RunId]) -> dict[str, Any]:
    """Return a batch whose results were fetched as JSON, with the runs that can go on now."""
    return batch_view(batch) | {"resumable": list(runs)}


def batch_reference(batch: Batch) -> dict[str, Any]:
    """Return as much of a batch as tells it from others, and why it does not get on if it does not."""
    return {
        "id": batch.id,
        "provider_id": batch.provider_id,
        "state": str(batch.state),
        "requests": batch.requests,
        "stalled": batch.stalled,
        "waits_for": batch.waits_for,
        "why": None if batch.gets_on else batch.note,
        "next": list(ways_out(batch)),
    }


def _members_view(batch: Batch) -> dict[str, int]:
    """Count the members of a batch by how they ended."""
    tally = batch.tally
    return {
        "succeeded": tally.succeeded,
        "errored": tally.errored,
        "canceled": tally.canceled,
        "expired": tally.expired,
        "uncertain": tally.uncertain,
        "waiting": batch.requests - tally.over,
    }


def reconciled_view(one: "Reconciled", runs: Sequence[RunId]) -> dict[str, Any]:
    """Return a batch that was looked for as JSON, with the runs that can go on now."""
    why = one.batch.note if one.error is None else one.error.message
    return batch_reference(one.batch) | {"open": one.error is not None, "why": why, "runs": list(runs)}


def reconciliation_view(found: "Sequence[tuple[Reconciled, Sequence[RunId]]]") -> dict[str, Any]:
    """Return all batches that were looked for as JSON."""
    return {
        "batches": [reconciled_view(one, runs) for one, runs in found],
        "open": sum(one.error is not None for one, _ in found),
        "resumable": resumable(found),
    }


def resumable(found: "Sequence[tuple[Reconciled, Sequence[RunId]]]") -> list[RunId]:
    """Return the runs that can go on now, each once."""
    return list(dict.fromkeys(run for one, runs in found if one.error is None for run in runs))


def exported_run_view(run: Run, path: Path, entries: int) -> dict[str, Any]:
    """Return a run that was written to a file as JSON."""
    return {"id": run.id, "file": str(path), "entries": entries}


def batch_stats_view(found: "BatchStats", begin: float) -> dict[str, Any]:
    """Return the figures as JSON; what is not known yet is null."""
    return {
        "since": moment(begin),
        "batches": found.batches,
        "under_way": found.under_way,
        "refused": found.refused,
        "requests": found.requests,
        "succeeded": found.succeeded,
        "errored": found.errored,
        "canceled": found.canceled,
        "expired": found.expired,
        "uncertain": found.uncertain,
        "success_rate": found.success_rate,
        "error_rate": found.error_rate,
        "expiry_rate": found.expiry_rate,
        "completion_seconds": _seconds(found.completion),
        "tokens": {"input": found.input_tokens, "output": found.output_tokens},
        "cost_usd": to_usd(found.cost),
        "live_usd": to_usd(found.live_cost),
        "saving_usd": to_usd(found.saving),
    }


def _seconds(durations: "Durations | None") -> dict[str, float] | None:
    if durations is None:
        return None
    return {name: round(getattr(durations, name), 3) for name in ("count", "mean", "p50", "p95", "p99")}


def moment(at: float | None) -> str | None:
    """Return a time in UTC, as ISO 8601."""
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
