"""What a completed run came to, in a few words, taken from its stored spec and result.

The modules of the workloads are not loaded for it: a list of runs has runs of all kinds.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from muster.domain.run import Run, RunState
from muster.text.thresholds import reaches
from muster.text.words import count


class Tone(StrEnum):
    """How a verdict is shown."""

    GOOD = "good"
    BAD = "bad"
    PLAIN = "plain"  # nobody said what would be good


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVerdict:
    """What a run came to."""

    ok: bool  # whether its command ends with exit code 0
    tone: Tone
    words: str
    rate: float | None = None  # of cases that passed, of battles that reached their goal
    findings: int | None = None


def verdict_of(run: Run) -> RunVerdict | None:
    """Return what a run came to; None while it has not completed, and for work that has no verdict."""
    find = _VERDICTS.get(run.workload)
    if find is None or run.state is not RunState.COMPLETED:
        return None
    try:
        return find(run.spec, run.result, run)
    except (AttributeError, KeyError, TypeError, ValueError):  # of a later version, or imported
        return None


def verdict_view(run: Run) -> dict[str, Any] | None:
    """Return what a run came to as JSON; None: nothing is known of it, or it has no verdict."""
    found = verdict_of(run)
    return None if found is None else asdict(found)


def _verdict(ok: bool, words: str, **more: Any) -> RunVerdict:
    return RunVerdict(ok=ok, tone=Tone.GOOD if ok else Tone.BAD, words=words, **more)


def _suite(spec: Any, result: Any, run: Run) -> RunVerdict:
    counts = {status: int(number) for status, number in result["counts"].items() if status != "skipped"}
    passed, cases = counts.get("passed", 0), sum(counts.values())
    if not cases:
        return _verdict(ok=False, words="no case was run")
    return _verdict(bool(result["ok"]) and not run.error, f"{passed:,} of {cases:,} passed", rate=passed / cases)


def _waves(spec: Any, result: Any, run: Run) -> RunVerdict:
    ok, findings = bool(result["passed"]), int(result["findings"])
    words = count(findings, "finding") if findings else "no findings" if ok else "not all was verified"
    return _verdict(ok, words, findings=findings)


GOAL, LIMIT = "goal", "limit"
_ENDINGS = {GOAL: "goal reached", "error": "error", "manual": "canceled", "timeout": "time is over",
            "budget": "budget is spent"}  # fmt: skip


def _battle(spec: Any, result: Any, run: Run) -> RunVerdict:
    ending = result["ending"]
    if ending != LIMIT:
        return _verdict(ending == GOAL, _ENDINGS[ending])
    if _decides(spec):
        return _verdict(ok=False, words="judged by nobody" if result.get("unjudged") else "goal not reached")
    return RunVerdict(ok=True, tone=Tone.PLAIN, words="limit reached")


def _decides(spec: Any) -> bool:
    """Return whether anything can decide that the goal of a battle is reached."""
    return bool(spec.get("validators") or (spec.get("goal") and spec.get("judge")))


def _scale(spec: Any, result: Any, run: Run) -> RunVerdict:
    endings = Counter(str(one["ending"]) for one in result["battles"])
    lost, reached = endings[""], endings[GOAL]
    played = endings.total() - lost
    if not played:
        return _verdict(ok=False, words="no battle was played")
    words, rate, gate = f"{reached:,} of {played:,} reached the goal", reached / played, spec.get("min_goal_rate")
    unjudged = sum(bool(one.get("unjudged")) for one in result["battles"])
    words += f", {unjudged:,} judged by nobody" if unjudged else ""
    if unjudged and (gate is None or unjudged == played):
        return _verdict(ok=False, words=words, rate=rate)
    if lost:
        return _verdict(ok=False, words=f"{words}, {lost:,} not played", rate=rate)
    if gate is not None:
        return _verdict(reaches(rate, gate), words, rate=rate)
    if not set(endings) <= {GOAL, LIMIT, ""}:
        return _verdict(ok=False, words=words, rate=rate)
    if not _decides(spec["battle"]):
        return RunVerdict(ok=True, tone=Tone.PLAIN, words=f"{played:,} played")
    return RunVerdict(ok=True, tone=Tone.GOOD if reached == played else Tone.PLAIN, words=words, rate=rate)


def _council(spec: Any, result: Any, run: Run) -> RunVerdict:
    if not any(one["score"]["winner"] for one in result["result"]["rounds"]):
        return _verdict(ok=False, words="not decided")
    if result["result"]["stop"]["reason"] == "convinced":
        return _verdict(ok=True, words="convinced")
    return RunVerdict(ok=True, tone=Tone.PLAIN, words="decided without conviction")


def _fix(spec: Any, result: Any, run: Run) -> RunVerdict:
    changed, left = len(result["changed"]), len(result["left"])
    words = f"{count(changed, 'file')} changed" + (f", {left:,} left" if left else "")
    return _verdict(bool(changed) and not left, words)


_VERDICTS: Mapping[str, Callable[[Any, Any, Run], RunVerdict]] = {
    "suite": _suite,
    "waves": _waves,
    "battle": _battle,
    "scale": _scale,
    "deliberation": _council,
    "fix": _fix,
}
