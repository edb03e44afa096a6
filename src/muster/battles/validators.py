"""Validators: deterministic checks of a reply, which decide before any judge is asked. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from muster.battles.values import GoalVerdict
from muster.domain.call import says_something
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.text.json_documents import find_value, flaw_of, read_object
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.patterns import found_in, pattern_flaw
from muster.text.schemas.json_schema import bounded_schema_flaw, evaluate
from muster.text.words import one_line

_MAX_PATTERNS = 50_000  # characters of all patterns together
_MAX_TEXT = 10_000  # characters that are searched for
_SHOWN = 60  # characters of a pattern in the name of its validator


class ValidatorKind(StrEnum):
    """How a reply is checked."""

    REGEX = "regex"  # a pattern is found in it
    CONTAINS = "contains"  # it holds a text
    JSON_SCHEMA = "json_schema"  # it is JSON that fits a schema
    PROGRAM = "program"  # a declared program decides


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyValidator:
    """One check; what it says when it matches and when it does not, where `uncertain` leaves it to the next."""

    kind: ValidatorKind
    pattern: str = ""  # of regex
    text: str = ""  # of contains
    ignore_case: bool = False  # of contains
    schema: Mapping[str, Json] = field(default_factory=dict)  # of json_schema
    agent: str = ""  # of program: the declared name
    on_match: GoalVerdict = GoalVerdict.YES
    on_miss: GoalVerdict = GoalVerdict.UNCERTAIN

    @property
    def name(self) -> str:
        """Return what it applies, as a criterion."""
        about = {
            ValidatorKind.REGEX: self.pattern,
            ValidatorKind.CONTAINS: self.text,
            ValidatorKind.JSON_SCHEMA: str(self.schema.get("title") or "the reply fits the schema"),
            ValidatorKind.PROGRAM: self.agent,
        }[self.kind]
        return f"{self.kind}: {one_line(about, _SHOWN)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatorFinding:
    """What a validator says about one reply."""

    verdict: GoalVerdict
    confidence: float | None = None
    reason: str = ""


_UNUSED = {  # fields that mean nothing for a kind, with what they are when they were left out
    "pattern": (ValidatorKind.REGEX, ""),
    "text": (ValidatorKind.CONTAINS, ""),
    "ignore_case": (ValidatorKind.CONTAINS, False),
    "schema": (ValidatorKind.JSON_SCHEMA, {}),
    "agent": (ValidatorKind.PROGRAM, ""),
}


def validator_flaws(validator: ReplyValidator, allowance: CpuAllowance) -> Iterator[tuple[str, str]]:
    """Yield each field of a validator that is wrong, with why; what CPU that takes is shared by all of them."""
    for name, (kind, unset) in _UNUSED.items():
        if validator.kind is not kind and getattr(validator, name) != unset:
            yield name, f"means nothing for a validator of the kind {validator.kind}"
    yield from _kind_flaws(validator, allowance)
    if validator.on_match is validator.on_miss:
        yield "on_miss", "is the same as on_match, so that it decides nothing"


def total_flaws(validators: Sequence[ReplyValidator]) -> Iterator[str]:
    """Yield what is too much of all validators together: each is compiled or checked before a battle begins."""
    patterns = sum(len(one.pattern) for one in validators)
    if patterns > _MAX_PATTERNS:
        yield f"the patterns of all validators have {patterns:,} characters; the maximum is {_MAX_PATTERNS:,}"


def _kind_flaws(validator: ReplyValidator, allowance: CpuAllowance) -> Iterator[tuple[str, str]]:
    match validator.kind:
        case ValidatorKind.REGEX:
            yield from (("pattern", wrong) for wrong in _pattern_flaws(validator.pattern, allowance))
        case ValidatorKind.CONTAINS:
            if not says_something(validator.text) or len(validator.text) > _MAX_TEXT:
                yield "text", f"must have from 1 to {_MAX_TEXT:,} characters"
        case ValidatorKind.JSON_SCHEMA:
            yield from (("schema", wrong) for wrong in _schema_flaws(validator.schema, allowance))
        case ValidatorKind.PROGRAM:
            if not validator.agent.strip():
                yield "agent", "must name a declared program"
            if (validator.on_match, validator.on_miss) != (GoalVerdict.YES, GoalVerdict.UNCERTAIN):
                yield "on_match", "means nothing for a program, which says its own verdict; nor does on_miss"


def _pattern_flaws(pattern: str, allowance: CpuAllowance) -> Iterator[str]:
    if not pattern:
        yield "is missing"
    elif wrong := pattern_flaw(pattern, allowance):
        yield wrong


def _schema_flaws(schema: Mapping[str, Json], allowance: CpuAllowance) -> Iterator[str]:
    if not schema:
        yield "is missing"
    elif wrong := bounded_schema_flaw(schema, allowance):
        yield wrong


def validate(validator: ReplyValidator, reply: str, allowance: CpuAllowance) -> ValidatorFinding:
    """Check a reply; a pattern that takes too long or a schema that cannot be evaluated is uncertain, and says so.

    All validators of a reply share what CPU they may use.
    """
    if allowance.left <= 0:
        reason = "the validators of this reply took too long together"
        return ValidatorFinding(verdict=GoalVerdict.UNCERTAIN, reason=reason)
    try:
        flaw = _flaw(validator, reply, allowance)
    except BadArgument as error:
        return ValidatorFinding(verdict=GoalVerdict.UNCERTAIN, reason=error.message)
    verdict = validator.on_miss if flaw else validator.on_match
    return ValidatorFinding(verdict=verdict, confidence=_CONFIDENCE[verdict], reason=flaw)


_CONFIDENCE = {GoalVerdict.YES: 1.0, GoalVerdict.NO: 0.0, GoalVerdict.UNCERTAIN: None}


def _flaw(validator: ReplyValidator, reply: str, allowance: CpuAllowance) -> str:
    """Return why a reply does not match; empty when it does."""
    match validator.kind:
        case ValidatorKind.REGEX:
            return "" if found_in(validator.pattern, [reply], allowance) else "the pattern is not found"
        case ValidatorKind.CONTAINS:
            text, said = validator.text, reply
            if validator.ignore_case:
                text, said = text.casefold(), said.casefold()
            return "" if text in said else "the text is not in the reply"
        case ValidatorKind.JSON_SCHEMA:
            try:
                value = find_value(reply, validator.schema)
            except BadOutput as error:
                return error.message
            return flaw_of(value) or evaluate(value, validator.schema, allowance) or ""
        case ValidatorKind.PROGRAM:
            raise ValueError("programs are asked, not checked here")


def read_program(text: str) -> ValidatorFinding:
    """Read what a program said: one word, or a JSON object with `verdict`; anything else is uncertain and says why."""
    word = text.strip().casefold()
    if word in tuple(GoalVerdict):
        return ValidatorFinding(verdict=GoalVerdict(word), confidence=_CONFIDENCE[GoalVerdict(word)])
    found = read_object(text)
    if isinstance(found, str) or found.get("verdict") not in tuple(GoalVerdict):
        why = found if isinstance(found, str) else 'its "verdict" is not yes, no or uncertain'
        return ValidatorFinding(verdict=GoalVerdict.UNCERTAIN, reason=f"the answer of the program is not valid: {why}")
    verdict, said, reason = GoalVerdict(found["verdict"]), found.get("confidence"), found.get("reason")
    is_share = isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said <= 1
    return ValidatorFinding(
        verdict=verdict,
        confidence=float(said or 0) if is_share else _CONFIDENCE[verdict],
        reason=reason if isinstance(reason, str) else "",
    )
