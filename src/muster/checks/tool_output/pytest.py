"""Pytest: every failed test and every error is a finding, at the last place of its traceback that is the project's own.

Its last line must agree with what could be read. No test that passed is no success. The table of coverage, when there
is one, gives the coverage.
"""

import re
from collections import Counter

from muster.checks.findings.wording import LONGEST_NAME, bounded
from muster.checks.tool_output.parsed import Parsed, flawed, uncoloured
from muster.checks.tool_output.pytest_sections import Section, Sections
from muster.domain.finding import Finding, Severity

_SUMMARY = re.compile(r"=+ short test summary info =+")
_OUTCOME = re.compile(r"(?P<kind>FAILED|ERROR) (?P<test>\S.*)|SUBFAILED(?P<part>.*?) (?P<whole>[^\s\[(]\S*::.*)")
_SOME = r"\d{1,9} [a-z]{1,20}(?: [a-z]{1,20})?"
_LAST = re.compile(rf"(?:=+ )?(?P<counts>no tests ran|{_SOME}(?:, {_SOME}){{0,12}}) in [\d.:]+s\b.*")
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_TOTAL = re.compile(r"TOTAL\s+(\d{1,12})(?:\s+\d{1,12}){1,4}\s+(\d{1,3}(?:\.\d{1,6})?)%.*")
_INTERRUPTED = re.compile(r"!+ .*(?:Interrupted|stopping after|KeyboardInterrupt).* !+")
_WIDEST = 300  # characters of such a line
_NO_TESTS = 5  # the exit code


def parse(stdout: str, stderr: str, exit_code: int) -> Parsed:
    """Read what pytest wrote."""
    lines = uncoloured(stdout).splitlines()
    counts = _counts(lines)
    if counts is None:
        return flawed("its last line, with the number of tests, is not there", stdout)
    findings = _findings(lines)
    wrong = _flaw(counts, findings, exit_code)
    stopped = next((line for line in reversed(lines) if _INTERRUPTED.fullmatch(line.strip()[:_WIDEST])), None)
    if stopped is not None and not wrong:
        wrong = f"it did not run all tests: {stopped.strip('! ')}{_causes(findings)}"
    return flawed(wrong, stdout) if wrong else Parsed(findings=tuple(findings), coverage=_coverage(lines))


def _causes(findings: list[Finding]) -> str:
    """Say what stopped it: the first error or failure, and how many more there are."""
    if not findings:
        return ""
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f": {findings[0].finding}{more}"


def _counts(lines: list[str]) -> Counter[str] | None:
    """Read the last line: how many tests there were of each outcome."""
    for line in reversed(lines):
        if found := _LAST.fullmatch(line.strip()):
            counted: Counter[str] = Counter()
            for number, word in _COUNT.findall(found["counts"]):
                counted[word.removesuffix("s") if word == "errors" else word] += int(number)
            return counted
    return None


def _flaw(counts: Counter[str], findings: list[Finding], exit_code: int) -> str:
    bad = counts["failed"] + counts["error"]
    if exit_code == _NO_TESTS or not counts:
        return "it ran no test"
    if not counts["passed"] and not bad:
        return "no test passed"
    if len(findings) != bad:
        return f"{len(findings)} failures could be read, and its last line says {bad}"
    return f"it exited with 0, and its last line says that {bad} failed" if bad and exit_code == 0 else ""


def _findings(lines: list[str]) -> list[Finding]:
    """Give a finding for every line of the summary, and for every error whose line was not asked for."""
    start = max((index for index, line in enumerate(lines) if _SUMMARY.fullmatch(line.strip())), default=len(lines))
    sections = Sections(lines[:start])
    outcomes = [found for line in lines[start:] if (found := _OUTCOME.fullmatch(line.strip()))]
    findings = [_failure(found, sections) for found in outcomes]
    return findings + [_from_section(section) for section in sections.errors()]


def _failure(outcome: re.Match[str], sections: Sections) -> Finding:
    test, said = _split(outcome["test"] or outcome["whole"])
    file, _, inner = test.partition("::")
    name = f"{inner.replace('::', '.')} {outcome['part'] or ''}".strip()
    section = sections.take(file, name, outcome["kind"] == "ERROR")
    place = section.place(file) if section is not None else (file, 0)
    why = (section.said if section is not None else "") or said or "it failed"
    return _finding(place, f"{test}: {why}", test)


def _from_section(section: Section) -> Finding:
    return _finding(section.place(""), f"{section.title}: {section.said or 'it failed'}", section.title)


def _finding(place: tuple[str, int], said: str, rule: str) -> Finding:
    file, line = place
    return Finding(
        file=file,
        line=line,
        end_line=line,
        severity=Severity.HIGH,
        finding=bounded(said),
        rule=bounded(rule, LONGEST_NAME),
    )


def _split(text: str) -> tuple[str, str]:
    """Part the name of a test from what is said; a name with parameters may hold the sign between them."""
    head = text.partition(" - ")[0]
    if "[" in head and not head.endswith("]"):
        name, bracket, said = text.partition("] - ")
        return (f"{name}]", said) if bracket else (text, "")
    return head, text[len(head) + 3 :]


def _coverage(lines: list[str]) -> float | None:
    """Read the last total of a table of coverage; of nothing, everything is no coverage."""
    found = [total for line in lines if (total := _TOTAL.fullmatch(line.strip()))]
    if not found or int(found[-1][1]) == 0:
        return None
    percent = float(found[-1][2])
    return percent if percent <= 100 else None
