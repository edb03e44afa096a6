"""What is told of a run while it goes on, as a value with a name: the same facts that polling gives."""

from collections.abc import Mapping

from muster.app.base.feeds import Resync, ResyncReason, RunEnd, RunUpdate, TextDelta
from muster.app.battles.battles import Standing
from muster.app.views.battles import battle_event_view, standing_view
from muster.app.views.events import EventView, event_view
from muster.app.views.runs import RunView, run_view
from muster.domain.canonical import Json
from muster.domain.entry import Event
from muster.domain.run import state_after
from muster.text.views import UNSET, View, asdict, plain, replace

STATUS, EVENT, DELTA, RESYNC, END = "status", "event", "delta", "resync", "end"


class TextDeltaView(View):
    """A piece of a text that is being written."""

    run: str
    key: str
    offset: int
    text: str


class ResyncView(View):
    """That events are left out here, why, and after which number they begin again."""

    run: str
    reason: ResyncReason
    after: int


class RunEndView(RunView, kw_only=True):
    """A run that is over, without its result, which is asked for with the run."""

    last_seq: int


def update_view(update: RunUpdate, standing: Standing | None = None) -> tuple[str, View | Mapping[str, Json]]:
    """Return the name and the value of an update, with how a battle or scale test stood then."""
    if isinstance(update, TextDelta):
        return DELTA, TextDeltaView(run=update.run, key=update.key, offset=update.offset, text=update.text)
    if isinstance(update, Resync):
        return RESYNC, ResyncView(run=update.run, reason=update.reason, after=update.after)
    if isinstance(update, RunEnd):
        run = replace(run_view(update.run), result=UNSET)
        return END, _with_standing(RunEndView(**asdict(run), last_seq=update.seq), standing)
    said = battle_event_view(update)
    if said is not None:
        return said
    tells_status = standing is not None or state_after(update.kind) is not None
    return STATUS if tells_status else EVENT, told_view(update, standing)


def told_view(event: Event, standing: Standing | None = None) -> EventView | Mapping[str, Json]:
    """Return an event, with how a battle or scale test stood then."""
    view = event_view(event)
    return view if standing is None else plain(view) | plain(standing_view(standing))


def _with_standing(end: RunEndView, standing: Standing | None) -> RunEndView | Mapping[str, Json]:
    """Return the end of a run with how it stood then, of which its last number is told."""
    if standing is None:
        return end
    return plain(end) | plain(standing_view(standing)) | {"last_seq": end.last_seq}
