"""Events of runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.app.runs.shown import shown_event
from muster.domain.canonical import Json
from muster.domain.entry import Event
from muster.domain.run import TRACEBACK, Run, RunState, state_after
from muster.text.views import UNSET, UnsetType, View, instant


class EventView(View):
    """One numbered fact about a run, with the new state if it tells one."""

    run: str
    seq: int
    kind: str
    at: str
    data: Mapping[str, Json]
    state: RunState | UnsetType = UNSET


class EventPageView(View):
    """A page of the events of a run; `next` is the number to ask for what follows after."""

    events: Sequence[Json]
    next: int
    last_seq: int
    state: RunState


def event_view(event: Event, *, local: bool = False) -> EventView:
    """Return an event; machine details are for local users only."""
    data = dict(shown_event(event).data)
    if not local and event.kind.startswith("run."):
        data.pop("driver", None)
        if isinstance(error := data.get("error"), Mapping):
            data["error"] = {name: error[name] for name in error if name != TRACEBACK}
    state = state_after(event.kind)
    return EventView(
        run=event.run,
        seq=event.seq,
        kind=event.kind,
        at=instant(event.at),
        data=data,
        state=UNSET if state is None else state,
    )


def event_page_view(run: Run, events: Sequence[Event], shown: Sequence[Any], after: int) -> EventPageView:
    """Return a page of the events of a run, each as it is shown."""
    return EventPageView(events=shown, next=events[-1].seq if events else after, last_seq=run.last_seq, state=run.state)
