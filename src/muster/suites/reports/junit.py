"""The report as JUnit XML: one test suite for each subject, one test case for each case."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, TextIO

from muster.domain.case import Status
from muster.domain.money import to_usd
from muster.reporting.xml_text import attribute, attributes, text
from muster.suites.reports.rows import CaseRow, CaseRows, kind, reasons
from muster.suites.reports.run import Spoken, SuiteRun
from muster.suites.reports.summary import SubjectLine, SuiteReport
from muster.suites.values.verdict import CaseResult
from muster.text.words import moment, shorten

MAX_ANSWER = 20_000
FAILURES = frozenset({Status.FAILED, Status.FLAKY})
# One that waits is an error here, since JUnit has no word for it and skipped is what nobody will come back to.
ERRORS = frozenset({Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED, Status.WAITING})


async def write_junit(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the report; cases of each subject are collected in a file of their own on the way."""
    with ExitStack() as files:
        parts = {
            line.label: files.enter_context(TemporaryFile("w+", encoding="utf-8", errors="replace"))
            for line in report.subjects
        }
        seconds, spoken = dict.fromkeys(parts, 0.0), Spoken(suite)
        async for row in CaseRows(suite):
            seconds[row.subject] += sum(result.seconds for result in row.results)
            parts[row.subject].writelines(await _case(spoken, row))
        out.writelines(_document(report, parts, seconds))


def _document(report: SuiteReport, parts: Mapping[str, IO[str]], seconds: Mapping[str, float]) -> Iterator[str]:
    flaws = report.run_flaws
    failures, errors = _among(report.counts, FAILURES), _among(report.counts, ERRORS) + bool(flaws)
    numbers = {"tests": report.rows + bool(flaws), "failures": failures, "errors": errors}
    name = {"name": report.run.title}
    total = {"time": f"{sum(seconds.values()):.3f}"}
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes({**name, **numbers, **total})}>\n'
    for line in report.subjects:
        yield from _suite(report, line, parts[line.label], seconds[line.label])
    if flaws:
        yield from _run_case(flaws)
    yield "</testsuites>\n"


def _suite(report: SuiteReport, line: SubjectLine, part: IO[str], seconds: float) -> Iterator[str]:
    facts: dict[str, object] = {
        "name": line.label,
        "tests": sum(line.counts.values()),
        "failures": _among(line.counts, FAILURES),
        "errors": _among(line.counts, ERRORS),
        "skipped": line.counts.get(Status.SKIPPED, 0),
        "time": f"{seconds:.3f}",
        "timestamp": (moment(report.run.started_at) or "")[:19] or None,
    }
    yield f"  <testsuite{attributes(facts)}>\n"
    about = {"run": report.run.id, "judge": report.run.judge, "epochs": report.run.epochs, "model": line.model or None}
    yield from _properties(about, "    ")
    part.seek(0)
    yield from part
    yield "  </testsuite>\n"


def _run_case(flaws: tuple[str, ...]) -> Iterator[str]:
    """Return what is wrong with the whole run as a test case: cases that were never run only count as skipped."""
    yield '  <testsuite name="the run itself" tests="1" failures="0" errors="1" skipped="0" time="0.000">\n'
    yield '    <testcase name="the run was done to its end" classname="muster" time="0.000">\n'
    yield f'      <error type="unfinished" message={attribute(flaws[0])}>{text(" ".join(flaws))}</error>\n'
    yield "    </testcase>\n  </testsuite>\n"


async def _case(spoken: Spoken, row: CaseRow) -> list[str]:
    case, telling = row.case, row.telling
    facts: dict[str, object] = {
        "name": case.id,
        "classname": case.suite,
        "time": f"{sum(result.seconds for result in row.results):.3f}",
        "file": case.file,
        "line": case.line,
    }
    lines = [f"    <testcase{attributes(facts)}>\n", *_properties(_figures(row), "      "), *_outcome(row)]
    if telling is not None and telling.status is not Status.SKIPPED:
        answer = await spoken.answer(telling)
        lines.append(f"      <system-out>{text(_told(telling, answer))}</system-out>\n")
    return [*lines, "    </testcase>\n"]


def _figures(row: CaseRow) -> dict[str, object]:
    return {
        "status": str(row.status),
        "score": None if row.score is None else f"{row.score:.4f}",
        "threshold": None if row.threshold is None else f"{row.threshold:g}",
        "cost_usd": f"{to_usd(row.cost):.6f}",
        "judge_cost_usd": f"{to_usd(row.judge_cost):.6f}" if row.judge_cost else None,
        "evaluator": ",".join(str(evaluator) for evaluator in row.evaluators) or None,
        "tags": ",".join(row.case.tags) or None,
        "file": row.case.file,
        "line": row.case.line,
    }


def _properties(values: Mapping[str, object], margin: str) -> Iterator[str]:
    yield f"{margin}<properties>\n"
    for name, value in values.items():
        if value is not None:
            yield f"{margin}  <property name={attribute(name)} value={attribute(value)}/>\n"
    yield f"{margin}</properties>\n"


def _outcome(row: CaseRow) -> Iterator[str]:
    message = attribute(shorten(row.why, 500))
    if row.status is Status.SKIPPED:
        yield f"      <skipped message={message}/>\n"
    elif row.status is not Status.PASSED:
        element = "failure" if row.status in FAILURES else "error"
        whole = "\n".join(reasons(row.telling)) if row.telling is not None else row.why
        sort = attribute(kind(row.telling, row.status))
        yield f"      <{element} type={sort} message={message}>{text(whole)}</{element}>\n"


def _told(result: CaseResult, answer: str) -> str:
    lines = [shorten(answer, MAX_ANSWER)]
    for item in result.items:
        found = "not judged" if item.score is None else f"{item.score:.2f}"
        lines.append(f"[{item.id}: {found}] {item.rationale}".rstrip())
    return "\n".join(lines)


def _among(counts: Mapping[Status, int], wanted: frozenset[Status]) -> int:
    return sum(number for status, number in counts.items() if status in wanted)
