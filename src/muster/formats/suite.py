"""Suites as they are run: every case resolved, streamed, and refused with file, line and id when something is wrong."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.formats.filling import filled
from muster.formats.flaw import MOST_FLAWS, Flaw, Unreadable
from muster.formats.reading import Reading, Written
from muster.formats.resolve import Resolver


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite whose head is sound."""

    name: str
    file: str
    prompt: str | None
    bundle: Mapping[str, Json]
    _reading: Reading = field(repr=False, compare=False)

    def cases(self) -> Iterator[Case]:
        """Give the cases one by one; raises BadFile at the first that is wrong."""
        for found in resolved(self._reading):
            if isinstance(found, Case):
                yield found
            elif not found.doubtful:
                raise found.error()


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What is in a suite, and what is wrong with it."""

    name: str
    cases: int
    flaws: tuple[Flaw, ...]
    doubts: tuple[Flaw, ...] = ()  # it can be run all the same


def open_suite(path: Path) -> Suite:
    """Open a suite; raises NotFound, or BadFile when its head is wrong or the file cannot be parsed."""
    reading = Reading(path)
    if reading.flaws or reading.head is None:
        raise reading.flaws[0].error()
    return Suite(
        name=reading.name,
        file=reading.file,
        prompt=reading.prompt,
        bundle=reading.head.bundle,
        _reading=reading,
    )


def examine(path: Path) -> Examination:
    """Look through a whole suite and say everything that is wrong with it, up to a bound."""
    reading = Reading(path)
    cases = 0
    flaws: list[Flaw] = []
    doubts: list[Flaw] = []
    for found in resolved(reading):
        if isinstance(found, Case):
            cases += 1
        elif found.doubtful:
            doubts += [found] if len(doubts) < MOST_FLAWS else []
        else:
            flaws.append(found)
        if len(flaws) == MOST_FLAWS:
            flaws.append(Flaw(file=reading.file, message=f"after {MOST_FLAWS} flaws nothing more was looked at"))
            break
    return Examination(name=reading.name, cases=cases, flaws=tuple(flaws), doubts=tuple(doubts))


def resolved(reading: Reading) -> Iterator[Case | Flaw]:
    """Give every case that is good, and every flaw, as they come."""
    yield from reading.flaws
    seen = _Seen()
    try:
        empty = True
        for written in reading.written():
            empty = False
            for found in _resolve(reading, written):
                yield found if isinstance(found, Flaw) else seen.once(found)
        if empty and "cases" in reading.tree:
            raise Unreadable("cases: there is none", reading.tree.lines["cases"])
    except Unreadable as error:
        yield reading.flaw(error)


def _resolve(reading: Reading, written: Written) -> Iterator[Case | Flaw]:
    head, form, complaints = reading.head, written.form, written.complaints
    if head is None or form is None:
        yield from complaints.flaws
        return
    case = Resolver(head, reading.shelf, reading.file).resolve(form, written.line, complaints)
    if complaints.flaws:
        yield from complaints.flaws
    else:
        yield from filled(case, complaints, {**head.variables, **form.variables}, form.dataset, reading.shelf)


class _Seen:
    """Knows all ids that came by; by their digests, so that many long ones take little room."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()

    def once(self, case: Case) -> Case | Flaw:
        """Let a case through whose id is new."""
        digest = hashlib.blake2b(case.id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in self._digests:
            message = "id: there is a case with this id already"
            return Flaw(file=case.file, line=case.line, case=case.id, message=message)
        self._digests.add(digest)
        return case
