"""Battles and scale tests as doors and reports tell them, with the field names that HTTP promises."""

from collections.abc import Mapping, Sequence

from muster.battles.scale_summary import PairedComparison, ScaledBattle, ScaleReport, SubjectRate, TurnFigures
from muster.battles.summary import BattleReport, BattleUsage
from muster.battles.values import BattleDecision, BattleMessage
from muster.domain.money import to_usd
from muster.domain.run import TERMINAL, RunState
from muster.statistics.intervals import Interval
from muster.text.views import View, asdict, field, instant, moment


class CamelView(View, rename="camel"):
    """A value whose names are written in camelCase."""


class BattleMessageView(CamelView):
    """A message of a battle."""

    seq: int
    role: str
    content: str
    agent: str | None
    model: str | None
    tokens_in: int
    tokens_out: int
    cost_usd: float
    latency_ms: int
    quality: str | None
    created_at: str


class BattleDecisionView(CamelView):
    """What a validator or a judge decided after a reply."""

    turn: int
    source: str = field(name="stage")
    verdict: str
    confidence: float | None
    criteria_applied: Sequence[str]
    reason: str | None
    model: str | None
    latency_ms: int
    cost_usd: float
    created_at: str


class BattleUsageView(CamelView):
    """The tokens and calls of battles."""

    tokens_in: int
    tokens_out: int
    calls: int


class BattleStatusView(CamelView):
    """How a battle stands."""

    id: str
    conversation_id: str
    state: RunState
    progress: float
    turn: int
    message_count: int
    ended_reason: str | None
    ended_detail: str | None
    last_seq: int
    last_activity_at: str | None
    usage: BattleUsageView
    cost_usd: float


class BattleView(BattleStatusView):
    """All that is known of a battle."""

    run: str
    name: str | None
    verdict: str
    agent: str
    counterpart: str | None
    goal: str | None
    message_limit: int
    judge: str | None
    confirm_judge: str | None
    started_at: str | None
    ended_at: str | None
    messages: Sequence[BattleMessageView]
    decisions: Sequence[BattleDecisionView]


class ScaleStatusView(CamelView):
    """How a scale test stands."""

    id: str
    run_id: str
    state: RunState
    progress: float
    completed: int
    total: int
    counts: Mapping[str, int]
    unjudged: int
    conversation_ids: Sequence[str]


class TurnsView(CamelView):
    """How many turns battles took."""

    mean: float
    median: float
    min: int
    max: int


class SubjectRateView(CamelView):
    """How often an agent reached its goal under a prompt."""

    agent: str
    prompt: str | None
    reached: int
    battles: int
    interval: Sequence[float]


class ScaledBattleView(CamelView):
    """One battle of a scale test."""

    number: int
    agent: str
    prompt: str | None
    goal: str | None
    conversation_id: str | None
    ended_reason: str | None
    unjudged: str | None
    turns: int
    cost_usd: float | None


class PairedComparisonView(CamelView):
    """The battles under a revised prompt, compared with those before."""

    pairs: int
    before: int
    after: int
    gained: int
    lost: int
    p: float
    p_text: str
    left_out: int
    left_out_unjudged: int
    result: str


class ScaleView(ScaleStatusView):
    """All that is known of a scale test: its figures, and some of its conversations."""

    name: str | None
    ok: bool
    summary: str
    goal_rate: float | None
    min_goal_rate: float | None
    intervals: Mapping[str, Sequence[float]]
    turns: TurnsView | None
    latency_ms: Mapping[str, float | None]
    usage: BattleUsageView
    cost_usd: float
    subjects: Sequence[SubjectRateView]
    battles: Sequence[ScaledBattleView]
    samples: Sequence[BattleView]
    original_prompt: str | None
    revised_prompt: str | None
    rationale: str | None
    revised: Sequence[ScaledBattleView]
    comparison: PairedComparisonView | None


def message_view(message: BattleMessage) -> BattleMessageView:
    """Return a message."""
    return BattleMessageView(
        seq=message.seq,
        role=message.role,
        content=message.content,
        agent=message.agent or None,
        model=message.model or None,
        tokens_in=message.tokens_in,
        tokens_out=message.tokens_out,
        cost_usd=to_usd(message.cost),
        latency_ms=message.latency_ms,
        quality=message.quality,
        created_at=instant(message.created_at),
    )


def decision_view(decision: BattleDecision) -> BattleDecisionView:
    """Return a decision."""
    return BattleDecisionView(
        turn=decision.turn,
        source=decision.source,
        verdict=decision.verdict,
        confidence=decision.confidence,
        criteria_applied=decision.criteria,
        reason=decision.reason or None,
        model=decision.model or None,
        latency_ms=decision.latency_ms,
        cost_usd=to_usd(decision.cost),
        created_at=instant(decision.created_at),
    )


