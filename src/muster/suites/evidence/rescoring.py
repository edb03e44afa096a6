"""Scoring an archive again, from what agents, judges and commands replied. No call is made.

Replies of judges are read again and must bear out the judgements; checks and scores are done again and must come to the
verdicts; verdicts must be those of all cases, no more and no fewer; and the figures must be those of the verdicts.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.domain.errors import BadFile, MusterError
from muster.domain.run import RunState
from muster.suites.checks.scoring import evaluators_of, score
from muster.suites.evidence.accounts import FigureDifference
from muster.suites.evidence.archive import EvidenceArchive, read_as
from muster.suites.evidence.councils import CouncilRetelling, RetellCouncil
from muster.suites.evidence.figures import TOLERANCE, SubjectTallies, differences
from muster.suites.evidence.layout import (
    CALLS,
    CASES,
    ENVIRONMENT,
    RUN,
    STATEMENT,
    STATISTICS,
    SUITE,
    VERDICTS,
    EvidenceFault,
    media_name,
)
from muster.suites.evidence.replies import (
    EvidenceUnits,
    RecordedReplies,
    RecordedVerdict,
    UnitRoll,
    retold,
    unsaid,
)
from muster.suites.evidence.requests import AskedUnits
from muster.suites.evidence.verification import ArchiveVerification, open_archive, verify_file
from muster.suites.journal import SuiteSnapshot
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.statistics import SettledCases
from muster.suites.values.case import Case
from muster.suites.values.rules import FIRST, ScoringRules, rules_in
from muster.suites.values.rules import NAME as RULES
from muster.suites.values.verdict import CaseResult

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KEPT = 1000  # of each kind, that are told one by one
NO_CASE = "unexpected verdict: its case is not in the archive, or not at this place"
NO_VERDICT = "missing verdict"
_WITH_RULES = 5  # from these default rules on a run stores the version of its scoring rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A result that comes out otherwise, that is missing, or that should not be there."""

    case: str
    subject: str
    epoch: int
    was: Status | None  # None: there is no verdict
    was_score: float | None
    now: Status | None  # None: it cannot be scored
    now_score: float | None
    redacted: bool  # texts of it are without their secrets, which may be why
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoring:
    """What came of scoring an archive again."""

    verification: ArchiveVerification
    allow_redacted: bool = False
    same: int = 0
    different: int = 0
    blurred: int = 0  # different, and without some secrets that it was scored with
    missing: int = 0  # units without a verdict; of a run that was completed they are different too
    differences: tuple[Difference, ...] = ()  # the first of all kinds
    figures: tuple[FigureDifference, ...] = ()  # that do not follow from the results
    unmentioned: int = 0  # calls of units that no verdict mentions
    unmentioned_keys: tuple[str, ...] = ()  # the first of them
    unproven: tuple[str, ...] = ()  # what rests on the signature alone, the first of it

    @property
    def ok(self) -> bool:
        """Return whether something was scored again, and everything came out the same, but for what may differ."""
        sound = self.verification.valid and self.same > 0 and not self.different and not self.figures
        return sound and (self.allow_redacted or not self.blurred)


def rescore(
    path: Path,
    public_key: "Ed25519PublicKey | None" = None,
    *,
    allow_redacted: bool = False,
    retell_council: RetellCouncil | None = None,
) -> Rescoring:
    """Verify an archive and score it again; results may differ where secrets are missing, if that is allowed."""
    with open_archive(path) as file:
        try:
            found = verify_file(file, public_key)
            if not found.valid:
                return Rescoring(verification=found)
            archive = EvidenceArchive(file=file, members={member.name: member for member in found.members})
            return _Rescoring(archive, found, allow_redacted, retell_council).all()
        except EvidenceFault as fault:
            invalid = ArchiveVerification(valid=False, trusted=found.trusted, where=fault.where, what=fault.what)
            return Rescoring(verification=invalid)
        except OSError as error:
            raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


