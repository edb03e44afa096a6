"""The tracebacks in the output of pytest, in every style that it writes them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.checks.findings.wording import LONGEST_TEXT

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
        """Give the last place that is the project's own; else the beginning of the test's file."""
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
        """Give what is left of errors around tests: their lines in the summary are only there when asked for."""
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
        section.said = said["said"][:LONGEST_TEXT]


def _is_foreign(path: str) -> bool:
    """Whether a place is in a library and not in the project."""
    return path.startswith("../") or any(part in path for part in _FOREIGN)
