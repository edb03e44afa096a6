"""What an agent came to over all chunks, and a wave over all agents. Nothing checked is never a success."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from math import fsum

from muster.domain.money import Microdollars
from muster.text.expressions import PART
from muster.text.secrets.redaction import GUESSED
from muster.text.thresholds import ThresholdResult, evaluate, known
from muster.verify.declaration.verification import SECRETS, Kind, Verification, Verifier
from muster.verify.findings.finding import Counts, Examined, Finding, Merged, Severity
from muster.verify.findings.journal import MAX_FINDINGS, AgentReport, Ending, WaveReport
from muster.verify.findings.merging import in_order, merge
from muster.verify.sources.source import Source

MISSING = "missing"  # the code of a chunk about which nothing was said at all
MAX_FAILURES = 20  # that are told
MAX_KEYS = 1_000
_TOLD = 3  # reasons in a sentence

_SOUND = (Ending.PASSED, Ending.IDLE)


def assess(verifier: Verifier, examined: Sequence[Examined], *, chunks: int) -> AgentReport:
    """Return the outcome of an agent; it passes only with a report of every chunk, and when every threshold holds."""
    answered = [one for one in examined if not one.failure]
    whole = len(answered) == len(examined) == chunks
    findings = in_order(_reported(answered))
    rejected = tuple(chain.from_iterable(one.rejected for one in answered))
    # What a checker found is wrong wherever it is; what a model says of lines that it was not shown is not known.
    counted = [*findings, *(one.finding for one in rejected)] if verifier.kind is Kind.COMMAND else findings
    counts = count(counted, len(rejected))
    measures = measure(answered) if whole else Measures()
    held = _held(verifier, figures(counts, measures, len({one.file for one in counted})), whole=whole)
    ending, why = _ending(examined, held, chunks, whole=whole)
    return AgentReport(
        agent=verifier.name,
        wave=verifier.wave,
        ending=ending,
        kind=verifier.kind,
        why=why,
        counts=counts,
        findings=tuple(findings[:MAX_FINDINGS]),
        rejected=rejected[:MAX_FINDINGS],
        score=measures.score,
        parts=measures.parts,
        coverage=measures.coverage,
        thresholds=() if ending is Ending.IDLE else held,
        chunks=chunks,
        answered=len(answered),
        repaired=sum(one.repaired for one in examined),
        failures=_failures(examined, chunks),
        codes=_codes(examined, chunks),
        model=next((one.model for one in examined if one.model), ""),
        seconds=max((one.seconds for one in examined), default=0.0),
        cost=Microdollars(sum(one.cost for one in examined)),
        keys=tuple(islice(chain.from_iterable(one.keys for one in examined), MAX_KEYS)),
    )


def conclude(
    wave: int,
    reports: Sequence[AgentReport],
    thresholds: Sequence[str],
    earlier: Sequence[WaveReport],
    *,
    last: bool,
    started_at: float,
    ended_at: float,
) -> WaveReport:
    """Return the outcome of a wave; overall thresholds count as soon as they can be computed, and at the last wave."""
    merged = merge([(report.agent, report.findings) for report in reports])
    held = _overall(thresholds, [*chain.from_iterable(one.agents for one in earlier), *reports], last=last)
    why = _why(reports, held)
    return WaveReport(
        wave=wave,
        passed=not why,
        agents=tuple(reports),
        merged=merged,
        counts=_counts(merged, reports),
        thresholds=held,
        why=why,
        started_at=started_at,
        ended_at=ended_at,
    )


def _reported(examined: Sequence[Examined]) -> list[Finding]:
    """Return all findings of an agent; what two calls say word for word of lines that both were shown is there once."""
    most: Counter[Finding] = Counter()
    for one in examined:
        most |= Counter(one.findings)  # of each the most that a single call reports
    return list(most.elements())


def _held(verifier: Verifier, values: dict[str, float | None], *, whole: bool) -> tuple[ThresholdResult, ...]:
    if whole:
        return tuple(evaluate(expression, values) for expression in verifier.thresholds)
    why = "some reports are missing"
    return tuple(ThresholdResult(expression=expression, holds=False, why=why) for expression in verifier.thresholds)


def _ending(
    examined: Sequence[Examined], held: Sequence[ThresholdResult], chunks: int, *, whole: bool
) -> tuple[Ending, str]:
    if not chunks and not examined:
        return Ending.IDLE, "no file matches"
    if not whole:
        return Ending.BROKEN, _broken(examined, chunks)
    why = _not_held(held)
    return (Ending.FAILED, why) if why else (Ending.PASSED, "")


def _broken(examined: Sequence[Examined], chunks: int) -> str:
    """Return for how much there is no report, and why."""
    answered = sum(not one.failure for one in examined)
    failures = _failures(examined, chunks)
    if len(examined) > chunks:
        return f"there are {len(examined)} reports instead of {chunks}"
    if chunks == 1:
        return f"no report: {failures[0]}"
    more = f" (and {len(failures) - 1} other reasons)" if len(failures) > 1 else ""
    return f"no report for {chunks - answered} of {chunks} chunks: {failures[0]}{more}"


def _not_held(held: Sequence[ThresholdResult]) -> str:
    broken = [f"{one.why}, required is {one.expression}" for one in held if not one.holds]
    return _listed(broken)


def _listed(reasons: Sequence[str]) -> str:
    more = [f"and {len(reasons) - _TOLD} more"] if len(reasons) > _TOLD else []
    return "; ".join([*reasons[:_TOLD], *more])


def _failures(examined: Sequence[Examined], chunks: int) -> tuple[str, ...]:
    said = dict.fromkeys(one.failure for one in examined if one.failure)
    missing = ["no answer"] if len(examined) < chunks else []
    return tuple([*said, *missing][:MAX_FAILURES])


def _codes(examined: Sequence[Examined], chunks: int) -> dict[str, int]:
    counted = Counter(one.code or "failed" for one in examined if one.failure)
    if len(examined) < chunks:
        counted[MISSING] += chunks - len(examined)
    return dict(sorted(counted.items()))


def _counts(merged: Iterable[Merged], reports: Sequence[AgentReport]) -> Counts:
    """Count merged findings, and those that are so many that they are not kept."""
    found = count((one.finding for one in merged), sum(report.counts.rejected for report in reports))
    for report in reports:
        found = add(found, less(report.counts, count(report.findings, report.counts.rejected)))
    return found


def _overall(thresholds: Sequence[str], reports: Sequence[AgentReport], *, last: bool) -> tuple[ThresholdResult, ...]:
    """Return which overall thresholds hold; what is not known yet is left to later waves, if there are any."""
    merged = merge([(report.agent, report.findings) for report in reports])
    names = dict.fromkeys(name for report in reports for name in report.parts)
    measures = Measures(
        score=lowest([report.score for report in reports]),
        parts={name: min(report.parts[name] for report in reports if name in report.parts) for name in names},
        coverage=lowest([report.coverage for report in reports]),
    )
    values = figures(_counts(merged, reports), measures, len({one.finding.file for one in merged}))
    values |= _as_found(merged, values)
    return tuple(evaluate(expression, values) for expression in thresholds if last or known(expression, values))


def _as_found(merged: Iterable[Merged], values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Count a merged finding under every severity that somebody gave it: a worse word does not hide another."""
    also = Counter(severity for one in merged for severity in _lesser(one))
    return {severity: (values[severity] or 0) + also[severity] for severity in also}


