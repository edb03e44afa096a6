"""Battles and scale tests as JSON, with the field names that HTTP promises."""

from typing import Any

from muster.app.battles.battles import DECISION_EVENT, MESSAGE_EVENT, MessagePage, Standing
from muster.battles.reports.json_report import (
    battle_json,
    battle_status_json,
    decision_json,
    message_json,
    scale_json,
    scale_status_json,
)
from muster.battles.scale_summary import ScaleReport
from muster.battles.summary import BattleReport
from muster.battles.values import BattleDecision, BattleMessage
from muster.domain.entry import Event
from muster.domain.run import Run
from muster.text import typed


def started_battle_view(run: Run) -> dict[str, Any]:
    """Return a battle that was started as JSON."""
    return {"id": run.id, "jobId": run.id, "conversationId": run.id, "state": str(run.state)}


def battle_status_view(report: BattleReport) -> dict[str, Any]:
    """Return how a battle stands as JSON."""
    return battle_status_json(report)


def battle_view(report: BattleReport) -> dict[str, Any]:
    """Return all that is known of a battle as JSON."""
    return battle_json(report)


def messages_view(page: MessagePage) -> dict[str, Any]:
    """Return a page of messages as JSON."""
    return {"messages": [message_json(one) for one in page.messages], "nextSeq": page.next_seq}


def decisions_view(decisions: tuple[BattleDecision, ...]) -> list[dict[str, Any]]:
    """Return what was decided as JSON."""
    return [decision_json(one) for one in decisions]


def told_by(event: Event) -> tuple[BattleMessage | None, BattleDecision | None]:
    """Return the message or the decision that an event tells."""
    told = {**event.data, "created_at": event.at}
    if event.kind == MESSAGE_EVENT:
        return typed.convert(told, BattleMessage), None
    return None, typed.convert(told, BattleDecision) if event.kind == DECISION_EVENT else None


def battle_event_view(event: Event) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the JSON of an event in a stream, the same as polling gives; None for any other event."""
    message, decision = told_by(event)
    if message is not None:
        return "message", message_json(message)
    return None if decision is None else ("decision", decision_json(decision))


def standing_view(standing: Standing | None) -> dict[str, Any]:
    """Return how a battle or scale test stands, the same as its status; nothing for any other run."""
    if standing is None:
        return {}
    return battle_status_json(standing) if isinstance(standing, BattleReport) else scale_status_json(standing)


def started_scale_view(run: Run) -> dict[str, Any]:
    """Return a scale test that was started as JSON."""
    return {"id": run.id, "runId": run.id, "jobId": run.id, "state": str(run.state)}


def scale_status_view(report: ScaleReport) -> dict[str, Any]:
    """Return how a scale test stands as JSON."""
    return scale_status_json(report)


def scale_view(report: ScaleReport) -> dict[str, Any]:
    """Return all that is known of a scale test as JSON."""
    return scale_json(report)