class _Rescoring:
    """Goes through cases, verdicts and calls side by side, as they were written."""

    def __init__(
        self,
        archive: EvidenceArchive,
        verification: ArchiveVerification,
        allow_redacted: bool,
        retell_council: RetellCouncil | None,
    ) -> None:
        self._archive, self._verification, self._allow_redacted = archive, verification, allow_redacted
        self._retell_council = retell_council
        self._run = archive.first(RUN)
        self._spec, self._completed = _spec_of(self._run), self._run.get("state") == RunState.COMPLETED
        self._snapshot = read_as(SuiteSnapshot, archive.first(SUITE), SUITE)
        self._rules = _rules_of(archive.first(ENVIRONMENT))
        self._units = EvidenceUnits(self._spec, self._snapshot)
        self._asked = AskedUnits(archive, self._spec, self._snapshot)
        self._replies = RecordedReplies(
            archive, recorded=self._spec.answers is not None, children=self._spec.judge_file is not None
        )
        self._figures = SubjectTallies()
        self._cases = self._same = self._different = self._blurred = self._missing = 0
        self._differences: list[Difference] = []
        self._unproven: list[str] = []
        self._settled = SettledCases(self._spec.epochs)

    def all(self) -> Rescoring:
        """Score every verdict of the archive again."""
        self._score_cases()
        unmentioned, keys, strays = self._count_unmentioned()
        try:
            figures = (*strays, *islice(self._compare_figures(), KEPT))
        except (ArithmeticError, ValueError) as error:  # numbers that no agent ever gave
            raise EvidenceFault(STATISTICS, "the figures of these results cannot be computed") from error
        return Rescoring(
            verification=self._verification,
            allow_redacted=self._allow_redacted,
            same=self._same,
            different=self._different,
            blurred=self._blurred,
            missing=self._missing,
            differences=tuple(self._differences),
            figures=figures,
            unmentioned=unmentioned,
            unmentioned_keys=keys,
            unproven=tuple(self._unproven[:KEPT]),
        )

    def _require_media(self, case: Case) -> None:
        """Raise EvidenceFault for an image or a document of a case that is not in the archive."""
        for media in (media for message in case.messages for media in message.media):
            if media_name(media.digest, media.type) not in self._archive.members:
                raise EvidenceFault(media_name(media.digest, media.type), f"is missing; case {case.id} shows it")

    def _score_cases(self) -> None:
        verdicts = self._archive.stream(VERDICTS, lambda verdict: str(verdict["result"]["case"]))
        for line in self._archive.records(CASES):
            case = read_as(Case, line, CASES)
            self._require_media(case)
            self._cases += 1
            self._replies.turn_to(line, case)
            roll = self._units.roll(case)
            while (verdict := verdicts.take(case.id)) is not None:
                self._weigh(case, verdict, roll)
            self._count_missing(case, roll)
        for verdict in verdicts.rest():
            result, _ = self._hear(verdict)
            self._differ(_difference(result, None, NO_CASE))

    def _weigh(self, case: Case, verdict: Mapping[str, Json], roll: UnitRoll) -> None:
        """Score one verdict again and compare."""
        was, testimony = self._hear(verdict)
        if flaw := roll.tick(was):
            self._differ(_difference(was, None, flaw))
            return
        council = CouncilRetelling(
            children=testimony.children, retell=self._retell_council, has_budget=self._run.get("cap") is not None
        )
        now = _scored(case, was, testimony, self._spec, council, self._rules)
        self._unproven += council.unproven
        unit = self._asked.of(case, was)
        flaw = "" if unit is None else testimony.asked_flaw(unit, self._spec, was, self._rules)
        flaw = flaw or unsaid(was.judgements, now.judgements) or next(iter(council.flaws), "")
        spent = _figure_flaw(was, now, _SPENT[:-1] if council.flaws else _SPENT)
        flaw = flaw or spent or _figure_flaw(was, now, _SEEN)
        if not flaw and now.status is was.status and _same_result(now.score, was.score):
            self._same += 1
            self._figures.add(now)
            return
        redacted = testimony.redacted and not spent  # no secret is part of a cost
        self._figures.add(was if redacted else now)
        self._differ(_difference(was, now, flaw or now.why, redacted=redacted))

    def _hear(self, verdict: Mapping[str, Json]) -> tuple[CaseResult, RecordedVerdict]:
        result = read_as(CaseResult, verdict.get("result"), VERDICTS)
        self._units.mention(result)
        self._settled.add(result)
        return result, self._replies.hear(result)

    def _count_missing(self, case: Case, roll: UnitRoll) -> None:
        """Count the units without a verdict; a run that was not completed may have such."""
        self._missing += roll.missing
        if not self._completed or not roll.missing:
            return
        self._different += roll.missing
        for subject, epoch in islice(roll.gaps(), KEPT - len(self._differences)):
            self._differences.append(_gap(case, subject, epoch))

    def _differ(self, one: Difference) -> None:
        self._blurred += one.redacted
        self._different += not one.redacted
        if len(self._differences) < KEPT:
            self._differences.append(one)

    def _compare_figures(self) -> Iterator[FigureDifference]:
        """Compare everything that is said of all results together."""
        now = self._figures.json()
        yield from differences(STATISTICS, self._archive.first(STATISTICS), now)
        yield from differences(f"{SUITE}/cases", self._snapshot.cases, self._cases)
        yield from self._run_differences()
        yield from self._replies.flaws
        if (stated := self._verification.predicate.get("results")) is not None:
            yield from differences(f"{STATEMENT}/results", stated, now["statuses"])

    def _run_differences(self) -> Iterator[FigureDifference]:
        """Compare the figures of the run, and the rules that it says it was judged by."""
        yield from self._replies.account_of(self._run).differences(RUN, self._run)
        if self._completed and isinstance(stated := self._run.get("result"), Mapping):
            yield from differences(f"{RUN}/result", stated, self._settled.json())
        known = self._archive.first(ENVIRONMENT).get(RULES, FIRST)
        if isinstance(rules := self._run.get("rules"), int) and rules >= _WITH_RULES and known == FIRST:
            yield FigureDifference(where=f"{ENVIRONMENT}/{RULES}", was=known, now=f"more than {FIRST}")

    def _count_unmentioned(self) -> tuple[int, tuple[str, ...], tuple[FigureDifference, ...]]:
        """Count the calls of units without a verdict, and name those that no verdict of their unit accounts for."""
        number, keys, strays = 0, list[str](), list[FigureDifference]()
        for call in self._replies.unheard():
            key = str(call.get("key"))
            if not self._units.mentions(key):
                number += 1
                keys += [key] if number <= KEPT else []
            elif len(strays) < KEPT:
                strays.append(FigureDifference(where=f"{CALLS}/{key}", was="recorded", now="belongs to no verdict"))
        return number, tuple(keys), tuple(strays)


