"""Pytest: every failed test and every error is a finding, at the last place of its traceback that is the project's own.

Its last line must agree with what could be read. No test that passed is no success. The table of coverage, when there
is one, gives the coverage.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.verify.findings.answers import MAX_NAME, MAX_TEXT, FindingsAnswer, bounded
from muster.verify.findings.finding import Finding, Severity
from muster.verify.tools.lines import flawed, uncoloured

_TITLE = re.compile(r"_{2,} (?P<title>\S.*?) _{2,}")
_RULER = re.compile(r"={3,} \S.* ={3,}")
_CAPTURED = re.compile(r"-{3,} \S.* -{3,}")
_PLACE = re.compile(r"(?P<file>\S[^\n:]*\.\w{1,8}):(?P<line>\d{1,9}): ?(?:in \S.*|[\w.]*|[\w.]+: .*)")
_NATIVE = re.compile(r' +File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9}), in \S.*')
_SAID = re.compile(r"E {1,7}(?P<said>\S.*)")
_ERROR = re.compile(r"ERROR (?:at (?:setup|teardown) of|collecting) (?P<name>.+)")
_COLLECTED = "ERROR collecting "
_FOREIGN = ("site-packages/", "dist-packages/", "/lib/python", "/importlib/", "<")


@dataclass(slots=True)
class Section:
    """One traceback: whose it is, through which places it goes, and what it says."""

    title: str
    places: list[tuple[str, int]] = field(default_factory=list)
    said: str = ""

    def place(self, file: str) -> tuple[str, int]:
        """Return the last place that is the project's own; else the beginning of the test's file."""
        own = [place for place in self.places if not _is_foreign(place[0])]
        if own:
            return own[-1]
        collected = self.title.removeprefix(_COLLECTED) if self.title.startswith(_COLLECTED) else ""
        return file or collected, 0


class Sections:
    """All tracebacks of an output, each to be taken once."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._named: dict[tuple[str, bool], list[Section]] = {}
        for section in _sections(lines):
            error = _ERROR.fullmatch(section.title)
            name = error["name"] if error else section.title
            self._named.setdefault((name, error is not None), []).append(section)

    def take(self, file: str, name: str, is_error: bool) -> Section | None:
        """Take the traceback of a test, or of a file that could not be collected; of some the one through its file."""
        named = self._named.get((name or file, is_error), [])
        through = (one for one in named if any(path.endswith(file) for path, _ in one.places))
        found = next(through, named[0] if named else None)
        if found is not None:
            named.remove(found)
        return found

    def errors(self) -> Iterator[Section]:
        """Return what is left of errors around tests: their lines in the summary are only there when asked for."""
        return (one for (_, is_error), left in self._named.items() if is_error for one in left)


def _sections(lines: Iterable[str]) -> Iterator[Section]:
    """Cut an output into its tracebacks; what a test wrote stands at the end of its own and is not looked at."""
    current: Section | None = None
    for line in lines:
        if title := _TITLE.fullmatch(line):
            if current is not None:
                yield current
            current = Section(title["title"])
        elif _CAPTURED.fullmatch(line) or _RULER.fullmatch(line):
            if current is not None:
                yield current
            current = None
        elif current is not None:
            _add(current, line)
    if current is not None:
        yield current


def _add(section: Section, line: str) -> None:
    if place := _PLACE.fullmatch(line) or _NATIVE.fullmatch(line):
        section.places.append((place["file"], int(place["line"])))
    elif not section.said and (said := _SAID.fullmatch(line)):
        section.said = said["said"][:MAX_TEXT]


def _is_foreign(path: str) -> bool:
    """Return whether a place is in a library and not in the project."""
    return path.startswith("../") or any(part in path for part in _FOREIGN)


_SUMMARY = re.compile(r"=+ short test summary info =+")
_OUTCOME = re.compile(r"(?P<kind>FAILED|ERROR) (?P<test>\S.*)|SUBFAILED(?P<part>.*?) (?P<whole>[^\s\[(]\S*::.*)")
_SOME = r"\d{1,9} [a-z]{1,20}(?: [a-z]{1,20})?"
_LAST = re.compile(rf"(?:=+ )?(?P<counts>no tests ran|{_SOME}(?:, {_SOME}){{0,12}}) in [\d.:]+s\b.*")
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_TOTAL = re.compile(r"TOTAL\s+(\d{1,12})(?:\s+\d{1,12}){1,4}\s+(\d{1,3}(?:\.\d{1,6})?)%.*")
_INTERRUPTED = re.compile(r"!+ .*(?:Interrupted|stopping after|KeyboardInterrupt).* !+")
_MAX_LINE = 300  # characters of such a line
_NO_TESTS = 5  # the exit code
INTERRUPTED = 2  # the exit code, also when files could not be collected


def parse(stdout: str, stderr: str, exit_code: int) -> FindingsAnswer:
    """Read what pytest wrote."""
    lines = uncoloured(stdout).splitlines()
    counts = _counts(lines)
    if counts is None:
        return flawed("its last line, with the number of tests, is missing", stdout if stdout.strip() else stderr)
    findings = _findings(lines)
    wrong = _flaw(counts, findings, exit_code)
    stopped = next((line for line in reversed(lines) if _INTERRUPTED.fullmatch(line.strip()[:_MAX_LINE])), None)
    if stopped is not None and not wrong:
        wrong = f"it did not run all tests: {stopped.strip('! ')}{_causes(findings)}"
    return flawed(wrong, stdout) if wrong else FindingsAnswer(findings=tuple(findings), coverage=_coverage(lines))


def _causes(findings: list[Finding]) -> str:
    """Return what stopped it: the first error or failure, and how many more there are."""
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
        return f"{len(findings)} failures could be read, but its last line reports {bad}"
    return f"it exited with 0, but its last line reports {bad} failures" if bad and exit_code == 0 else ""


def _findings(lines: list[str]) -> list[Finding]:
    """Return a finding for every line of the summary, and for every error whose line was not asked for."""
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
        rule=bounded(rule, MAX_NAME),
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
