"""What is told of a run while it goes on, as JSON with a name: the same facts that polling gives."""

from typing import Any

from muster.app.runs.follow import Resync, RunEnd, RunUpdate, TextDelta
from muster.app.views.battles import battle_event_view
from muster.app.views.runs import event_view, run_view
from muster.domain.entry import Event
from muster.domain.run import RunState

# The state that a run has after `run.NAME`.
STATES = {str(state): state for state in RunState} | {
    "created": RunState.QUEUED,
    "started": RunState.RUNNING,
    "resumed": RunState.RUNNING,
    "canceling": RunState.RUNNING,
}
STATUS, EVENT, DELTA, RESYNC, END = "status", "event", "delta", "resync", "end"


def update_view(update: RunUpdate) -> tuple[str, dict[str, Any]]:
    """Return the name and the JSON of an update; events have the JSON that polling gives."""
    if isinstance(update, TextDelta):
        return DELTA, {"run": update.run, "key": update.key, "offset": update.offset, "text": update.text}
    if isinstance(update, Resync):
        return RESYNC, {"run": update.run, "reason": str(update.reason), "after": update.after}
    if isinstance(update, RunEnd):
        found = run_view(update.run)
        del found["result"]  # it can be large, and is asked for with the run
        return END, found | {"last_seq": update.seq}
    said = battle_event_view(update)
    if said is not None:
        return said
    state = state_told(update)
    return (EVENT, event_view(update)) if state is None else (STATUS, event_view(update) | {"state": str(state)})


def state_told(event: Event) -> RunState | None:
    """Return the state that a run had after an event; None for an event about something else."""
    prefix, _, name = event.kind.partition(".")
    return STATES.get(name) if prefix == "run" else None
