"""What had to be judged: every case, of everyone who was tested on it, in every epoch; verdicts are ticked off."""

import hashlib
from collections.abc import Iterator, Mapping

from muster.domain.case import Case
from muster.domain.suite import Snapshot, case_key
from muster.domain.verdict import CaseResult
from muster.formats.suite_spec import SuiteSpec
from muster.reports.evidence.fault import Fault
from muster.reports.evidence.layout import RUN

MOST_SUBJECTS = 10_000  # of one case; nobody tests more, and a forged spec must not keep anybody busy for ever


class Roll:
    """The units of one case; each must be judged once."""

    def __init__(self, labels: Mapping[str, None], epochs: int) -> None:
        self._labels, self._epochs = labels, epochs
        self._seen: set[tuple[str, int]] = set()

    def tick(self, result: CaseResult) -> str:
        """Tick a verdict off, and say what is wrong with its being there."""
        if result.subject not in self._labels or not 1 <= result.epoch <= self._epochs:
            return "it is a stray verdict: the run has no such subject, or no such epoch"
        unit = (result.subject, result.epoch)
        if unit in self._seen:
            return "it is a duplicate: there is another verdict on the same"
        self._seen.add(unit)
        return ""

    @property
    def missing(self) -> int:
        """How many units have no verdict."""
        return len(self._labels) * self._epochs - len(self._seen)

    def gaps(self) -> Iterator[tuple[str, int]]:
        """Give the units without a verdict, one after the other."""
        units = ((label, epoch) for label in self._labels for epoch in range(1, self._epochs + 1))
        return (unit for unit in units if unit not in self._seen)


class Units:
    """The units of a run, and which of them a verdict mentions."""

    def __init__(self, spec: SuiteSpec, snapshot: Snapshot) -> None:
        self._spec, self._snapshot = spec, snapshot
        self._usual: Mapping[str, None] | None = None
        self._mentioned: set[bytes] = set()  # by digest: the keys of 100,000 units would fill the memory

    def roll(self, case: Case) -> Roll:
        """Give the units of a case."""
        if case.agents or case.flaw:
            return Roll(self._labels(case), self._spec.epochs)
        if self._usual is None:
            self._usual = self._labels(case)
        return Roll(self._usual, self._spec.epochs)

    def mention(self, result: CaseResult) -> None:
        """Note that there is a verdict on a unit."""
        key = case_key(result.case, result.subject, result.epoch)
        self._mentioned.add(_digest(hashlib.sha256(_bytes(key))))

    def mentions(self, key: str) -> bool:
        """Whether a call stands below a unit that has a verdict; every beginning of its key may be that unit."""
        beginning = hashlib.sha256()
        for place, part in enumerate(key.split("/")):
            beginning.update(_bytes(f"/{part}" if place else part))
            if _digest(beginning) in self._mentioned:
                return True
        return False

    def _labels(self, case: Case) -> Mapping[str, None]:
        agents, prompts = case.agents or self._spec.agents, self._snapshot.prompts
        if len(agents) * max(1, len(prompts)) > MOST_SUBJECTS:
            raise Fault(RUN, f"a case of it is asked of more than {MOST_SUBJECTS:,} subjects")
        return dict.fromkeys(subject.label for subject in self._spec.tested_on(case, self._snapshot))


def _digest(of: "hashlib._Hash") -> bytes:
    return of.digest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
