"""Where cases that a model wrote are laid down one by one, and looked at before they are taken."""

from collections import Counter
from typing import Any

import msgspec

from muster.domain.call import Quality, Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.shapes.json_search import find
from muster.workloads.generate_draft import Rejected, asked_in, draft_of
from muster.workloads.generate_likeness import Crowd
from muster.workloads.generate_proof import prove
from muster.workloads.generate_question import Subject

A_ROUND = 10  # cases that are asked for at once
_TOLD = 5  # reasons that a model is told
_LONGEST_LINE = 200


class Known(msgspec.Struct, frozen=True):
    """What is there before the first round."""

    skill: str
    prompt: str = ""
    cases: tuple[tuple[str, str, str], ...] = ()  # id, description, what is asked


class Desk:
    """All cases that are there: known before, taken, rejected."""

    def __init__(self, known: Known, description: str) -> None:
        self._known, self._description = known, description
        self._ids = {id_ for id_, _, _ in known.cases}
        self._crowd = Crowd()
        for id_, _, text in known.cases:
            self._crowd.add(id_, text)
        self.cases: list[dict[str, Any]] = []
        self.rejected: Counter[str] = Counter()
        self.reasons: list[str] = []  # of the last round
        self.all_reasons: list[str] = []

    def missing(self, count: int) -> int:
        """Say how many cases are still to be written."""
        return count - len(self.cases)

    def subject(self) -> Subject:
        """Say what the next cases are for."""
        there = [(id_, description) for id_, description, _ in self._known.cases]
        there += [(case["id"], case["description"]) for case in self.cases]
        lines = tuple(f"{id_}: {' '.join(description.split())}"[:_LONGEST_LINE] for id_, description in there)
        known = self._known
        return Subject(skill=known.skill, description=self._description, prompt=known.prompt, there=lines)

    def take(self, reply: Reply, count: int) -> int:
        """Take what is good of a reply; gives how many that were."""
        before, self.reasons = len(self.cases), []
        try:
            written = _written(reply)
        except Rejected as rejected:
            self.spoil(rejected.why)
            return 0
        for place, case in enumerate(written[: 2 * A_ROUND], 1):
            if not self.missing(count):
                break
            try:
                self._take(case)
            except Rejected as rejected:
                self._reject(f"case {place}", rejected)
        return len(self.cases) - before

    def spoil(self, why: str) -> None:
        """Note a reply of which nothing can be used."""
        self.reasons = []
        self._reject("the reply", Rejected("unusable reply", why))

    def _take(self, written: Json) -> None:
        case = draft_of(written)
        case["id"] = self._name(case.get("id") or "case")
        twin = self._crowd.alike(asked_in(case))
        if twin is not None:
            raise Rejected("near-duplicate", f"it asks nearly the same as {twin}")
        prove(self._known.skill, case)
        self._crowd.add(case["id"], asked_in(case))
        self._ids.add(case["id"])
        self.cases.append(case)

    def _name(self, name: str) -> str:
        """Give an id that no other case has."""
        wanted = unused = f"{self._known.skill}/{name}"
        number = 1
        while unused in self._ids:
            number += 1
            unused = f"{wanted}-{number}"
        return unused

    def _reject(self, what: str, rejected: Rejected) -> None:
        self.rejected[rejected.kind] += 1
        reason = f"{what}: {rejected.why}"[:_LONGEST_LINE]
        self.all_reasons.append(reason)
        if len(self.reasons) < _TOLD:
            self.reasons.append(reason)


def _written(reply: Reply) -> list[Json]:
    """Give the cases in a reply."""
    if reply.quality is not Quality.GOOD:
        raise Rejected("unusable reply", f"it was {reply.quality}")
    try:
        found = find(reply.text, lambda value: isinstance(value.get("cases"), list))
    except BadOutput as error:
        raise Rejected("unusable reply", error.message) from error
    if found is None:
        raise Rejected("unusable reply", 'it holds no JSON object with the key "cases"')
    cases: list[Json] = found["cases"]
    return cases