def _spec_of(run: Mapping[str, Json]) -> SuiteSpec:
    try:
        spec = read_spec(run["spec"])
    except (MusterError, KeyError) as error:
        raise EvidenceFault(RUN, "the spec of the run cannot be read") from error
    if spec.judge_file is not None and spec.council is None:
        raise EvidenceFault(RUN, "the policy of the council that judged is missing")
    return spec


def _rules_of(environment: Mapping[str, Json]) -> ScoringRules:
    try:
        return rules_in(environment)
    except MusterError as error:
        raise EvidenceFault(ENVIRONMENT, error.message) from error


def _scored(
    case: Case,
    result: CaseResult,
    testimony: RecordedVerdict,
    spec: SuiteSpec,
    council: CouncilRetelling,
    rules: ScoringRules,
) -> CaseResult:
    evaluators = evaluators_of(case, spec.evaluator)
    seen = testimony.observation(case, result, rules)
    return score(
        case,
        seen,
        subject=result.subject,
        epoch=result.epoch,
        evaluators=evaluators,
        default_threshold=spec.threshold,
        judgements=retold(case, seen, result, spec, evaluators, testimony.heard(), council, rules),
        rules=rules,
    )


def _figure_flaw(was: CaseResult, now: CaseResult, names: Iterable[str]) -> str:
    """Return which of these figures of a result its calls, or its case, do not give."""
    told = ((name, _told(was, name), _told(now, name)) for name in names)
    wrong = next(((name, left, right) for name, left, right in told if left != right), None)
    return "" if wrong is None else f"its {wrong[0]} is {wrong[1]}, and its calls give {wrong[2]}"


# The last: only of a council that is read.
_SPENT = ("cost", "input_tokens", "output_tokens", "thinking_tokens", "seconds", "judge_cost")
_SEEN = ("model", "tools", "quality", "golden", "threshold", "evaluators", "checks", "items")
_PARTS: Mapping[str, tuple[str, ...]] = {  # what is compared of these: not the words that explain it
    "checks": ("name", "passed", "broken"),
    "items": ("id", "weight", "critical", "score", "by"),
}


def _told(result: CaseResult, name: str) -> Any:
    value = getattr(result, name)
    if name not in _PARTS:
        return value
    return [tuple(getattr(one, part) for part in _PARTS[name]) for one in value]


def _same_result(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return isclose(left, right, abs_tol=TOLERANCE)


def _difference(was: CaseResult, now: CaseResult | None, why: str, *, redacted: bool = False) -> Difference:
    return Difference(
        case=was.case,
        subject=was.subject,
        epoch=was.epoch,
        was=was.status,
        was_score=was.score,
        now=None if now is None else now.status,
        now_score=None if now is None else now.score,
        redacted=redacted,
        why=why,
    )


def _gap(case: Case, subject: str, epoch: int) -> Difference:
    return Difference(
        case=case.id,
        subject=subject,
        epoch=epoch,
        was=None,
        was_score=None,
        now=None,
        now_score=None,
        redacted=False,
        why=NO_VERDICT,
    )
