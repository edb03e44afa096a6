"""Figures over past verifications as JSON, with names that stay."""

from typing import Any

import msgspec

from muster.domain.money import to_usd
from muster.domain.waves import Ending
from muster.reports.waves.json_values import counts_json
from muster.reports.waves.metrics import AgentMetrics, VerifyMetrics
from muster.reports.words import moment


def metrics_json(metrics: VerifyMetrics) -> dict[str, Any]:
    """Give the figures."""
    names = ("cycles", "passed", "failed", "stopped", "under_way", "pass_rate", "error_rate")
    return {
        "since": moment(metrics.since),
        **{name: getattr(metrics, name) for name in names},
        "seconds": msgspec.to_builtins(metrics.completion),
        "expired_calls": metrics.expired,
        "expired_share": metrics.expired_share,
        "codes": dict(metrics.codes),
        "cost": _cost(metrics),
        "batches": _batches(metrics),
        "agents": [_agent(agent) for agent in metrics.agents],
    }


def _cost(metrics: VerifyMetrics) -> dict[str, Any]:
    mean, live = metrics.cost_per_cycle, metrics.live_per_cycle
    return {
        "total_usd": to_usd(metrics.cost),
        "billed_usd": to_usd(metrics.billed),
        "uncertain_usd": to_usd(metrics.uncertain),
        "live_usd": to_usd(metrics.live),
        "per_cycle_usd": None if mean is None else mean / 1_000_000,
        "live_per_cycle_usd": None if live is None else live / 1_000_000,
    }


def _batches(metrics: VerifyMetrics) -> dict[str, Any]:
    stats = metrics.batches
    return {
        "count": stats.batches,
        "requests": stats.requests,
        "ended": stats.ended,
        "expired": stats.expired,
        "expiry_rate": stats.expiry_rate,
        "seconds": msgspec.to_builtins(stats.completion),
    }


def _agent(agent: AgentMetrics) -> dict[str, Any]:
    return {
        "agent": agent.agent,
        "reports": agent.reports,
        "endings": {str(ending): agent.endings.get(ending, 0) for ending in Ending},
        "pass_rate": agent.pass_rate,
        "findings": counts_json(agent.counts),
        "cost_usd": to_usd(agent.cost),
    }
