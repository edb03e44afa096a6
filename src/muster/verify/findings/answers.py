"""What a reply says: findings and measures, read strictly. Whether the places exist is another question."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.domain.canonical import Json, JsonObject
from muster.text.json_documents import flaw_of, read_object
from muster.text.schemas.json_schema import flaw as schema_flaw
from muster.verify.declaration.verification import Shape
from muster.verify.findings.finding import Finding, Severity

MAX_FINDINGS = 1_000  # findings in one reply
_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsAnswer:
    """What a reply or a checker says, with paths as it spells them; with a flaw nothing else counts.

    Line 0 of a finding stands for a whole file.
    """

    findings: tuple[Finding, ...] = ()
    score: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    coverage: float | None = None
    flaw: str = ""


def read_text(text: str, shape: Shape | None, own: Mapping[str, Json] | None = None) -> FindingsAnswer:
    """Read a text that is to be one JSON object; `own` is the user's schema, which it must fit too."""
    found = read_object(text)
    return FindingsAnswer(flaw=found) if isinstance(found, str) else read_value(found, shape, own)


def read_value(value: Json, shape: Shape | None, own: Mapping[str, Json] | None = None) -> FindingsAnswer:
    """Read a reply that is data."""
    if not isinstance(value, Mapping):
        return FindingsAnswer(flaw="it is JSON, but no object")
    said = _present(value)
    flaw: str | None = flaw_of(dict(value)) or _list_flaw(said.get("findings"))
    if not flaw:
        said["findings"] = [_present(one) for one in said["findings"]]
        flaw = schema_flaw(said, accepted(shape, own)) or _severity_flaw(said["findings"])
    if not flaw and own is not None:
        flaw = schema_flaw(dict(value), own)
    return FindingsAnswer(flaw=f"the JSON does not fit: {flaw}") if flaw else _answered(said)


def _present(value: Json) -> Any:
    """Leave out what is null."""
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, Mapping) else value


def _list_flaw(findings: Json) -> str:
    if not isinstance(findings, list):
        return 'it has no list under the key "findings"'
    return (
        f"it has {len(findings):,} findings; give the {MAX_FINDINGS:,} that matter most"
        if len(findings) > MAX_FINDINGS
        else ""
    )


def _severity_flaw(findings: list[Mapping[str, Any]]) -> str:
    wrong = next((one["severity"] for one in findings if severity_of(one["severity"]) is None), None)
    return "" if wrong is None else f"{wrong[:_SHOWN]!r} is no severity; there are {', '.join(Severity)}"


def _answered(said: Mapping[str, Any]) -> FindingsAnswer:
    findings = tuple(_finding(one) for one in said["findings"])
    parts = said.get("parts") or {}
    flaw = summary_flaw(said.get("summary"), findings) or _parts_flaw(parts)
    if flaw:
        return FindingsAnswer(flaw=flaw)
    return FindingsAnswer(
        findings=findings,
        score=_number(said.get("score")),
        parts=_parts(parts),
        coverage=_number(said.get("coverage")),
    )


def _parts_flaw(parts: Json) -> str:
    counted = Counter(one["name"].strip() for one in parts) if isinstance(parts, list) else Counter()
    twice = [name[:_SHOWN] for name, often in counted.items() if often > 1]
    return f"a part of the score is there twice: {', '.join(twice)}" if twice else ""


def _parts(parts: Any) -> dict[str, float]:
    pairs = ((one["name"], one["score"]) for one in parts) if isinstance(parts, list) else parts.items()
    return {bounded(name, MAX_NAME): float(score) for name, score in pairs if score is not None}


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _finding(said: Mapping[str, Any]) -> Finding:
    line = int(said["line"])
    return Finding(
        file=said["file"][:MAX_PATH],  # as it is: it is to be compared
        line=line,
        end_line=int(said.get("end_line", line)),
        severity=severity_of(said["severity"]) or Severity.CRITICAL,  # the other words were refused before
        finding=bounded(said["finding"]),
        fix=bounded(said.get("fix", "")),
        cwe=cwe_of(said.get("cwe", "")),
        confidence=_number(said.get("confidence")),
        rule=bounded(said.get("rule", ""), MAX_NAME),
        replacement=replacement_of(said.get("replacement")),
    )


