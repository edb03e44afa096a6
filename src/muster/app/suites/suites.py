"""Suites: planned, run, judged again, reported, compared, reviewed and proven. `Muster.suites`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from muster.app.agent_kinds.directory import Agents
from muster.app.base.backend import Backend
from muster.app.base.costs import Quoting
from muster.app.base.file_kinds import require_suite
from muster.app.kinds import word_of
from muster.app.runs.files import runs_of
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions, require_limit, require_reference
from muster.app.runs.reports import report_of
from muster.app.runs.runs import Runs
from muster.app.suites.council_judge import policy_of, with_policy
from muster.app.suites.exact import ExactCount, ExactCounter
from muster.app.suites.generation import Generated, Generation, conclude_generation
from muster.app.suites.plan import SuitePlan, SuitePlanner
from muster.app.suites.results import SuiteResults
from muster.app.suites.reviews import Baselines, ReviewDraft, find_result
from muster.app.suites.sides import SideFinder, file_of
from muster.app.suites.trends import SuiteTrends
from muster.domain.advice import ArgumentAdvice
from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.errors import BadArgument, BadFile, ConflictingArguments, NotFound
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.kind import require_kind
from muster.domain.named import COUNCIL_JUDGE
from muster.domain.review import Review
from muster.domain.run import CALLS_ONLY, REPLAYS, Origin, Reuse, Run
from muster.suites.compare.pairs import EVERY_PAIR, PairFilter, PairPage, page_of_pairs
from muster.suites.compare.runs import ComparisonTerms, RunComparison, compare_runs
from muster.suites.kind import GENERATION, SUITE
from muster.suites.order import SuiteChoice
from muster.suites.reports.run import SuiteRun, open_suite_run
from muster.suites.reports.summary import SuiteReport, summarize
from muster.suites.reports.trend import SuiteTrend
from muster.suites.reviews import ReviewedRun, agreement_of
from muster.suites.spec import SuiteSpec, chosen_fields, read_spec, with_changes
from muster.suites.values.verdict import CaseResult

if TYPE_CHECKING:
    from muster.app.suites.evidence import Exported
    from muster.reporting.runs import RunReport

_LOOKED_AT = 256  # bytes at the beginning of a file

# What is left open is as it was in the run that is replayed or reused, or whose failed cases are run again: who is
# asked and how, and all that decides whether a case passes, so that the two runs can be compared.
INHERITED = (
    "agents", "prompts", "answers", "judge", "council", "judge_samples", "judge_dispatch", "epochs", "evaluator",
    "threshold", "max_tokens", "temperature", "seed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSource:
    """Where known answers come from: an earlier run, a file of recorded answers, or nowhere."""

    replays: bool = False  # no agent is asked
    run: Run | None = None
    answers: str | None = None

    @property
    def origin(self) -> Origin | None:
        """Return what the new run takes over."""
        if self.run is None:
            return None
        return Origin(run=self.run.id, reuse=Reuse.RECORDED if self.replays else Reuse.CALLS)

    @property
    def asks(self) -> bool:
        """Return whether any calls are made: to an agent, or to the judge of recorded answers."""
        return not self.replays or self.answers is not None


ASK_EVERYBODY = AnswerSource()
USUAL_TERMS = ComparisonTerms()


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedReview:
    """A review that was added, and the verdict it is about."""

    review: Review
    result: CaseResult


class Suites(KindPart):
    """The suites of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs, agents: Agents) -> None:
        self._store, self._directory, self._clock = backend.store, backend.directory, backend.clock
        self._runs, self._agents, self._home = runs, agents, backend.settings.home
        self._has_files = backend.user.local
        self.baselines = Baselines(backend, self.find)
        self._trends = SuiteTrends(backend, runs)
        self.generations = Generations()
        self.results = SuiteResults(backend, self._find_stored)

    def plan(
        self, spec: SuiteSpec, dispatch: Dispatch = LIVE, quoting: Quoting = Quoting.ALL, *, keep: bool = False
    ) -> SuitePlan:
        """Return what a run would do and cost; raises what would keep it from being done.

        With `keep` it holds the cases as well: a run that is started from the plan does not read its files again.
        """
        try:
            return SuitePlanner(self._directory, self._settled(spec), dispatch, quoting).survey(keep=keep)
        except BadFile:
            for path in spec.path:
                require_suite(Path(path))
            raise

    async def exact(
        self, spec: SuiteSpec, *, most: int, on_count: Callable[[int], None] = lambda _: None
    ) -> Mapping[str, ExactCount]:
        """Return the tokens that go in with the first request of each case, by agent, as the providers count them.

        Counting is free; at most `most` requests are made for it, and `on_count` is told how many were.
        """
        return await ExactCounter(self._directory, self._settled(spec), most=most, on_count=on_count).count()

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep the run of a spec from being done; keys and prices only if it is driven `here`."""
        self.plan(read_spec(spec), dispatch, Quoting.FIRST if here else Quoting.NONE)

    async def source(self, *, replay: str | None = None, reuse: str | None = None) -> AnswerSource:
        """Return where known answers come from: the run, its exported file, or the recorded answers that are named."""
        if replay is not None and reuse is not None:
            raise ConflictingArguments("replay", "reuse")
        file = file_of(replay) if replay is not None and self._has_files else None
        if file is not None and _is_answers(file):
            return AnswerSource(replays=True, answers=str(file))
        with naming_run("reuse" if replay is None else "replay"):
            reference = reuse if replay is None else replay
            run = None if reference is None else await self.find(reference)
        return AnswerSource(replays=replay is not None, run=run)

    async def spec(self, choice: SuiteChoice, source: AnswerSource = ASK_EVERYBODY) -> SuiteSpec:
        """Return the spec of a choice; what was left open is as in the run that is replayed, reused or repeated."""
        if choice.judge is not None and not choice.judge.startswith(COUNCIL_JUDGE):
            self._directory.find(choice.judge)  # raises for an unknown one, also in a replay
        only, failed = None, None
        if choice.only_failed is not None:
            with naming_run("only_failed"):
                failed = await self.find(choice.only_failed)
                only = await self._not_passed(failed)
                if not only:
                    raise NotFound(f"every case of run {failed.id} passed; there is nothing to run again")
        earlier = source.run or failed
        before = None if earlier is None else read_spec(earlier.spec)
        return self._settled(_chosen_spec(choice, before, {"answers": source.answers, "only": only}))

    def _settled(self, spec: SuiteSpec) -> SuiteSpec:
        """Return a spec with everything that a run needs from other files than its suites."""
        return with_policy(spec, self._directory)

    def stored(self, spec: Json) -> Any:
        """Return a given spec as a run is stored with it: with the policy of a council that judges."""
        found = read_spec(spec)
        return spec if found.judge_file is None else self._settled(found).stored()

    async def start(
        self,
        spec: SuiteSpec,
        options: RunOptions | None = None,
        *,
        origin: Origin | None = None,
        detach: bool = False,
        plan: SuitePlan | None = None,
    ) -> RunHandle:
        """Start a suite run; from a plan that kept its cases, with these, whatever became of the files since.

        Without a plan one is made: what would keep the run from being done is raised before it is stored.
        """
        spec = self._settled(spec)
        inherits = origin is not None and origin.reuse not in CALLS_ONLY  # the run it comes from has its cases
        if plan is None and not inherits:
            calls = origin is None or origin.reuse not in REPLAYS
            dispatch = LIVE if options is None else options.dispatch
            plan = self.plan(spec, dispatch, Quoting.FIRST if calls else Quoting.NONE, keep=True)
        known = None if plan is None else plan.surveyed
        if known is not None and known.spec != spec:
            raise BadArgument("the plan is of another spec", suggestions=("start the run with the spec of the plan",))
        if inherits:
            known = None
        before = None if known is None else known.record
        return await self._runs.start_checked(
            SUITE.workload, spec.stored(), options, origin=origin, detach=detach, before=before
        )

    async def submit(
        self, spec: SuiteSpec, options: RunOptions | None = None, *, origin: Origin | None = None
    ) -> RunHandle:
        """Store a suite run for the workers; raises before that when an agent cannot be asked."""
        chosen, spec = options or self._runs.options(), self._settled(spec)
        calls = origin is None or origin.reuse not in REPLAYS
        self.plan(spec, chosen.dispatch, Quoting.FIRST if calls else Quoting.NONE)
        return await self._runs.submit(SUITE.workload, spec.stored(), chosen, origin=origin)

    async def start_stored(self, spec: Json, options: RunOptions, *, detach: bool = False) -> RunHandle:
        """Start the run of a spec as it is stored."""
        return await self.start(read_spec(spec), options, detach=detach)

    async def rejudge(
        self, before: Run, changes: Mapping[str, Json], options: RunOptions | None = None, *, detach: bool = False
    ) -> RunHandle:
        """Judge the answers of a suite run anew, with another judge or threshold; no agent is asked."""
        given = {name: value for name, value in changes.items() if value is not None}
        spec = read_spec(with_changes(before.spec, {**given, "generate": False}))
        if spec.judge is None:
            raise BadArgument("no judge given", suggestions=(ArgumentAdvice("judge", "AGENT"),))
        if spec.evaluator not in (None, "judge", "all"):
            raise BadArgument(
                f"with the evaluator {spec.evaluator} there is nothing to judge",
                suggestions=(ArgumentAdvice("evaluator", "judge"),),
            )
        if spec.judge_file is None:
            self._agents.require(spec.judge)
        else:
            spec = self._settled(spec)
            for member in policy_of(spec).members:
                self._agents.require(member.name)
        origin = Origin(run=before.id, reuse=Reuse.REPLIES)
        return await self.start(spec, options, origin=origin, detach=detach)

    async def find(self, reference: str) -> Run:
        """Return a suite run by its reference, or by a file it was exported to; a file is imported once."""
        require_reference(reference)
        return _required(await self._find_or_import(reference))

    async def _find_or_import(self, reference: str) -> Run:
        path = file_of(reference) if self._has_files else None
        if path is not None:
            known = await self._store.runs.get(runs_of(path)[0])
            return known if known is not None else await self._runs.import_(path)
        try:
            return await self._find_stored(reference)
        except NotFound as error:
            if not self._has_files:
                raise
            raise NotFound(
                f"{error.message}, and no such file exists", suggestions=error.suggestions, given=error.given
            ) from None

    async def _find_stored(self, reference: str) -> Run:
        """Return the run of a reference; `last` is the last run of a suite, whatever was run after it."""
        return await (self._runs.last_of(SUITE) if reference == "last" else self._runs.find(reference))

    def uses_batches(self, run: Run) -> bool:
        """Return whether the judge of a suite run is asked in batches, whatever its agents are."""
        return read_spec(run.spec).judges_in_batches

    async def after_end(self, run: Run) -> None:
        """Sum a suite run up: its figures are kept for whoever looks at them."""
        with suppress(NotFound):  # it stopped before its suites were read
            await self.report(run)

    async def open(self, run: Run) -> SuiteRun:
        """Return a suite run with its cases, results and conversations; raises NotFound for one that had not begun."""
        return await open_suite_run(self._store, run)

    async def whole_report(self, run: Run) -> "RunReport[SuiteReport]":
        """Return the summary of a suite run with what writes it in any format."""
        return cast("RunReport[SuiteReport]", await report_of(self._store, run))

    async def report(self, run: Run) -> SuiteReport:
        """Return the summary of a suite run."""
        return await summarize(await self.open(run))

    async def compare(
        self,
        a: str,
        b: str,
        terms: ComparisonTerms = USUAL_TERMS,
        *,
        subject: str | None = None,
        on_note: Callable[[str], None] = lambda text: None,
    ) -> RunComparison:
        """Compare two suite runs, paired by case and epoch; `on_note` hears how an ambiguous name was read."""
        async with AsyncExitStack() as files:
            sides = SideFinder(self._store, self._runs, files, on_note, has_files=self._has_files)
            return await compare_runs(await sides.find(a, subject), await sides.find(b, subject), terms)

    async def pairs(
        self,
        a: str,
        b: str,
        wanted: PairFilter = EVERY_PAIR,
        *,
        subject: str | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> PairPage:
        """Return a page of the pairs of a comparison, what got worse first; `after` is `next` of the page before."""
        require_limit(limit)
        async with AsyncExitStack() as files:
            sides = SideFinder(self._store, self._runs, files, lambda text: None, has_files=self._has_files)
            one, other = await sides.find(a, subject), await sides.find(b, subject)
            return await page_of_pairs(one, other, wanted, after=after, limit=limit)

    async def trend(self, reference: str, limit: int = 30) -> SuiteTrend:
        """Return what the newest suite runs of the same name as a run came to, the oldest of them first."""
        return await self._trends.of(_required(await self._find_stored(reference)), limit)

    async def before(self, reference: str) -> Run | None:
        """Return the completed run of the same suites and name before a suite run; None when there is none."""
        return await self._trends.before(_required(await self._find_stored(reference)))

    async def review(self, reference: str, draft: ReviewDraft) -> AddedReview:
        """Add what a person thinks of one verdict of a suite run."""
        suite = await self.open(await self._find_stored(reference))
        result = await find_result(suite, draft.case, draft.subject, draft.epoch)
        made = draft.review(suite.run.id, result, self._clock.now())
        await self._store.records.add_review(made)
        return AddedReview(review=made, result=result)

    async def reviews(self, reference: str) -> tuple[Run, ReviewedRun]:
        """Return a suite run with its reviews, and how far they agree with the judge."""
        suite = await self.open(await self._find_stored(reference))
        return suite.run, await agreement_of(await self._store.records.reviews_of(suite.run.id), suite.results())

    async def export_evidence(self, reference: str, output: str | Path, key: str | Path | None = None) -> "Exported":
        """Write a signed archive of a suite run; without a key, the one in the home folder signs it."""
        # Loaded when it is needed: cryptography takes longer to load than most commands take.
        from muster.app.suites.evidence import Evidence

        suite = await self.open(await self._find_stored(reference))
        return await Evidence(self._home).export(suite, output, key)

    async def generate(self, wanted: Generation, options: RunOptions | None = None) -> RunHandle:
        """Start to have cases written by a model; raises before anything is stored when it cannot be asked."""
        self._agents.require(wanted.agent)
        return await self._runs.start(GENERATION.workload, wanted.spec(), options)

    def conclude_generation(self, wanted: Generation, run: Run) -> Generated:
        """Write the cases that a run generated to their file, and return them."""
        return conclude_generation(wanted, run)

    async def _not_passed(self, run: Run) -> Sequence[str]:
        """Return the cases that did not pass with everyone in every epoch, also those that the run never came to."""
        suite = await self.open(run)
        cases = {case.id: bool(case.skip) async for case in suite.cases()}
        bad = {result.case async for result in suite.results() if result.status not in (Status.PASSED, Status.SKIPPED)}
        seen = {result.case async for result in suite.results()}
        return tuple(case for case, skipped in cases.items() if case in bad or not (skipped or case in seen))


def _chosen_spec(choice: SuiteChoice, before: SuiteSpec | None, more: Mapping[str, Json]) -> SuiteSpec:
    """Return the spec of a choice, with what was left open taken from an earlier run."""
    stored = {} if before is None else before.stored()
    inherited = {name: stored[name] for name in INHERITED if name in stored}
    chosen = chosen_fields(choice) | {name: value for name, value in more.items() if value is not None}
    if "agents" in chosen or "prompts" in chosen:
        inherited.pop("answers", None)
    return read_spec(with_changes(inherited, chosen))


def _is_answers(path: Path) -> bool:
    """Return whether a file holds recorded answers and not a run: one JSON list instead of lines."""
    try:
        with path.open("rb") as file:
            return file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


@contextmanager
def naming_run(field: str) -> Iterator[None]:
    """Raise what is wrong with a run that a field of an order names as a flaw of that field."""
    try:
        yield
    except (BadArgument, NotFound) as error:
        code = FlawCode.UNKNOWN if isinstance(error, NotFound) else FlawCode.INVALID
        way = str(next(iter(error.suggestions), ""))
        error.flaws = (FieldFlaw(path=field, message=error.message, code=code, suggestion=way, by_itself=True),)
        raise


def _required(run: Run) -> Run:
    """Return a suite run; raises BadArgument for a run of something else."""
    require_kind(run, SUITE, word_of(run.workload))
    return run


class Generations(KindPart):
    """Runs that wrote cases: a success when there are as many as were asked for."""

    async def error_of(self, run: Run) -> Mapping[str, Json] | None:
        """Return why a run that generated cases is not a success; None when it is."""
        return Generated(run=run, file=None).error
