"""Battles and scale tests, with the field names that HTTP promises."""

from collections.abc import Sequence

from muster.app.battles.battles import DECISION_EVENT, MESSAGE_EVENT, MessagePage, Standing
from muster.battles.reports.json_report import (
    BattleDecisionView,
    BattleMessageView,
    BattleStatusView,
    BattleView,
    CamelView,
    ScaleStatusView,
    ScaleView,
    battle_status_view,
    battle_view,
    decision_view,
    message_view,
    scale_status_view,
    scale_view,
)
from muster.battles.summary import BattleReport
from muster.battles.values import BattleDecision, BattleMessage
from muster.domain.entry import Event
from muster.domain.run import Run, RunState
from muster.text import typed
from muster.text.views import View

__all__ = [
    "AcknowledgedView",
    "BattleDecisionView",
    "BattleStatusView",
    "BattleView",
    "MessagePageView",
    "ScaleStatusView",
    "ScaleView",
    "StartedBattleView",
    "StartedScaleView",
    "battle_event_view",
    "battle_status_view",
    "battle_view",
    "decisions_view",
    "messages_view",
    "scale_status_view",
    "scale_view",
    "standing_view",
    "started_battle_view",
    "started_scale_view",
    "told_by",
]


class StartedBattleView(CamelView):
    """A battle that was started."""

    id: str
    job_id: str
    conversation_id: str
    state: RunState


class StartedScaleView(CamelView):
    """A scale test that was started."""

    id: str
    run_id: str
    job_id: str
    state: RunState


class MessagePageView(CamelView):
    """A page of the messages of a battle."""

    messages: Sequence[BattleMessageView]
    next_seq: int


class AcknowledgedView(View):
    """That something was done."""

    acknowledged: bool


def started_battle_view(run: Run) -> StartedBattleView:
    """Return a battle that was started."""
    return StartedBattleView(id=run.id, job_id=run.id, conversation_id=run.id, state=run.state)


def messages_view(page: MessagePage) -> MessagePageView:
    """Return a page of messages."""
    return MessagePageView(messages=[message_view(message) for message in page.messages], next_seq=page.next_seq)


def decisions_view(decisions: tuple[BattleDecision, ...]) -> list[BattleDecisionView]:
    """Return what was decided."""
    return [decision_view(decision) for decision in decisions]


def told_by(event: Event) -> tuple[BattleMessage | None, BattleDecision | None]:
    """Return the message or the decision that an event tells."""
    told = {**event.data, "created_at": event.at}
    if event.kind == MESSAGE_EVENT:
        return typed.convert(told, BattleMessage), None
    return None, typed.convert(told, BattleDecision) if event.kind == DECISION_EVENT else None


def battle_event_view(event: Event) -> tuple[str, BattleMessageView | BattleDecisionView] | None:
    """Return the name and the value of an event in a stream, the same as polling gives; None for any other event."""
    message, decision = told_by(event)
    if message is not None:
        return "message", message_view(message)
    return None if decision is None else ("decision", decision_view(decision))


def standing_view(standing: Standing) -> BattleStatusView | ScaleStatusView:
    """Return how a battle or scale test stands, the same as its status."""
    return battle_status_view(standing) if isinstance(standing, BattleReport) else scale_status_view(standing)


def started_scale_view(run: Run) -> StartedScaleView:
    """Return a scale test that was started."""
    return StartedScaleView(id=run.id, run_id=run.id, job_id=run.id, state=run.state)