def battle_status_view(report: BattleReport) -> BattleStatusView:
    """Return how a battle stands."""
    run = report.run
    return BattleStatusView(
        id=run.id,
        conversation_id=run.id,
        state=run.state,
        progress=round(report.progress, 4),
        turn=report.turns,
        message_count=len(report.messages),
        ended_reason=report.ending,
        ended_detail=report.detail,
        last_seq=report.messages[-1].seq if report.messages else 0,
        last_activity_at=moment(report.last_activity),
        usage=_usage(report.usage),
        cost_usd=to_usd(report.cost),
    )


def battle_view(report: BattleReport) -> BattleView:
    """Return all that is known of a battle."""
    spec = report.spec
    return BattleView(
        **asdict(battle_status_view(report)),
        run=report.run.id,
        name=report.run.name,
        verdict=report.verdict,
        agent=spec.agent,
        counterpart=spec.counterpart,
        goal=spec.goal or None,
        message_limit=spec.message_limit,
        judge=spec.judges[0] if spec.judges else None,
        confirm_judge=spec.judges[-1] if spec.judges else None,
        started_at=moment(report.run.started_at),
        ended_at=moment(report.run.ended_at),
        messages=[message_view(message) for message in report.messages],
        decisions=[decision_view(decision) for decision in report.decisions],
    )


def scale_status_view(report: ScaleReport) -> ScaleStatusView:
    """Return how a scale test stands."""
    total = len(report.battles)
    played = sum(1.0 if one.ending else one.report.progress if one.report else 0.0 for one in report.battles)
    return ScaleStatusView(
        id=report.run.id,
        run_id=report.run.id,
        state=report.run.state,
        progress=1.0 if report.run.state in TERMINAL else round(played / total, 4),
        completed=len(report.ended),
        total=total,
        counts=report.counts,
        unjudged=report.unjudged,
        conversation_ids=[battle.run.id for battle in report.reports],
    )


def scale_view(report: ScaleReport) -> ScaleView:
    """Return all that is known of a scale test: its figures, and some of its conversations."""
    revision = report.revision
    return ScaleView(
        **asdict(scale_status_view(report)),
        name=report.run.name,
        ok=report.ok,
        summary=report.verdict,
        goal_rate=report.goal_rate,
        min_goal_rate=report.spec.min_goal_rate,
        intervals={name: _interval(interval) for name, interval in report.intervals.items()},
        turns=None if report.turns is None else _turns(report.turns),
        latency_ms={f"p{q}": value for q, value in report.latency.items()},
        usage=_usage(report.usage),
        cost_usd=to_usd(report.cost),
        subjects=[_subject(rate) for rate in report.rates],
        battles=[_battle(battle) for battle in report.battles],
        samples=[battle_view(sample) for sample in report.samples],
        original_prompt=None if revision is None else report.spec.subjects[0][1].text,
        revised_prompt=None if revision is None or not revision.prompt else revision.prompt,
        rationale=_rationale(report),
        revised=[_battle(battle) for battle in report.revised],
        comparison=None if report.comparison is None else _comparison(report.comparison),
    )


def _rationale(report: ScaleReport) -> str | None:
    revision = report.revision
    if revision is None:
        return None
    return "\n".join(revision.reasons) if revision.prompt else f"no prompt was proposed: {revision.flaw}"


def _turns(turns: TurnFigures) -> TurnsView:
    return TurnsView(mean=turns.mean, median=turns.median, min=turns.least, max=turns.most)


def _subject(rate: SubjectRate) -> SubjectRateView:
    return SubjectRateView(
        agent=rate.agent,
        prompt=rate.prompt or None,
        reached=rate.reached,
        battles=rate.battles,
        interval=_interval(rate.interval),
    )


def _battle(battle: ScaledBattle) -> ScaledBattleView:
    return ScaledBattleView(
        number=battle.plan.number,
        agent=battle.plan.agent,
        prompt=battle.plan.prompt or None,
        goal=battle.plan.spec.goal or None,
        conversation_id=None if battle.report is None else battle.report.run.id,
        ended_reason=battle.ending,
        unjudged=battle.unjudged or None,
        turns=0 if battle.report is None else battle.report.turns,
        cost_usd=None if battle.report is None else to_usd(battle.report.cost),
    )


def _comparison(compared: PairedComparison) -> PairedComparisonView:
    return PairedComparisonView(
        pairs=compared.pairs,
        before=compared.before,
        after=compared.after,
        gained=compared.gained,
        lost=compared.lost,
        p=compared.p,
        p_text=compared.p_words,
        left_out=compared.left_out,
        left_out_unjudged=compared.unjudged,
        result=compared.word,
    )


def _usage(usage: BattleUsage) -> BattleUsageView:
    return BattleUsageView(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, calls=usage.calls)


def _interval(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
