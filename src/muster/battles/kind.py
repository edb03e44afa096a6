"""Battles and scale tests as kinds of work."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muster.domain.canonical import Json
from muster.domain.kind import KindReport, RunVerdict, StoredSpec, Tone, WorkKind, joined, part_of, passed_or_not
from muster.text.scores import reaches

if TYPE_CHECKING:
    from muster.domain.run import Run

GOAL, LIMIT = "goal", "limit"
_ENDINGS = {GOAL: "goal reached", "error": "error", "manual": "canceled", "timeout": "time is over",
            "budget": "budget is spent"}  # fmt: skip
FORMATS = ("json", "markdown", "html")


def _battle_subject(spec: StoredSpec) -> tuple[object, ...]:
    return spec.get("agent"), spec.get("goal") or spec.get("user_message")


def _battle_verdict(spec: Any, result: Any, run: "Run") -> RunVerdict:
    ending = result["ending"]
    if ending != LIMIT:
        return passed_or_not(ending == GOAL, _ENDINGS[ending])
    if _decides(spec):
        return passed_or_not(ok=False, words="judged by nobody" if result.get("unjudged") else "goal not reached")
    return RunVerdict(ok=True, tone=Tone.PLAIN, words="limit reached")


def _decides(spec: Any) -> bool:
    """Return whether anything can decide that the goal of a battle is reached."""
    return bool(spec.get("validators") or (spec.get("goal") and spec.get("judge")))


def _scale_subject(spec: StoredSpec) -> tuple[object, ...]:
    battle = spec.get("battle")
    agent, goal = _battle_subject(battle) if isinstance(battle, Mapping) else (None, None)
    return joined(spec.get("agents")) or agent, goal or part_of(spec, "goals", 0, "goal")


def _scale_verdict(spec: Any, result: Any, run: "Run") -> RunVerdict:
    endings = Counter(str(battle["ending"]) for battle in result["battles"])
    lost, reached = endings[""], endings[GOAL]
    played = endings.total() - lost
    if not played:
        return passed_or_not(ok=False, words="no battle was played")
    words, rate, gate = f"{reached:,} of {played:,} reached the goal", reached / played, spec.get("min_goal_rate")
    unjudged = sum(bool(battle.get("unjudged")) for battle in result["battles"])
    words += f", {unjudged:,} judged by nobody" if unjudged else ""
    if unjudged and (gate is None or unjudged == played):
        return passed_or_not(ok=False, words=words, rate=rate)
    if lost:
        return passed_or_not(ok=False, words=f"{words}, {lost:,} not played", rate=rate)
    if gate is not None:
        return passed_or_not(reaches(rate, gate), words, rate=rate)
    if not set(endings) <= {GOAL, LIMIT, ""}:
        return passed_or_not(ok=False, words=words, rate=rate)
    if not _decides(spec["battle"]):
        return RunVerdict(ok=True, tone=Tone.PLAIN, words=f"{played:,} played")
    return RunVerdict(ok=True, tone=Tone.GOOD if reached == played else Tone.PLAIN, words=words, rate=rate)


def _at_a_time(spec: Json) -> int:
    """Return how many battles a scale test plays at the same time; one that cannot be read fails when it is driven."""
    numbers = [part_of(spec, "concurrency"), part_of(spec, "runs")]
    return min((number for number in numbers if isinstance(number, int)), default=1)


BATTLE = WorkKind(
    workload="battle",
    word="battle",
    about="Let two agents talk, turn by turn, until the one under test has reached a goal or the limit.",
    module="muster.battles.workload",
    command="muster battle",
    example="muster battle --agent A --counterpart B --goal TEXT --judge J",
    order="muster.battles.order:BattleOrder",
    subject=_battle_subject,
    verdict=_battle_verdict,
    report=KindReport(function="muster.battles.reports.formats:report_of_battle", formats=FORMATS),
    is_shared=True,
    battles=lambda spec: 1,
)
SCALE = WorkKind(
    workload="scale",
    word="scale test",
    about="Play many battles and measure how often the goal is reached, how long it takes and what it costs.",
    module="muster.battles.scale",
    command="muster scale",
    example="muster scale --agent A --counterpart B --goal TEXT",
    order="muster.battles.order:ScaleOrder",
    subject=_scale_subject,
    verdict=_scale_verdict,
    report=KindReport(function="muster.battles.reports.formats:report_of_scale", formats=FORMATS),
    battles=_at_a_time,
)
