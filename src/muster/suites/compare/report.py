"""A comparison in Markdown, for a pull request."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from muster.domain.money import to_usd
from muster.reporting.markdown import in_cell, inline
from muster.statistics.intervals import Interval
from muster.suites.compare.pairs import ComparedPair, PairPage
from muster.suites.compare.runs import RunComparison, Side, SubjectComparison
from muster.suites.compare.values import Change, Comparison, ComparisonVerdict, Noticing, counted
from muster.suites.reports.rows import WORDS
from muster.text import typed
from muster.text.words import count, percent

SIGNS = {
    ComparisonVerdict.BETTER: "🟢",
    ComparisonVerdict.SAME: "⚪",
    ComparisonVerdict.NOT_WORSE: "⚪",
    ComparisonVerdict.WORSE: "🔴",
    ComparisonVerdict.UNSURE: "🟡",
}
MOST_CHANGES = 50  # a comment has an end


def comparison_markdown(found: RunComparison) -> str:
    """Write a comparison: the verdict first, then the numbers, then what changed."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: RunComparison) -> Iterator[str]:
    yield f"### {SIGNS[found.verdict]} {str(found.verdict).capitalize()}{gate_words(found)}"
    yield ""
    yield f"{inline(found.b.name)} against {inline(found.a.name)}: {inline(found.why, 400)}"
    for note in found.notes:
        yield f"- {inline(note, 300)}"
    for one in found.subjects:
        yield ""
        yield from _subject(one, alone=len(found.subjects) == 1)


def _subject(one: SubjectComparison, *, alone: bool) -> Iterator[str]:
    found = one.comparison
    if not alone:
        yield f"#### {SIGNS[found.verdict]} {inline(one.before)}: {found.verdict}"
        yield ""
    yield "| | A | B | difference | p |"
    yield "|---|---:|---:|---|---:|"
    yield _row("pass rate", percent(found.pass_before), percent(found.pass_after), _points(found), found.pass_p)
    yield _row("score", _score(found.score_before), _score(found.score_after), _moved(found), found.score_p)
    yield ""
    for line in filter(None, (limits(found), None if alone else power(found))):
        yield f"{line}."
        yield ""
    yield f"{summary(found)}."
    yield from _table("Regressed", found.regressions, repeated=found.repeated)
    yield from _table("Improved", found.improvements, repeated=found.repeated)


def gate_words(found: RunComparison) -> str:
    """Return what follows an inconclusive verdict: whether it passes all the same."""
    return f" (gate: {found.gate})" if found.verdict is ComparisonVerdict.UNSURE else ""


def summary(found: Comparison) -> str:
    """Return how much was compared; everything is counted in the one unit that is named first."""
    of = f" of {count(found.cases, 'case')}" if found.repeated else ""
    parts = [f"{counted(found.pairs, repeated=found.repeated)}{of} compared"]
    parts += [f"{len(found.regressions):,} regressed", f"{len(found.improvements):,} improved"]
    parts += [f"{found.no_result:,} without a result in B"] if found.no_result else []
    failed = f" ({found.new_failed:,} did not pass)" if found.new_failed else ""
    parts += [f"{len(found.new):,} only in B{failed}"] if found.new else []
    parts += [f"{counted(found.left_out, repeated=True)} of A left out"] if found.left_out else []
    return ", ".join(parts)


def power(found: Comparison) -> str | None:
    """Return how often a drop would be noticed, of a comparison that decided nothing."""
    return None if found.noticing is None else found.noticing.words


def limits(found: Comparison) -> str | None:
    """Return how much lower B may be, if a margin was given."""
    if found.margin is None or found.pass_at_least is None or found.score_at_least is None:
        return None
    at_least = f"pass rate {100 * found.pass_at_least:+.1f} points at least, score {found.score_at_least:+.3f} at least"
    return f"{at_least} ({100 * (1 - found.alpha):.4g} % sure); margin {100 * found.margin:.4g} points"


def _row(name: str, before: str, after: str, difference: str, p: float) -> str:
    return f"| {name} | {before} | {after} | {difference} | {p:.3g} |"


