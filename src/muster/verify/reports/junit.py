"""The report as JUnit XML: one test suite for each wave, one test case for each threshold of each agent."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

from muster.reporting.xml_text import attribute, attributes, text
from muster.text.thresholds import ThresholdResult
from muster.text.words import moment, one_line, shorten
from muster.verify.findings.finding import Finding
from muster.verify.findings.journal import AgentReport, Ending, WaveReport
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import VerifyReport, fine, looked

MAX_OUTPUT = 20_000
MAX_LISTED = 200  # findings in the output of one agent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One test case; `tag` is empty for one that passed."""

    name: str
    agent: str
    tag: str = ""
    kind: str = ""
    why: str = ""
    seconds: float = 0.0
    output: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """One test suite."""

    name: str
    cases: tuple[_Case, ...]
    at: float | None = None

    def number(self, tag: str) -> int:
        return sum(case.tag == tag for case in self.cases)


async def write_junit(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the report."""
    suites = [*(_wave(wave) for wave in report.waves), *_rest(report), *_whole(report)]
    numbers = {
        "name": report.run.title,
        "tests": sum(len(suite.cases) for suite in suites),
        "failures": sum(suite.number("failure") for suite in suites),
        "errors": sum(suite.number("error") for suite in suites),
        "time": f"{report.run.seconds or 0.0:.3f}",
    }
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attributes(numbers)}>\n')
    for suite in suites:
        out.writelines(_spelled(suite))
    out.write("</testsuites>\n")


def _wave(wave: WaveReport) -> _Suite:
    cases = [case for agent in wave.agents for case in _cases(agent)]
    overall = [_held("all agents", held) for held in wave.thresholds]
    if not wave.passed and all(fine(agent) for agent in wave.agents) and all(held.holds for held in wave.thresholds):
        overall.append(_Case(name="the wave passed", agent="all agents", tag="failure", kind="wave", why=wave.why))
    # One threshold over all can be open until the last wave; a wave that passed has not failed by it.
    shown = [case for case in overall if not (wave.passed and case.tag)]
    return _Suite(name=f"wave {wave.wave}", cases=(*cases, *shown), at=wave.started_at)


def _cases(agent: AgentReport) -> Iterator[_Case]:
    """Yield the report itself as a case, and each threshold as another."""
    name, seconds, output = "looked at every file", agent.seconds, _findings(agent)
    if agent.ending is Ending.IDLE:
        yield _Case(name=name, agent=agent.agent, tag="skipped", why="no file matches")
    elif looked(agent):
        yield _Case(name=name, agent=agent.agent, seconds=seconds, output=output)
    else:
        why = agent.why or "; ".join(agent.failures)
        yield _Case(name=name, agent=agent.agent, tag="error", kind="broken", why=why, seconds=seconds, output=output)
    for held in agent.thresholds:
        yield _held(agent.agent, held)
    if looked(agent) and not fine(agent) and all(held.holds for held in agent.thresholds):
        yield _Case(name="passed", agent=agent.agent, tag="failure", kind=str(agent.ending), why=agent.why)


def _held(agent: str, held: ThresholdResult) -> _Case:
    if held.holds:
        return _Case(name=held.expression, agent=agent)
    return _Case(name=held.expression, agent=agent, tag="failure", kind="threshold", why=held.why)


def _rest(report: VerifyReport) -> Iterator[_Suite]:
    """Yield agents of which there is no report: skipped where their wave was never started."""
    for wave in dict.fromkeys(one.wave for one in report.absent):
        tag = "skipped" if wave in report.not_started else "error"
        names = [one.agent for one in report.absent if one.wave == wave]
        cases = [_Case(name="looked at every file", agent=name, tag=tag, why="no report") for name in names]
        yield _Suite(name=f"wave {wave} without a report", cases=tuple(cases))


def _whole(report: VerifyReport) -> Iterator[_Suite]:
    """Return the verdict as a test case: what was never started only counts as skipped."""
    why = "" if report.ok else " ".join(f"{flaw}." for flaw in report.flaws())
    tag = "" if report.ok else "failure"
    case = _Case(name="everything was verified and passed", agent="muster", tag=tag, kind="verdict", why=why)
    yield _Suite(name="the verification itself", cases=(case,))


def _findings(agent: AgentReport) -> str:
    found = [_told(one) for one in agent.findings[:MAX_LISTED]]
    found += [f"rejected, {one_line(one.why, 200)}: {_told(one.finding)}" for one in agent.rejected[:MAX_LISTED]]
    return shorten("\n".join(found), MAX_OUTPUT)


def _told(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}: {finding.severity}: {one_line(finding.finding, 500)}"


def _spelled(suite: _Suite) -> Iterator[str]:
    facts: dict[str, object] = {
        "name": suite.name,
        "tests": len(suite.cases),
        "failures": suite.number("failure"),
        "errors": suite.number("error"),
        "skipped": suite.number("skipped"),
        "time": f"{max((case.seconds for case in suite.cases), default=0.0):.3f}",
        "timestamp": (moment(suite.at) or "")[:19] or None,
    }
    yield f"  <testsuite{attributes(facts)}>\n"
    for case in suite.cases:
        yield from _case(case)
    yield "  </testsuite>\n"


def _case(case: _Case) -> Iterator[str]:
    facts: dict[str, object] = {"name": case.name, "classname": case.agent, "time": f"{case.seconds:.3f}"}
    yield f"    <testcase{attributes(facts)}>\n"
    if case.tag == "skipped":
        yield f"      <skipped message={attribute(one_line(case.why, 500))}/>\n"
    elif case.tag:
        about = f"type={attribute(case.kind)} message={attribute(one_line(case.why, 500))}"
        yield f"      <{case.tag} {about}>{text(shorten(case.why, MAX_OUTPUT))}</{case.tag}>\n"
    if case.output:
        yield f"      <system-out>{text(case.output)}</system-out>\n"
    yield "    </testcase>\n"
