"""A comparison in Markdown, for a pull request."""

from collections.abc import Iterator, Sequence

from muster.reporting.markdown import in_cell, inline
from muster.statistics.intervals import Interval
from muster.suites.compare.runs import RunComparison, SubjectComparison
from muster.suites.compare.values import Change, Comparison, ComparisonVerdict, counted
from muster.suites.reports.rows import WORDS
from muster.text.words import count, percent

SIGNS = {
    ComparisonVerdict.BETTER: "🟢",
    ComparisonVerdict.SAME: "⚪",
    ComparisonVerdict.NOT_WORSE: "⚪",
    ComparisonVerdict.WORSE: "🔴",
    ComparisonVerdict.UNSURE: "🟡",
}
MAX_CHANGES = 50  # a comment has an end


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
    for change in changes[:MAX_CHANGES]:
        after = WORDS[change.after] if change.after is not None else "missing"
        scores = f"{_score(change.before_score)} → {_score(change.after_score)}"
        yield f"| {in_cell(change.case)} | {change.epoch} | {WORDS[change.before]} | {after} | {scores} |"
    if len(changes) > MAX_CHANGES:
        yield ""
        yield f"… and {len(changes) - MAX_CHANGES:,} more"
    yield ""
    yield "</details>"