def _points(found: Comparison) -> str:
    if found.pass_difference is None:
        return "–"
    return f"{100 * found.pass_difference:+.1f} points{between(found.pass_interval, 100)}"


def _moved(found: Comparison) -> str:
    return "–" if found.score_difference is None else f"{found.score_difference:+.3f}{between(found.score_interval)}"


def between(interval: Interval | None, factor: float = 1) -> str:
    """Write where a difference lies."""
    if interval is None:
        return ""
    form = "+.1f" if factor != 1 else "+.3f"
    return f" ({factor * interval.low:{form}} to {factor * interval.high:{form}})"


def pairs_json(found: PairPage) -> dict[str, Any]:
    """Return a page of pairs as JSON."""
    return {
        "a": _side(found.a),
        "b": _side(found.b),
        "counts": {str(change): number for change, number in found.counts.items()},
        "pairs": [_pair_json(pair) for pair in found.pairs],
        "next": found.next,
    }


def _pair_json(pair: ComparedPair) -> dict[str, Any]:
    sides = {"before": pair.before, "after": pair.after}
    return {
        "case": pair.case,
        "epoch": pair.epoch,
        "subject_a": pair.subject_a,
        "subject_b": pair.subject_b,
        "change": str(pair.change),
        "reason": pair.reason,
        **{name: None if side is None else str(side.status) for name, side in sides.items()},
        **{f"{name}_score": None if side is None else side.score for name, side in sides.items()},
        "same_answer": pair.same_answer,
    }


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"


def _table(title: str, changes: Sequence[Change], *, repeated: bool) -> Iterator[str]:
    if not changes:
        return
    number = counted(len(changes), repeated=repeated)
    yield ""
    yield f"<details{' open' if title == 'Regressed' else ''}><summary>{title}: {number}</summary>"
    yield ""
    yield "| case | epoch | A | B | score |"
    yield "|---|---:|---|---|---|"
    for change in changes[:MOST_CHANGES]:
        after = WORDS[change.after] if change.after is not None else "missing"
        scores = f"{_score(change.before_score)} → {_score(change.after_score)}"
        yield f"| {in_cell(change.case)} | {change.epoch} | {WORDS[change.before]} | {after} | {scores} |"
    if len(changes) > MOST_CHANGES:
        yield ""
        yield f"… and {len(changes) - MOST_CHANGES:,} more"
    yield ""
    yield "</details>"


def comparison_json(found: RunComparison, most_changes: int | None = None) -> dict[str, Any]:
    """Return everything that is said as JSON; if asked for, with the first changed cases of each subject only."""
    return {
        "verdict": str(found.verdict),
        "gate": str(found.gate),
        "ok": found.ok,
        "why": found.why,
        "a": _side(found.a),
        "b": _side(found.b),
        "notes": list(found.notes),
        "subjects": [_subject_json(one, most_changes) for one in found.subjects],
    }


def _side(side: Side) -> dict[str, Any]:
    run = side.suite.run
    return {"name": side.name, "run": run.id, "run_name": run.name, "state": str(run.state), "subject": side.subject}


def _noticing_json(noticing: Noticing) -> dict[str, Any]:
    costs = {"cases_cost": noticing.cases_cost, "epochs_cost": noticing.epochs_cost}
    told: dict[str, Any] = typed.to_builtins(noticing)
    told = {name: value for name, value in told.items() if name not in costs}
    return told | {f"{name}_usd": None if cost is None else to_usd(cost) for name, cost in costs.items()}


def _subject_json(one: SubjectComparison, most: int | None) -> dict[str, Any]:
    compared = one.comparison
    lists = {name: getattr(compared, name) for name in ("regressions", "improvements", "new")}
    told = replace(compared, **{name: changes[:most] for name, changes in lists.items()})
    found: dict[str, Any] = typed.to_builtins(told)
    found["cases_worse"], found["cases_better"] = found.pop("b"), found.pop("c")
    found["new"] = [{"case": case, "epoch": epoch} for case, epoch in told.new]
    found["counts"] = {name: len(changes) for name, changes in lists.items()}
    found["noticing"] = None if compared.noticing is None else _noticing_json(compared.noticing)
    return {"subject_a": one.before, "subject_b": one.after, **found}
