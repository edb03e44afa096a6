"""Makes the cases of one written case: itself, itself with variables, or one for each row of its dataset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from muster.domain.case import Case
from muster.formats.complaints import Complaints
from muster.formats.dataset import Row, rows
from muster.formats.flaw import Flaw, Unreadable
from muster.formats.forms import DatasetForm
from muster.formats.resolve import require_id
from muster.formats.shelf import Shelf
from muster.formats.variables import Template, Unfilled
from muster.formats.verify import checks_of, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One case as it came out of its file; with flaws it is only a draft, and cannot be asked."""

    case: Case
    flaws: tuple[Flaw, ...] = ()
    doubts: tuple[Flaw, ...] = ()

    @staticmethod
    def of(case: Case, complaints: Complaints, doubts: tuple[Flaw, ...] = ()) -> "Outcome":
        """Return a case with what was said about it."""
        return Outcome(case=case, flaws=tuple(complaints.flaws), doubts=(*doubts, *complaints.doubts))


def filled(
    case: Case, complaints: Complaints, variables: Mapping[str, str], dataset: DatasetForm | None, shelf: Shelf
) -> Iterator[Outcome]:
    """Return what comes of a resolved case, verified; rows are read only for a case that is good so far."""
    if dataset is not None and not complaints.flaws:
        yield from _from_rows(case, complaints, variables, dataset, shelf)
        return
    try:
        case = Template(case).fill(variables) if variables and dataset is None else case
    except Unfilled as error:
        complaints.say_of_mark(error.mark, error.message)
    else:
        if dataset is None:
            verify(case, complaints)
    yield Outcome.of(case, complaints)


def _from_rows(
    case: Case, complaints: Complaints, variables: Mapping[str, str], dataset: DatasetForm, shelf: Shelf
) -> Iterator[Outcome]:
    try:
        filling = _Filling(case, complaints, variables, dataset)
        empty = True
        for row in rows(shelf.find(dataset.file)):
            empty = False
            yield filling.case(row)
        if empty:
            raise Unreadable("there is no row in it")
    except Unfilled as error:
        complaints.say_of_mark(error.mark, error.message)
    except Unreadable as error:
        place = dataset.file if error.line is None else f"{dataset.file}:{error.line}"
        complaints.say(("dataset",), error.message if dataset.file in error.message else f"{place}: {error.message}")
    if complaints.flaws:
        yield Outcome(case=case, flaws=tuple(complaints.flaws))


class _Filling:
    """Makes cases of rows. What is the same in all of them is verified until one is good."""

    def __init__(self, case: Case, complaints: Complaints, variables: Mapping[str, str], dataset: DatasetForm) -> None:
        self._case, self._complaints, self._dataset = case, complaints, dataset
        self._template = Template(case)
        self._variables = dict(variables)
        self._known: frozenset[int] = frozenset()
        self._doubts = tuple(complaints.doubts)

    def case(self, row: Row) -> Outcome:
        """Return the case of a row, with what is wrong with it; the first brings what was said about all of them."""
        name = str(row.number) if self._dataset.id is None else row.text(self._dataset.id)
        complaints = self._complaints.of(f"{self._case.id}/{name or row.number}", f"{self._dataset.file}:{row.line}")
        if not name:
            complaints.say(("dataset", "id"), f"the row has nothing in {self._dataset.id!r}, which is to name it")
        whole = f"{self._case.id}/{name or row.number}"
        case = self._filled(whole, row, complaints)
        if case is not None and not complaints.flaws and not complaints.doubts:
            self._known = self._known or checks_of(self._case)
        doubts, self._doubts = self._doubts, ()
        return Outcome.of(case or replace(self._case, id=whole), complaints, doubts)

    def _filled(self, name: str, row: Row, complaints: Complaints) -> Case | None:
        require_id(name, self._case.suite, complaints.say)
        try:
            case = self._template.fill(self._values(row), id=name)
        except Unfilled as error:
            complaints.say_of_mark(error.mark, error.message)
            return None
        verify(case, complaints, self._known)
        return case

    def _values(self, row: Row) -> Mapping[str, str]:
        values = dict(self._variables)
        for name in self._template.names:
            if (text := row.text(name)) is not None:
                values[name] = text
        return values
