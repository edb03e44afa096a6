"""What a reply says: findings and measures, read strictly. Whether the places exist is another question."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.checks.findings.shape import accepted
from muster.checks.findings.summary import summary_flaw
from muster.checks.findings.wording import LONGEST_NAME, LONGEST_PATH, bounded, cwe_of, replacement_of, severity_of
from muster.domain.canonical import Json
from muster.domain.finding import Finding, Severity
from muster.domain.verification import Shape
from muster.shapes.json_limits import flaw_of
from muster.shapes.schema import flaw as schema_flaw
from muster.shapes.strict_json import read_object

MOST = 1_000  # findings in one reply
_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a reply says; with a flaw nothing else counts."""

    findings: tuple[Finding, ...] = ()
    score: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    coverage: float | None = None
    flaw: str = ""


def read_text(text: str, shape: Shape | None, own: Mapping[str, Json] | None = None) -> Answer:
    """Read a text that is to be one JSON object; `own` is the user's schema, which it must fit too."""
    found = read_object(text)
    return Answer(flaw=found) if isinstance(found, str) else read_value(found, shape, own)


def read_value(value: Json, shape: Shape | None, own: Mapping[str, Json] | None = None) -> Answer:
    """Read a reply that is data."""
    if not isinstance(value, Mapping):
        return Answer(flaw="it is JSON, but no object")
    said = _present(value)
    flaw: str | None = flaw_of(dict(value)) or _list_flaw(said.get("findings"))
    if not flaw:
        said["findings"] = [_present(one) for one in said["findings"]]
        flaw = schema_flaw(said, accepted(shape, own)) or _severity_flaw(said["findings"])
    if not flaw and own is not None:
        flaw = schema_flaw(dict(value), own)
    return Answer(flaw=f"the JSON does not fit: {flaw}") if flaw else _answered(said)


def _present(value: Json) -> Json:
    """Leave out what is null."""
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, Mapping) else value


def _list_flaw(findings: Json) -> str:
    if not isinstance(findings, list):
        return 'it has no list under the key "findings"'
    return f"it has {len(findings):,} findings; give the {MOST:,} that matter most" if len(findings) > MOST else ""


def _severity_flaw(findings: list[Mapping[str, Json]]) -> str:
    wrong = next((one["severity"] for one in findings if severity_of(one["severity"]) is None), None)
    return "" if wrong is None else f"{wrong[:_SHOWN]!r} is no severity; there are {', '.join(Severity)}"


def _answered(said: Mapping[str, Json]) -> Answer:
    findings = tuple(_finding(one) for one in said["findings"])
    parts = said.get("parts") or {}
    flaw = summary_flaw(said.get("summary"), findings) or _parts_flaw(parts)
    if flaw:
        return Answer(flaw=flaw)
    return Answer(
        findings=findings,
        score=_number(said.get("score")),
        parts=_parts(parts),
        coverage=_number(said.get("coverage")),
    )


def _parts_flaw(parts: Json) -> str:
    counted = Counter(one["name"].strip() for one in parts) if isinstance(parts, list) else Counter()
    twice = [name[:_SHOWN] for name, often in counted.items() if often > 1]
    return f"a part of the score is there twice: {', '.join(twice)}" if twice else ""


def _parts(parts: Json) -> dict[str, float]:
    pairs = ((one["name"], one["score"]) for one in parts) if isinstance(parts, list) else parts.items()
    return {bounded(name, LONGEST_NAME): float(score) for name, score in pairs if score is not None}


def _number(value: Json) -> float | None:
    return None if value is None else float(value)


def _finding(said: Mapping[str, Json]) -> Finding:
    line = int(said["line"])
    return Finding(
        file=said["file"][:LONGEST_PATH],  # as it is: it is to be compared
        line=line,
        end_line=int(said.get("end_line", line)),
        severity=severity_of(said["severity"]) or Severity.CRITICAL,  # the other words were refused before
        finding=bounded(said["finding"]),
        fix=bounded(said.get("fix", "")),
        cwe=cwe_of(said.get("cwe", "")),
        confidence=_number(said.get("confidence")),
        rule=bounded(said.get("rule", ""), LONGEST_NAME),
        replacement=replacement_of(said.get("replacement")),
    )