MAX_PARTS = 50

_TEXT: dict[str, Json] = {"type": "string"}
_NUMBER: dict[str, Json] = {"type": "number"}
_INTEGER: dict[str, Json] = {"type": "integer"}

FINDING: dict[str, Json] = {
    "type": "object",
    "properties": {
        "file": _TEXT,
        "line": _INTEGER,
        "end_line": _INTEGER,
        "severity": _TEXT,
        "finding": {"type": "string", "pattern": r"\S"},
        "fix": _TEXT,
        "cwe": {"type": ["string", "integer"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "rule": _TEXT,
        "replacement": _TEXT,
    },
    "required": ["file", "line", "severity", "finding"],
    "additionalProperties": False,
}
COUNTS = ("total", "critical", "high", "medium", "low")
SUMMARY: dict[str, Json] = {
    "type": ["object", "string"],
    "properties": {name: {"type": ["integer", "null"]} for name in COUNTS},
    "additionalProperties": False,
}
_TEN: dict[str, Json] = {"type": "number", "minimum": 0, "maximum": 10}
MEASURES: dict[str, dict[str, Json]] = {
    "score": _TEN,
    # With names as keys, or as a list: a strict schema knows no object whose keys are not named in it.
    "parts": {
        "type": ["object", "array"],
        "additionalProperties": {"type": ["number", "null"], "minimum": 0, "maximum": 10},
        "maxProperties": MAX_PARTS,
        "items": {
            "type": "object",
            "properties": {"name": {"type": "string", "pattern": r"\S"}, "score": _TEN},
            "required": ["name", "score"],
            "additionalProperties": False,
        },
        "maxItems": MAX_PARTS,
    },
    "coverage": {"type": "number", "minimum": 0, "maximum": 100},
}
_OF_SHAPE: dict[Shape, tuple[str, ...]] = {
    Shape.FINDINGS: (),
    Shape.REVIEW: ("score", "parts"),
    Shape.TESTS: ("coverage",),
}
_REQUIRED = {Shape.FINDINGS: (), Shape.REVIEW: ("score",), Shape.TESTS: ("coverage",)}


def measures_of(shape: Shape) -> tuple[str, ...]:
    """Name what is given besides findings."""
    return _OF_SHAPE[shape]


def accepted(shape: Shape | None, own: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Return the schema that a reply must fit; None: of a checker, which may give every measure and must give none."""
    extra = extra_names(own)
    allowed = MEASURES if shape is None or _is_open(own) else (*_OF_SHAPE[shape], *extra)
    required = () if shape is None else _REQUIRED[shape]
    ours: JsonObject = {"findings": {"type": "array", "items": FINDING}, "summary": SUMMARY}
    # What counts is checked by us, whoever allowed it.
    ours |= {name: schema for name, schema in MEASURES.items() if name in allowed}
    return {
        "type": "object",
        "properties": {**dict.fromkeys(extra, True), **ours},
        "required": ["findings", *required],
        "additionalProperties": _is_open(own),
    }


def extra_names(own: Mapping[str, Json] | None) -> tuple[str, ...]:
    """Name the keys that the user's own schema speaks of."""
    given = own or {}
    properties, required = given.get("properties"), given.get("required")
    named = list(properties) if isinstance(properties, Mapping) else []
    named += required if isinstance(required, list) else []
    return tuple(dict.fromkeys(str(name) for name in named))


def _is_open(own: Mapping[str, Json] | None) -> bool:
    """Return whether the user's own schema says outright that there may be other keys; silence does not count."""
    extra = (own or {}).get("additionalProperties", False)
    return extra is True or isinstance(extra, Mapping)


_MAX_STATEMENT = 300  # characters of a text that says so
_SUMMARY_QUOTED = 80

_KIND = (
    r"(?:critical|high|medium|low|severe|serious|major|minor|significant|security|style|type|new|other|further)"
    r"(?:[ -](?:severity|priority|risk))?"
)
# Never "and", and a comma only before an "or": in "no low, critical issues found" something was found.
_KINDS = rf"{_KIND}(?:(?:, {_KIND})*,? n?or {_KIND}|(?:/{_KIND})+)?"
_NOUN = (
    r"(?:issues?|problems?|findings?|vulnerabilit(?:y|ies)|bugs?|defects?|errors?|violations?|flaws?|warnings?"
    r"|weakness(?:es)?|concerns?|mistakes?)"
)
_NOUNS = rf"{_NOUN}(?: n?or {_NOUN})?"
_NONE = rf"(?:no|0|zero) (?:{_KINDS}|(?:{_KINDS} )?{_NOUNS})"
_SEEN = r"(?:found|detected|identified|reported|seen|present)"
_WHERE = r"(?: (?:in|with) (?:the|this|these) (?:(?:given|shown|provided) )?(?:code|files?|chunk|changes?))?"
_SENTENCE = re.compile(
    rf"(?:there (?:are|is|were|was) |(?:i )?(?:found|see|saw|detected) )?{_NONE}(?:, (?:and )?{_NONE})*"
    rf"(?: (?:(?:were|was|are|is|have been|has been) )?{_SEEN})?{_WHERE}"
    rf"|nothing(?: (?:was )?{_SEEN}| to report| to fix)?{_WHERE}"
    rf"|none(?: (?:were |was )?{_SEEN})?{_WHERE}"
    r"|(?:(?:the|this) code |it |everything |all )?(?:is |looks )?(?:clean|ok|okay|good|fine)"
    r"|lgtm"
)
_ENDS = re.compile(r"[.!;]")


def summary_flaw(summary: Json, findings: Sequence[Finding]) -> str:
    """Return how a summary disagrees with the findings; nothing when it does not."""
    if isinstance(summary, Mapping):
        return _counts_flaw(summary, findings)
    return speaks_flaw(summary, findings) if isinstance(summary, str) else ""


def speaks_flaw(text: str, findings: Sequence[Finding], where: str = "the summary") -> str:
    """Return why a text says more than that nothing was found, or says so beside findings; nothing if not."""
    if not text.strip() or (not findings and _says_none(text)):
        return ""
    said = bounded(" ".join(text[: 4 * _MAX_STATEMENT].split()), _SUMMARY_QUOTED)
    return f'{where} says in words what only findings and counts can say: "{said}"'


def _says_none(text: str) -> bool:
    if len(text) > _MAX_STATEMENT:
        return False
    sentences = [" ".join(one.split()) for one in _ENDS.split(text.lower()) if one.strip()]
    return bool(sentences) and all(_SENTENCE.fullmatch(one) for one in sentences)


def _counts_flaw(summary: Mapping[str, Json], findings: Sequence[Finding]) -> str:
    counted = Counter(str(finding.severity) for finding in findings)
    real = {"total": len(findings), **{str(severity): counted[severity] for severity in Severity}}
    wrong = [
        f"{name} is {said} in the summary and {real[name]} in the findings"
        for name, said in summary.items()
        if said is not None and said != real[name]
    ]
    return "; ".join(wrong)


MAX_TEXT = 4_000  # characters of a finding or a fix
MAX_NAME = 200  # of a rule
MAX_PATH = 1_024
MAX_REPLACEMENT = 20_000

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CWE = re.compile(r"(?:cwe)?[\s:#_-]*0{0,9}([1-9]\d{0,4})(?!\d)", re.IGNORECASE)


def bounded(text: str, longest: int = MAX_TEXT) -> str:
    """Return a text that can be kept and shown: a long one without its end, control characters as a mark."""
    kept = text[: longest + 1].strip()
    shown = _UNSHOWN.sub("\ufffd", kept.replace("\r\n", "\n"))
    return shown if len(text.strip()) <= longest else f"{shown[: longest - 1]}…"


def replacement_of(text: str | None) -> str | None:
    """Return the text that would stand in some lines instead; one that cannot be kept whole is none."""
    if text is None or len(text) > MAX_REPLACEMENT or _UNSHOWN.search(text.replace("\r\n", "\n")):
        return None
    return text


def severity_of(text: str) -> Severity | None:
    """Read a severity, in letters of any size; None for any other word."""
    word = text.strip().lower()
    return Severity(word) if word in set(Severity) else None


def cwe_of(value: Json) -> str:
    """Return the number of a weakness in its one spelling; what is none is left out, since it only labels a finding."""
    found = _CWE.match(str(value).strip())
    return f"CWE-{found[1]}" if found else ""
