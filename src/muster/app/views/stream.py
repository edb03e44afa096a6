"""What is told of a run while it goes on, as JSON with a name: the same facts that polling gives."""

from typing import Any

from muster.app.battles.battles import Standing
from muster.app.runs.follow import Resync, RunEnd, RunUpdate, TextDelta
from muster.app.views.battles import battle_event_view, standing_view
from muster.app.views.runs import event_view, run_view
from muster.domain.entry import Event
from muster.domain.run import state_after

STATUS, EVENT, DELTA, RESYNC, END = "status", "event", "delta", "resync", "end"


def update_view(update: RunUpdate, standing: Standing | None = None) -> tuple[str, dict[str, Any]]:
    """Return the name and the JSON of an update, with how a battle or scale test stood then."""
    if isinstance(update, TextDelta):
        return DELTA, {"run": update.run, "key": update.key, "offset": update.offset, "text": update.text}
    if isinstance(update, Resync):
        return RESYNC, {"run": update.run, "reason": str(update.reason), "after": update.after}
    if isinstance(update, RunEnd):
        found = run_view(update.run)
        del found["result"]  # it can be large, and is asked for with the run
        return END, found | standing_view(standing) | {"last_seq": update.seq}
    said = battle_event_view(update)
    if said is not None:
        return said
    tells_status = standing is not None or state_after(update.kind) is not None
    return STATUS if tells_status else EVENT, told_view(update, standing)


def told_view(event: Event, standing: Standing | None = None) -> dict[str, Any]:
    """Return an event as JSON, with how a battle or scale test stood then."""
    return event_view(event) | standing_view(standing)
