"""The suite workload: behavioural tests of agents. Cases are read in, asked, judged and scored; all of it is kept."""

import platform
from collections import Counter
from collections.abc import Awaitable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json, JsonObject
from muster.domain.case import Status
from muster.domain.errors import ReplayMiss
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.suites.cases import Aside, Unit, Units, keep_page, read_in
from muster.suites.checks.scoring import all_quick, evaluators_of, not_asked, score, skipped
from muster.suites.conversation import talk
from muster.suites.journal import ANSWERS, REPEATABLE, environment_key, results_key
from muster.suites.judge.command import ask_command
from muster.suites.judge.council import council_of, judge_by_council
from muster.suites.judge.rubric import judge
from muster.suites.kind import SUITE
from muster.suites.recorded import RecordedAnswers, answers_in, observe_recorded, read_answers
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.statistics import SettledCases
from muster.suites.values.case import Evaluator
from muster.suites.values.rules import CURRENT, NAME, ScoringRules, rules_in
from muster.suites.values.verdict import CaseResult, Judgement, Observation
from muster.text.schemas.guard import in_schema_thread

PACKAGES = ("muster-ai", "genai-prices", "jsonpath-rfc9535", "jsonschema", "msgspec", "pydantic", "regex")


@workload(SUITE.workload, check=read_spec)
async def suite(ctx: Context, spec: Any) -> Json:
    """Run suites, and say how the cases ended."""
    wanted = read_spec(spec)
    snapshot = await read_in(ctx, wanted)
    rules = rules_in(await ctx.step(environment_key(wanted.tag), environment))
    answers = await _answers(ctx, wanted)
    units = Units(wanted, snapshot)
    await ctx.emit("suite/told", "suite.started", {"cases": snapshot.cases, "units": units.total})

    async def one(_: int, unit: Unit) -> CaseResult:
        return await examine(ctx, unit, wanted, answers, rules)

    book = ResultPages(ctx, wanted, units)
    try:
        async for result in ctx.map(one, units.all(ctx)):
            await book.enter(result)
        return await book.close()
    finally:
        await book.abandon()


def environment() -> JsonObject:
    """Return what the answers were made and judged with."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in PACKAGES},
        NAME: CURRENT,
    }


@cache  # the library reads and parses a whole file for it
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


async def _answers(ctx: Context, spec: SuiteSpec) -> RecordedAnswers | None:
    """Read recorded answers, once: the file is not looked at again."""
    if spec.answers is None:
        return None
    path = Path(spec.answers)
    return answers_in(await ctx.step(ANSWERS, lambda: read_answers(path, epochs=spec.epochs)))


class ResultPages:
    """Takes results in the order of the units; a page is written while the next one fills."""

    def __init__(self, ctx: Context, spec: SuiteSpec, units: Units) -> None:
        self._ctx, self._tag, self._units = ctx, spec.tag, units
        self._page: list[CaseResult] = []
        self._pages = 0
        self._entered = 0
        self._settled = SettledCases(spec.epochs)
        self._ended: Counter[Status] = Counter()  # of single epochs
        self._aside = Aside()

    async def enter(self, result: CaseResult) -> None:
        """Take one result."""
        self._page.append(result)
        if len(self._page) == self._units.page_size:
            await self._turn()

    async def close(self) -> Json:
        """Keep what is left, and say how the cases ended; nothing is good unless something passed and all did."""
        await self._turn()
        await self._aside.done()
        return self._settled.json()

    async def abandon(self) -> None:
        """Let go of a page that is being written, when the run stops: its calls are in the journal all the same."""
        await self._aside.abandon()

    async def _turn(self) -> None:
        """Begin a new page, as soon as the one before is written."""
        if self._page:
            page, self._page = tuple(self._page), []
            number, self._pages = self._pages, self._pages + 1
            await self._aside.do(self._write(number, page))

    async def _write(self, number: int, results: tuple[CaseResult, ...]) -> None:
        for result in await keep_page(self._ctx, self._tag, number, results):
            self._count(result)
        ended = {str(status): self._ended[status] for status in Status if self._ended[status]}
        done = {"done": self._entered, "total": self._units.total, "ended": ended}
        await self._ctx.emit(f"{results_key(self._tag, number)}/told", "suite.cases", done | self._settled.told())

    def _count(self, result: CaseResult) -> None:
        """Count what stands in the journal, which is what reports will say too."""
        self._entered += 1
        self._ended[result.status] += 1
        self._settled.add(result)


RULES = (Evaluator.RULES,)  # nobody needs to be asked


async def examine(
    ctx: Context, unit: Unit, spec: SuiteSpec, answers: RecordedAnswers | None, rules: ScoringRules
) -> CaseResult:
    """Find out how a unit ends; what is known for good is not done again."""
    if unit.known is not None and unit.known.status not in REPEATABLE:
        return unit.known
    if unit.case.skip:
        return skipped(unit.case, unit.subject.label, unit.epoch)
    if unit.case.flaw:
        return not_asked(unit.case, unit.subject.label, unit.epoch)
    if answers is None:
        observation = await talk(ctx, unit, spec, rules)
    else:
        observation = observe_recorded(unit.case, unit.epoch, answers.get(unit.case.id, {}), rules)
    evaluators = evaluators_of(unit.case, spec.evaluator)
    heard = {} if evaluators == RULES else await _judge(ctx, unit, spec, observation, evaluators, rules)
    scoring = partial(
        score,
        unit.case,
        observation,
        subject=unit.subject.label,
        epoch=unit.epoch,
        evaluators=evaluators,
        default_threshold=spec.threshold,
        judgements=heard,
        rules=rules,
    )
    return scoring() if all_quick(unit.case, observation) else await in_schema_thread(scoring)


async def _judge(
    ctx: Context,
    unit: Unit,
    spec: SuiteSpec,
    observation: Observation,
    evaluators: tuple[Evaluator, ...],
    rules: ScoringRules,
) -> dict[Evaluator, Judgement]:
    """Let judges and commands speak about an answer, when there is one."""
    if observation.error is not None:
        return {}
    said = {}
    if Evaluator.PROCESS in evaluators:
        asked = ask_command(ctx, unit.case, observation, key=unit.key, rules=rules)
        said[Evaluator.PROCESS] = await _heard(asked, "the command")
    if Evaluator.JUDGE in evaluators:
        said[Evaluator.JUDGE] = await _heard(_ask_judge(ctx, unit, spec, observation), spec.judge or "")
    return said


async def _heard(judgement: Awaitable[Judgement], by: str) -> Judgement:
    """Wait for a judgement; one that a replay does not know is a failed one, and the other cases go on."""
    try:
        return await judgement
    except ReplayMiss as error:
        return Judgement(by=by, failures=(error.message,))


async def _ask_judge(ctx: Context, unit: Unit, spec: SuiteSpec, observation: Observation) -> Judgement:
    if spec.judge is None:
        return Judgement(by="", failures=("this case wants a judge, and none was named",))
    if spec.judge_file is not None:
        council = council_of(spec.judge, spec.council, spec.threshold)
        return await judge_by_council(ctx, unit.case, observation, council, unit=unit.key, dispatch=spec.judge_dispatch)
    return await judge(
        ctx,
        unit.case,
        observation,
        judge=spec.judge,
        samples=spec.judge_samples,
        key=unit.key,
        dispatch=spec.judge_dispatch,
        threshold=spec.threshold,
    )
