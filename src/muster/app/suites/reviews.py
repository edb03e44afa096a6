"""What people say about verdicts, and names for runs that others are compared with."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from muster.app.base.backend import Backend
from muster.domain.errors import BadArgument, NotFound
from muster.domain.ids import RunId
from muster.domain.review import Review, opinion_of
from muster.domain.run import Run
from muster.suites.reports.run import SuiteRun, open_suite_run
from muster.suites.values.verdict import CaseResult

NEAR = 5  # names that are shown
MAX_NAMES = 20_000  # that are looked through for near ones
MAX_NOTE = 10_000
MAX_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewDraft:
    """What a person says about the verdict on a case; epoch and subject only where there are several."""

    case: str
    opinion: str
    note: str = ""
    by: str = ""
    epoch: int | None = None
    subject: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be stored as a review."""
        opinion_of(self.opinion)
        for noun, text, most in (("note", self.note, MAX_NOTE), ("name of the reviewer", self.by, MAX_NAME)):
            if len(text) > most:
                raise BadArgument(f"the {noun} must have at most {most:,} characters, not {len(text):,}")

    def review(self, run: RunId, result: CaseResult, at: float) -> Review:
        """Return the review of one verdict."""
        return Review(
            run=run,
            case=result.case,
            subject=result.subject,
            epoch=result.epoch,
            opinion=opinion_of(self.opinion),
            at=at,
            note=_storable(self.note),
            by=_storable(self.by),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRun:
    """A baseline: a name, the run it stands for, and since when."""

    name: str
    run: Run
    at: float


class Baselines:
    """Names for suite runs that others are compared with."""

    def __init__(self, backend: Backend, find: Callable[[str], Awaitable[Run]]) -> None:
        self._store, self._clock, self._find = backend.store, backend.clock, find

    async def set(self, name: str, reference: str) -> Run:
        """Let a name stand for a suite run; one from a file is imported, unless it is here already."""
        check_baseline_name(name)
        run = await self._find(reference)
        await open_suite_run(self._store, run)  # only what can be compared can be a baseline
        await self._store.records.set_baseline(name, run.id, self._clock.now())
        return run

    async def list(self) -> Sequence[NamedRun]:
        """Return all baselines whose run is still there."""
        found = [(one, await self._store.runs.get(one.run)) for one in await self._store.records.baselines()]
        return [NamedRun(name=one.name, run=run, at=one.at) for one, run in found if run is not None]

    async def remove(self, name: str) -> None:
        """Forget a name; the run stays."""
        await self._store.records.remove_baseline(name)


def check_baseline_name(name: str) -> None:
    """Refuse a name that could not be told from something else, or not be shown."""
    if name.strip().casefold() == "last":
        raise BadArgument("`last` means the newest run and cannot be the name of a baseline")
    if not name.isprintable() or name != name.strip() or not 0 < len(name) <= MAX_NAME:
        raise BadArgument(
            f"{name[:MAX_NAME]!r} cannot be the name of a baseline",
            suggestions=(f"use 1 to {MAX_NAME} printable characters, for example `main`",),
        )
    if ":" in name:
        raise BadArgument("the name of a baseline cannot contain a colon, which separates a run from its subject")


async def find_result(suite: SuiteRun, case: str, subject: str | None, epoch: int | None) -> CaseResult:
    """Return the one result that is meant; an error says what is missing to tell it from others."""
    mine = [result async for result in suite.results() if result.case == case]
    if not mine:
        raise await _unknown(suite, case)
    chosen = [result for result in mine if subject in (None, result.subject)]
    if not chosen:
        raise NotFound(f"{case} has no result for {subject!r}", suggestions=_distinct("--subject", mine, "subject"))
    if len({result.subject for result in chosen}) > 1:
        raise BadArgument(
            f"{case} has results for several subjects", suggestions=_distinct("--subject", mine, "subject")
        )
    found = [result for result in chosen if epoch in (None, result.epoch)]
    if not found:
        raise NotFound(f"{case} has no result for epoch {epoch}", suggestions=_distinct("--epoch", chosen, "epoch"))
    if len(found) > 1:
        raise BadArgument(f"{case} has results for several epochs", suggestions=_distinct("--epoch", chosen, "epoch"))
    return found[0]


def _distinct(option: str, results: list[CaseResult], name: str) -> tuple[str, ...]:
    values = dict.fromkeys(getattr(result, name) for result in results)
    return tuple(f"{option} {value}" for value in values)[:NEAR]


async def _unknown(suite: SuiteRun, case: str) -> NotFound:
    names: list[str] = []
    async for one in suite.cases():
        if one.id == case:
            return NotFound(f"run {suite.run.id} has no result for {case} yet")
        if len(names) < MAX_NAMES:
            names.append(one.id)
    ends = [name for name in names if name.endswith(f"/{case}")]
    near = list(dict.fromkeys([*ends, *get_close_matches(case, names, NEAR)]))
    return NotFound(f"run {suite.run.id} has no case {case!r}", suggestions=tuple(near[:NEAR]))


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