def _lesser(merged: Merged) -> set[Severity]:
    return {origin.severity for origin in merged.origins} - {merged.finding.severity}


def _why(reports: Sequence[AgentReport], held: Sequence[ThresholdResult]) -> str:
    """Return why a wave did not pass; nothing when it did.

    One in which no file is for anybody stands in nobody's way; that somebody looked at each file is asked of the whole.
    """
    reasons = [f"{report.agent}: {report.why}" for report in reports if report.ending not in _SOUND]
    overall = _not_held(held)
    if overall:
        reasons.append(f"over all agents, {overall}")
    return _listed(reasons)


def count(findings: Iterable[Finding], rejected: int = 0) -> Counts:
    """Count findings."""
    counted = Counter(finding.severity for finding in findings)
    return Counts(
        critical=counted[Severity.CRITICAL],
        high=counted[Severity.HIGH],
        medium=counted[Severity.MEDIUM],
        low=counted[Severity.LOW],
        rejected=rejected,
    )


def add(one: Counts, other: Counts) -> Counts:
    """Add up two counts."""
    return Counts(
        critical=one.critical + other.critical,
        high=one.high + other.high,
        medium=one.medium + other.medium,
        low=one.low + other.low,
        rejected=one.rejected + other.rejected,
    )


def less(one: Counts, other: Counts) -> Counts:
    """Return what is left of a count when another is taken out of it; never less than nothing."""
    return Counts(
        critical=max(0, one.critical - other.critical),
        high=max(0, one.high - other.high),
        medium=max(0, one.medium - other.medium),
        low=max(0, one.low - other.low),
        rejected=max(0, one.rejected - other.rejected),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What is measured besides findings."""

    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    coverage: float | None = None


def measure(examined: Sequence[Examined]) -> Measures:
    """Put the measures of all chunks together; one that some chunk does not have is not known of the whole."""
    if not examined:
        return Measures()
    scores = [one.score for one in examined]
    return Measures(
        score=None if None in scores else lowest(scores),
        parts=_parts([one.parts for one in examined]),
        coverage=_coverage(examined),
    )


def lowest(values: Sequence[float | None]) -> float | None:
    """Return the lowest of the values that are known."""
    return min((value for value in values if value is not None), default=None)


def figures(counts: Counts, measures: Measures, files: int) -> dict[str, float | None]:
    """Return all figures by the names that thresholds know; `files` are those in which something was found."""
    return {
        "total": counts.total,
        "critical": counts.critical,
        "high": counts.high,
        "medium": counts.medium,
        "low": counts.low,
        "rejected": counts.rejected,
        "files": files,
        "score": measures.score,
        "coverage": measures.coverage,
        **{f"{PART}{name}": value for name, value in measures.parts.items()},
    }


def _parts(given: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = [name for name in given[0] if all(name in parts for parts in given)]
    return {name: min(parts[name] for parts in given) for name in names}


def _coverage(examined: Sequence[Examined]) -> float | None:
    """Return the mean of all chunks, each weighed by its lines."""
    known = [(one.coverage, one.lines) for one in examined if one.coverage is not None]
    if len(known) < len(examined):
        return None
    weights = [lines for _, lines in known] if any(lines for _, lines in known) else [1] * len(known)
    return fsum(value * weight for (value, _), weight in zip(known, weights, strict=True)) / sum(weights)


THRESHOLDS = ("critical == 0", "high == 0")
_HARDCODED = "CWE-798"


def check_secrets(sources: Sequence[Source], spec: Verification, *, wave: int) -> AgentReport | None:
    """Return the report about secrets in files, also in those that no agent sees; None when all are allowed."""
    seen = ((source.path, secret.line, secret.kind) for source in sources for secret in source.secrets)
    places = {(one.file, one.line, one.kind) for one in spec.allow_secrets}
    found = (*seen, *((one.file, one.line, one.kind) for one in spec.unseen_secrets))
    findings = tuple(_finding(*one, named_fail=spec.fail_named_secrets) for one in found if one not in places)
    if not findings:
        return None
    lines = sum(len(source.lines) for source in sources)
    verifier = Verifier(name=SECRETS, wave=wave, kind=Kind.COMMAND, thresholds=THRESHOLDS)
    return assess(verifier, [Examined(findings=findings, lines=lines)], chunks=1)


def has_failing_secret(spec: Verification) -> bool:
    """Return whether a secret in a file that no agent sees is a finding that fails, even if no agent is asked."""
    places = {(one.file, one.line, one.kind) for one in spec.allow_secrets}
    fails = (one for one in spec.unseen_secrets if spec.fail_named_secrets or one.kind not in GUESSED)
    return any((one.file, one.line, one.kind) not in places for one in fails)


def _finding(file: str, line: int, kind: str, *, named_fail: bool) -> Finding:
    guessed = kind in GUESSED
    return Finding(
        file=file,
        line=line,
        end_line=line,
        severity=Severity.LOW if guessed and not named_fail else Severity.HIGH,
        finding=_words(kind, guessed=guessed),
        fix="Take it out, replace it where it is valid, and read it from the environment or a store of secrets. "
        f"If it is not a secret: muster verify allow-secret {file}:{line}",
        # Without a weakness a guess keeps a rule of its own, which no viewer shows as bad as a known form.
        cwe="" if guessed else _HARDCODED,
        rule=kind,
    )


def _words(kind: str, *, guessed: bool) -> str:
    if guessed:
        return f"Something that looks like a secret stands in the code ({kind}): judged by the name beside it."
    return f"A secret stands in the code ({kind}): judged by its form."
