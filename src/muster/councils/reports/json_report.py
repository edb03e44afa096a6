"""A council as JSON: what it came to, and every round with its matrix."""

from collections.abc import Sequence
from typing import Any

from muster.councils.outcome import AssessedClaim, BaselineComparison, CouncilRound
from muster.councils.stopping import conviction_of
from muster.councils.summary import CouncilReport, UncountedPhase
from muster.councils.values import CouncilAbstention, Evaluation, Proposal
from muster.domain.money import to_usd
from muster.text import typed
from muster.text.words import moment


def council_json(report: CouncilReport) -> dict[str, Any]:
    """Return all that is known of a council."""
    run, outcome, winner = report.run, report.outcome, report.winner
    result = report.result
    return {
        "run": run.id,
        "name": run.name,
        "state": str(run.state),
        "error": run.failure,
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
        "question": report.spec.question,
        "members": [_plain(member) for member in report.spec.members],
        "moderator": None if report.spec.moderator is None else _plain(report.spec.moderator),
        "max_rounds": report.spec.rounds,
        "verdict": report.verdict,
        "winner": None
        if winner is None
        else {"agent": winner.agent, "text": winner.text, "claims": list(winner.claims)},
        "stop": None if result is None else _plain(result.stop),
        "dissent": [] if result is None else [_plain(one) for one in result.dissent],
        "contested": [] if result is None else [_claim(one) for one in result.contested],
        "synthesis": None if outcome is None or outcome.synthesis is None else _plain(outcome.synthesis),
        "baseline": _baseline(report),
        "injections": [
            {"round": one.round_number, "phase": str(one.phase), "text": one.text} for one in report.injections
        ],
        "rounds": [round_json(one) for one in report.rounds],
        "open_round": [_phase(one) for one in report.open_round],
        "open_calls": list(report.open_calls),
        "position_bias": [
            {
                "evaluator": one.evaluator or None,
                "evaluations": one.evaluations,
                "effect": one.effect,
                "interval": [one.interval.low, one.interval.high],
                "shown": one.is_shown,
            }
            for one in report.biases
        ],
        "costs": [
            {"agent": one.agent, "calls": one.calls, "tokens": one.tokens, "cost_usd": to_usd(one.cost)}
            for one in report.costs
        ],
        "spent_usd": to_usd(run.spent.billed),
        "imputed_usd": to_usd(run.spent.imputed),
        "uncertain_usd": to_usd(run.spent.uncertain),
    }


def round_json(one: CouncilRound) -> dict[str, Any]:
    """Return a round with its score matrix."""
    score = one.score
    return {
        "number": one.number,
        "winner": score.winner,
        "tied": list(score.tied),
        "tie_break": None if score.tie_break is None else str(score.tie_break),
        "conviction": conviction_of(score),
        "counted": score.counted,
        "needed": score.needed,
        "alike": list(score.alike),
        "standings": [_plain(standing) for standing in score.standings],
        "matrix": [_plain(cell) for cell in score.contributions],
        "proposals": _proposals(one.proposals),
        "critiques": _critiques(one.evaluations),
        "abstentions": _abstentions(one.abstentions),
        "rejections": [_plain(rejection) for rejection in score.rejections],
        "missing": [{"evaluator": evaluator, "target": target} for evaluator, target in score.missing],
    }


def _phase(one: UncountedPhase) -> dict[str, Any]:
    record = one.record
    return {
        "round": one.round_number,
        "phase": str(record.phase),
        "counts": False,
        "over": one.is_over,
        "proposals": _proposals(record.proposals),
        "critiques": _critiques(record.evaluations),
        "abstentions": _abstentions(record.abstentions),
    }


def _proposals(given: Sequence[Proposal]) -> list[dict[str, Any]]:
    return [{"agent": one.agent, "text": one.text, "claims": list(one.claims)} for one in given]


def _critiques(given: Sequence[Evaluation]) -> list[dict[str, Any]]:
    return [
        {"evaluator": one.agent, "target": vote.target, "weight": vote.weight, "critique": vote.critique}
        for one in given
        for vote in one.votes
    ]


def _abstentions(given: Sequence[CouncilAbstention]) -> list[dict[str, Any]]:
    return [_plain(one) for one in given]


def _claim(one: AssessedClaim) -> dict[str, Any]:
    said = [{"evaluator": who, "stance": str(what.stance), "reason": what.reason} for who, what in one.said]
    return {"agent": one.agent, "claim": one.claim, "said": said}


def _baseline(report: CouncilReport) -> dict[str, Any] | None:
    outcome = report.outcome
    found: BaselineComparison | None = None if outcome is None else outcome.baseline
    if outcome is None or found is None:
        return None
    best = found.best
    return {
        "agent": found.agent,
        "samples": len(found.samples),
        "asked": found.asked,
        "missing": _abstentions(found.missing),
        "best": None if best is None else best.text,
        "support": {} if found.score is None else {one.agent: one.support for one in found.score.standings},
        "ahead": None if found.score is None or found.score.tied else found.score.winner,
        "tied": [] if found.score is None else list(found.score.tied),
        "council_usd": to_usd(outcome.spent),
        "baseline_usd": to_usd(found.spent),
        "flaw": found.flaw or None,
    }


def _plain(value: object) -> Any:
    return typed.to_builtins(value)
