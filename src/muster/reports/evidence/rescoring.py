"""Scoring an archive again: the checks and the arithmetic, with what judges and commands had said. Nobody is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from muster.checks.evaluators import evaluators_of
from muster.checks.scoring import score
from muster.domain.case import Case, Evaluator
from muster.domain.errors import BadFile, MusterError
from muster.domain.verdict import CaseResult, Observation, Status
from muster.formats.suite_spec import SuiteSpec, read_spec
from muster.reports.evidence.exporting import keys_of
from muster.reports.evidence.fault import Fault
from muster.reports.evidence.layout import ANSWERS, CALLS, CASES, RUN, VERDICTS
from muster.reports.evidence.lines import Stream, read_as, records
from muster.reports.evidence.observing import observe, observe_recorded
from muster.reports.evidence.tar import Member
from muster.reports.evidence.verifying import Verification, open_archive, verify_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

KEPT = 1000  # differences that are told one by one
TOLERANCE = 1e-9
SPEAKERS = (Evaluator.PROCESS, Evaluator.JUDGE)  # who is not asked again

Witnesses = Callable[[Case], Callable[[CaseResult], Observation]]  # give what was observed of a case, for each result


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A result that comes out otherwise."""

    case: str
    subject: str
    epoch: int
    was: Status
    was_score: float | None
    now: Status | None  # None: its case is not in the archive
    now_score: float | None
    redacted: bool  # texts of it are without their secrets, which may be why
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoring:
    """What came of scoring an archive again."""

    verification: Verification
    same: int = 0
    different: int = 0
    blurred: int = 0  # different, and without some secrets that it was scored with
    differences: tuple[Difference, ...] = ()  # the first of both kinds

    @property
    def ok(self) -> bool:
        """Whether something was scored again, and everything came out the same that could."""
        return self.verification.valid and self.same > 0 and not self.different


def rescore(path: Path, public_key: "Ed25519PublicKey | None" = None) -> Rescoring:
    """Verify an archive and score it again."""
    with open_archive(path) as file:
        try:
            verification = verify_file(file, public_key)
            return _Rescoring(file, verification).all() if verification.valid else Rescoring(verification=verification)
        except OSError as error:
            raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


class _Rescoring:
    """Goes through cases, verdicts and calls side by side, as they were written."""

    def __init__(self, file: BinaryIO, verification: Verification) -> None:
        self._file, self._verification = file, verification
        self._members = {member.name: member for member in verification.members}
        self._same = self._different = self._blurred = 0
        self._differences: list[Difference] = []

    def all(self) -> Rescoring:
        """Score every verdict of the archive again."""
        try:
            self._go_through()
        except Fault as fault:
            trusted = self._verification.trusted
            return Rescoring(
                verification=Verification(valid=False, trusted=trusted, where=fault.where, what=fault.what)
            )
        return Rescoring(
            verification=self._verification,
            same=self._same,
            different=self._different,
            blurred=self._blurred,
            differences=tuple(self._differences),
        )

    def _go_through(self) -> None:
        spec = self._spec()
        verdicts = Stream(self._file, self._member(VERDICTS), lambda verdict: str(verdict["result"]["case"]))
        witnesses = self._recorded() if spec.answers is not None else self._called()
        for line in records(self._file, self._member(CASES)):
            case = read_as(Case, line, CASES)
            witness = witnesses(case)
            while (verdict := verdicts.take(case.id)) is not None:
                result = _result_of(verdict)
                self._compare(result, _scored(case, witness(result), result, spec), _is_redacted(verdict))
        for verdict in verdicts.rest():
            self._compare(_result_of(verdict), None, redacted=False)

    def _recorded(self) -> Witnesses:
        """Take what was observed from recorded answers."""
        answers = Stream(self._file, self._member(ANSWERS), lambda answer: str(answer["case"]))

        def of_case(case: Case) -> Callable[[CaseResult], Observation]:
            answer = answers.take(case.id)
            text = None if answer is None else str(answer.get("text"))
            return lambda result: observe_recorded(text, result)

        return of_case

    def _called(self) -> Witnesses:
        """Take what was observed from calls."""
        calls = Stream(self._file, self._member(CALLS), lambda call: str(call["key"]))

        def of_case(case: Case) -> Callable[[CaseResult], Observation]:
            def of_result(result: CaseResult) -> Observation:
                found = [calls.take(key) for key in keys_of(result)]
                asked = [call for call in found[: len(result.keys)] if call is not None]
                return observe(case, asked, result)

            return of_result

        return of_case

    def _spec(self) -> SuiteSpec:
        run = next(records(self._file, self._member(RUN)), {})
        try:
            return read_spec(run["spec"])
        except (MusterError, KeyError) as error:
            raise Fault(RUN, "the spec of the run cannot be read") from error

    def _member(self, name: str) -> Member:
        if name not in self._members:
            raise Fault(name, "it is missing")
        return self._members[name]

    def _compare(self, was: CaseResult, now: CaseResult | None, redacted: bool) -> None:
        if now is not None and now.status is was.status and _alike(now.score, was.score):
            self._same += 1
            return
        self._blurred += redacted
        self._different += not redacted
        if len(self._differences) < KEPT:
            self._differences.append(_difference(was, now, redacted))


def _result_of(verdict: Mapping[str, Any]) -> CaseResult:
    return read_as(CaseResult, verdict.get("result"), VERDICTS)


def _is_redacted(verdict: Mapping[str, Any]) -> bool:
    return verdict.get("redacted") is True


def _scored(case: Case, seen: Observation, result: CaseResult, spec: SuiteSpec) -> CaseResult:
    evaluators = evaluators_of(case, spec.evaluator)
    speakers = [evaluator for evaluator in evaluators if evaluator in SPEAKERS]
    return score(
        case,
        seen,
        subject=result.subject,
        epoch=result.epoch,
        evaluators=evaluators,
        default_threshold=spec.threshold,
        judgements=dict(zip(speakers, result.judgements, strict=False)),
    )


def _alike(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return isclose(left, right, abs_tol=TOLERANCE)


def _difference(was: CaseResult, now: CaseResult | None, redacted: bool) -> Difference:
    return Difference(
        case=was.case,
        subject=was.subject,
        epoch=was.epoch,
        was=was.status,
        was_score=was.score,
        now=None if now is None else now.status,
        now_score=None if now is None else now.score,
        redacted=redacted,
        why="its case is not in the archive" if now is None else now.why,
    )
