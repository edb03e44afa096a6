"""Names of findings that stay from run to run, although lines move and models choose other words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256

from muster.domain.finding import Finding, Merged
from muster.domain.source import Source
from muster.reports.waves.cleaning import Cleaner
from muster.reports.waves.rules import rule_id
from muster.reports.waves.run import WavesRun

Place = tuple[str, int, int]


async def fingerprints(waves: WavesRun, findings: Sequence[Merged]) -> tuple[str, ...]:
    """Name findings by their file, their rule and the code at their lines; the same again is counted from above."""
    shown = await _code(waves, findings)
    seen: Counter[str] = Counter()
    named: dict[int, str] = {}
    for place in sorted(range(len(findings)), key=lambda index: _place(findings[index].finding)):
        base = _spell(findings[place], shown)
        named[place] = sha256(f"{base}\x00{seen[base]}".encode("utf-8", "replace")).hexdigest()
        seen[base] += 1
    return tuple(named[place] for place in range(len(findings)))


def _spell(merged: Merged, shown: Mapping[Place, str]) -> str:
    # Without the code at its lines, as in a file that was not read in, the words must do.
    code = shown.get(_place(merged.finding)) or " ".join(merged.finding.finding.split())
    return "\x00".join((merged.finding.file, rule_id(merged), code))


async def _code(waves: WavesRun, findings: Sequence[Merged]) -> dict[Place, str]:
    """Read the code at the lines of findings, without its spaces."""
    wanted: dict[str, set[Place]] = {}
    for one in findings:
        wanted.setdefault(one.finding.file, set()).add(_place(one.finding))
    found: dict[Place, str] = {}
    cleaner = Cleaner()  # findings were cleaned as well
    async for source in waves.sources():
        places = wanted.get(cleaner.text(source.path))
        if places:
            found |= {place: _between(source, place) for place in places}
    return found


def _between(source: Source, place: Place) -> str:
    _, first, last = place
    return " ".join(" ".join(source.lines[first - 1 : last]).split())


def _place(finding: Finding) -> Place:
    return finding.file, finding.line, finding.end_line
