"""Battles and scale tests as JSON, with the field names that HTTP promises."""

from collections.abc import Mapping
from typing import Any

from muster.battles.scale_summary import PairedComparison, ScaledBattle, ScaleReport
from muster.battles.summary import BattleReport, BattleUsage
from muster.battles.values import BattleDecision, BattleMessage
from muster.domain.money import to_usd
from muster.domain.run import TERMINAL
from muster.statistics.intervals import Interval
from muster.text.words import moment


def message_json(message: BattleMessage) -> dict[str, Any]:
    """Return a message."""
    return {
        "seq": message.seq,
        "role": str(message.role),
        "content": message.content,
        "agent": message.agent or None,
        "model": message.model or None,
        "tokensIn": message.tokens_in,
        "tokensOut": message.tokens_out,
        "costUsd": to_usd(message.cost),
        "latencyMs": message.latency_ms,
        "quality": message.quality,
        "createdAt": moment(message.created_at),
    }


def decision_json(decision: BattleDecision) -> dict[str, Any]:
    """Return a decision."""
    return {
        "turn": decision.turn,
        "stage": str(decision.source),
        "verdict": str(decision.verdict),
        "confidence": decision.confidence,
        "criteriaApplied": list(decision.criteria),
        "reason": decision.reason or None,
        "model": decision.model or None,
        "latencyMs": decision.latency_ms,
        "costUsd": to_usd(decision.cost),
        "createdAt": moment(decision.created_at),
    }


def battle_status_json(report: BattleReport) -> dict[str, Any]:
    """Return how a battle stands."""
    run = report.run
    return {
        "id": run.id,
        "conversationId": run.id,
        "state": str(run.state),
        "progress": round(report.progress, 4),
        "turn": report.turns,
        "messageCount": len(report.messages),
        "endedReason": None if report.ending is None else str(report.ending),
        "endedDetail": report.detail,
        "lastSeq": report.messages[-1].seq if report.messages else 0,
        "lastActivityAt": moment(report.last_activity),
        "usage": _usage(report.usage),
        "costUsd": to_usd(report.cost),
    }


def battle_json(report: BattleReport) -> dict[str, Any]:
    """Return all that is known of a battle."""
    spec = report.spec
    return {
        **battle_status_json(report),
        "run": report.run.id,
        "name": report.run.name,
        "verdict": report.verdict,
        "agent": spec.agent,
        "counterpart": spec.counterpart,
        "goal": spec.goal or None,
        "messageLimit": spec.message_limit,
        "judge": spec.judges[0] if spec.judges else None,
        "confirmJudge": spec.judges[-1] if spec.judges else None,
        "startedAt": moment(report.run.started_at),
        "endedAt": moment(report.run.ended_at),
        "messages": [message_json(one) for one in report.messages],
        "decisions": [decision_json(one) for one in report.decisions],
    }


def scale_status_json(report: ScaleReport) -> dict[str, Any]:
    """Return how a scale test stands."""
    total = len(report.battles)
    played = sum(1.0 if one.ending else one.report.progress if one.report else 0.0 for one in report.battles)
    return {
        "id": report.run.id,
        "runId": report.run.id,
        "state": str(report.run.state),
        "progress": 1.0 if report.run.state in TERMINAL else round(played / total, 4),
        "completed": len(report.ended),
        "total": total,
        "counts": dict(report.counts),
        "unjudged": report.unjudged,
        "conversationIds": [one.run.id for one in report.reports],
    }


def scale_json(report: ScaleReport) -> dict[str, Any]:
    """Return all that is known of a scale test: its figures, and some of its conversations."""
    revision, turns = report.revision, report.turns
    return {
        **scale_status_json(report),
        "name": report.run.name,
        "ok": report.ok,
        "summary": report.verdict,
        "goalRate": report.goal_rate,
        "minGoalRate": report.spec.min_goal_rate,
        "intervals": {name: _interval(one) for name, one in report.intervals.items()},
        "turns": None
        if turns is None
        else {"mean": turns.mean, "median": turns.median, "min": turns.least, "max": turns.most},
        "latencyMs": {f"p{q}": value for q, value in report.latency.items()},
        "usage": _usage(report.usage),
        "costUsd": to_usd(report.cost),
        "subjects": [
            {
                "agent": one.agent,
                "prompt": one.prompt or None,
                "reached": one.reached,
                "battles": one.battles,
                "interval": _interval(one.interval),
            }
            for one in report.rates
        ],
        "battles": [_battle(one) for one in report.battles],
        "samples": [battle_json(one) for one in report.samples],
        "originalPrompt": None if revision is None else report.spec.subjects[0][1].text,
        "revisedPrompt": None if revision is None or not revision.prompt else revision.prompt,
        "rationale": _rationale(report),
        "revised": [_battle(one) for one in report.revised],
        "comparison": None if report.comparison is None else _comparison(report.comparison),
    }


def _rationale(report: ScaleReport) -> str | None:
    revision = report.revision
    if revision is None:
        return None
    return "\n".join(revision.reasons) if revision.prompt else f"no prompt was proposed: {revision.flaw}"


def _battle(one: ScaledBattle) -> dict[str, Any]:
    return {
        "number": one.plan.number,
        "agent": one.plan.agent,
        "prompt": one.plan.prompt or None,
        "goal": one.plan.spec.goal or None,
        "conversationId": None if one.report is None else one.report.run.id,
        "endedReason": None if one.ending is None else str(one.ending),
        "unjudged": one.unjudged or None,
        "turns": 0 if one.report is None else one.report.turns,
        "costUsd": None if one.report is None else to_usd(one.report.cost),
    }


def _comparison(found: PairedComparison) -> dict[str, Any]:
    return {
        "pairs": found.pairs,
        "before": found.before,
        "after": found.after,
        "gained": found.gained,
        "lost": found.lost,
        "p": found.p,
        "pText": found.p_words,
        "leftOut": found.left_out,
        "leftOutUnjudged": found.unjudged,
        "result": found.word,
    }


def _usage(usage: BattleUsage) -> Mapping[str, int]:
    return {"tokensIn": usage.tokens_in, "tokensOut": usage.tokens_out, "calls": usage.calls}


def _interval(found: Interval) -> list[float]:
    return [found.low, found.high]
