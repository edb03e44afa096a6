"""What a suite run would do and cost, found out before anything is stored or spent."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.base.costs import NOTHING, Load, Quoter, Quoting
from muster.app.suites.council_judge import CouncilCalls, policy_of
from muster.councils.spec import CouncilSpec
from muster.domain.advice import ArgumentAdvice
from muster.domain.agent import DEFAULT_MAX_TOKENS
from muster.domain.call import Message, Request, Role, ask
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.errors import BadConfiguration, MusterError
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.media import require_media
from muster.domain.script import BYTES_PER_TOKEN
from muster.suites.cases import CaseReader, Unit, Units
from muster.suites.checks.scoring import evaluators_of
from muster.suites.conversation import request_of
from muster.suites.judge.question import JudgeQuestion, pose, pose_again
from muster.suites.spec import SuiteSpec
from muster.suites.surveyed_cases import CaseCollector, SurveyedCases
from muster.suites.values.case import MAX_TOOL_CALLS, MAX_TOOL_TURNS, Case, Evaluator
from muster.suites.values.verdict import Observation
from muster.text.document_tree import Flaw

SHORT = "x"  # the shortest answer
TOOL_RESULT_BYTES = 300  # around the result of a tool call: ids, names, the words of an error
MAX_FLAW = "x" * 500  # of a judge's reply, as it is told back

_PLAIN = ask("")

Requests = Callable[[Unit, str], list[Request]]  # of a unit, when every answer is like this one


@dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """A run as it would be."""

    suites: int
    cases: int
    skipped: int
    damaged: int  # cases that are not valid: they would end as errors, and nobody would be asked
    units: int
    agents: dict[str, Load]
    judge: Load
    commands: int
    may_call_tools: int  # units whose agent may take a turn for each round of tool calls
    warnings: tuple[Flaw, ...] = ()  # about the cases, the first ones
    more_warnings: int = 0
    surveyed: SurveyedCases | None = field(default=None, repr=False, compare=False)  # for a run that is started from it

    @property
    def all(self) -> Load:
        """Everything together."""
        total = self.judge
        for load in self.agents.values():
            total = total.plus(load)
        return total


class SuitePlanner:
    """Goes through the cases of a spec."""

    def __init__(self, directory: AgentDirectory, spec: SuiteSpec, dispatch: Dispatch, quoting: Quoting) -> None:
        self._directory, self._spec, self._dispatch = directory, spec, dispatch
        self._quoting = quoting
        self._council = None if spec.council is None else policy_of(spec)
        self._begin()

    def survey(self, *, keep: bool = False) -> SuitePlan:
        """Look at every case once, and keep them if wanted; raises what would keep the run from being done."""
        if self._spec.judge is not None and self._council is None and self._quoting is not Quoting.NONE:
            self._directory.find(self._spec.judge)  # raises for an unknown one, also when no case needs a judge
        try:
            return self._survey(CaseReader(self._spec, once=True), keep=keep)
        except MusterError:
            # What cannot be parsed is told before anything that is wrong with the cases in front of it.
            self._begin()
            return self._survey(CaseReader(self._spec), keep=keep)

    def _begin(self) -> None:
        self._quoter = Quoter(self._directory, self._dispatch, self._quoting)
        self._agents: dict[str, Load] = {}
        self._judge = NOTHING
        self._unquoted: Counter[str] = Counter()  # calls to agents that are not asked again what they cost
        self._commands = self._tools = 0

    def _survey(self, reading: CaseReader, *, keep: bool) -> SuitePlan:
        units = Units(self._spec, reading.outline())
        collector = CaseCollector() if keep else None
        cases = skipped = damaged = count = 0
        for case in reading.cases():
            if collector is not None:
                collector.add(case)
            cases += 1
            skipped += bool(case.skip)
            damaged += bool(case.flaw) and not case.skip
            for unit in units.of(case):
                count += 1
                if not (case.skip or case.flaw):
                    self._visit(unit)
        for agent, calls in self._unquoted.items():
            self._agents[agent] = self._agents[agent].plus(Load(calls=calls, most_calls=calls))
        snapshot = reading.snapshot(0)
        return SuitePlan(
            suites=len(snapshot.suites),
            cases=cases,
            skipped=skipped,
            damaged=damaged,
            units=count,
            agents=self._agents,
            judge=self._judge,
            commands=self._commands,
            may_call_tools=self._tools,
            warnings=tuple(reading.warnings.first),
            more_warnings=reading.warnings.count - len(reading.warnings.first),
            surveyed=None if collector is None else collector.surveyed(reading, self._spec),
        )

    def _visit(self, unit: Unit) -> None:
        evaluators = evaluators_of(unit.case, self._spec.evaluator)
        if Evaluator.JUDGE in evaluators:
            self._visit_judge(unit)
        self._commands += Evaluator.PROCESS in evaluators
        self._tools += bool(unit.case.tools)
        if self._spec.answers is None:
            agent = unit.subject.agent
            self._require_media(unit)
            calls = 1 + len(unit.case.follow_ups)
            before = self._agents.setdefault(agent, NOTHING)
            if self._quoter.wants(agent):
                load = self._load(unit, agent, self._turns, calls, self._dispatch.mode)
                self._agents[agent] = before.plus(load)
            else:
                self._unquoted[agent] += calls

    def _require_media(self, unit: Unit) -> None:
        """Raise BadConfiguration for a case with images or documents that its agent cannot be shown."""
        shown = tuple(media for message in unit.case.messages for media in message.media)
        if not shown or self._quoting is Quoting.NONE:
            return
        profile = self._directory.find(unit.subject.agent).profile
        try:
            require_media(profile.name, profile.media, shown)
        except MusterError as error:
            place = f"case {unit.case.id} ({unit.case.file}:{unit.case.line})"
            raise type(error)(f"{place}: {error.message}", suggestions=error.suggestions) from None

    def _visit_judge(self, unit: Unit) -> None:
        if self._spec.judge is None:
            message = f"case {unit.case.id} ({unit.case.file}:{unit.case.line}) needs a judge, and none is given"
            raise BadConfiguration(
                message,
                flaws=(FieldFlaw(path="judge", message=message, code=FlawCode.MISSING, by_itself=True),),
                suggestions=(
                    ArgumentAdvice("judge", "AGENT"),
                    ArgumentAdvice("evaluator", "rules", words="or add {}, which leaves judged items out"),
                ),
            )
        mode = self._dispatch.mode if self._spec.judge_dispatch is None else Mode(self._spec.judge_dispatch)
        calls = self._spec.judge_samples
        if self._council is not None:
            load = self._council_load(unit, self._council, mode)
        elif self._quoter.wants(self._spec.judge):
            load = self._load(unit, self._spec.judge, self._samples, calls, mode)
        else:
            load = Load(calls=calls, most_calls=calls)
        self._judge = self._judge.plus(load)

    def _load(self, unit: Unit, agent: str, requests: Requests, calls: int, mode: Mode) -> Load:
        """Add up requests: after short answers the least that they cost, after long ones the most."""
        return self._quoter.load(agent, requests(unit, SHORT), requests(unit, self._long(unit)), calls, mode)

    def _turns(self, unit: Unit, answer: str) -> list[Request]:
        """Return the requests of a unit; after long answers with every round of tool calls that it may take."""
        messages, found = unit.case.messages, []
        for said in (None, *unit.case.follow_ups):
            if said is not None:
                messages = (*messages, Message(role=Role.ASSISTANT, text=answer), Message(role=Role.USER, text=said))
            found.append(request_of(unit, self._spec, messages))
            if answer != SHORT and unit.case.tools:
                for _ in range(MAX_TOOL_TURNS):
                    told = Message(role=Role.USER, text=_longest_results(unit.case, answer))
                    messages = (*messages, Message(role=Role.ASSISTANT, text=answer), told)
                    found.append(request_of(unit, self._spec, messages))
        return found

    def _council_load(self, unit: Unit, policy: CouncilSpec, mode: Mode) -> Load:
        """Add up what a council asks its members about a unit."""
        calls = CouncilCalls(policy=policy, quoter=self._quoter, quoting=self._quoting, longest=self._usual, mode=mode)
        return calls.load(
            lambda: self._question(unit, SHORT).for_council, lambda: self._question(unit, self._long(unit)).for_council
        )

    def _samples(self, unit: Unit, answer: str) -> list[Request]:
        """Return what the judge is asked about a unit, as often as it is asked; at worst each time with a repair."""
        question = self._question(unit, answer)
        asked = [question.request] * self._spec.judge_samples
        if answer == SHORT:
            return asked
        verdict = "x" * (self._usual(self._spec.judge or "", question.request) * BYTES_PER_TOKEN)
        return asked + [pose_again(question, verdict, MAX_FLAW)] * self._spec.judge_samples

    def _question(self, unit: Unit, answer: str) -> JudgeQuestion:
        """Return the question about a unit when every answer is like this one."""
        answers = (answer,) * (1 + len(unit.case.follow_ups))
        if answer != SHORT and unit.case.tools:  # what was called, and what it gave, is shown to the judge too
            rounds = MAX_TOOL_TURNS * len(answers)
            answers = (*answers, (answer + _longest_results(unit.case, answer)) * rounds)
        return pose(unit.case, Observation(answers=answers))

    def _long(self, unit: Unit) -> str:
        """Return an answer as long as it may be."""
        if self._quoting is not Quoting.ALL:
            return SHORT
        tokens = self._usual(unit.subject.agent, request_of(unit, self._spec, unit.case.messages))
        return "x" * (tokens * BYTES_PER_TOKEN)

    def _usual(self, agent: str, request: Request = _PLAIN) -> int:
        """Return how many tokens an agent may write in answer to a request."""
        return self._directory.find(agent).profile.limit(request) if agent else DEFAULT_MAX_TOKENS


def _longest_results(case: Case, answer: str) -> str:
    """Return as much text as the results of one round of tool calls can have; errors quote what the agent wrote."""
    longest = max((len(result.result.encode()) for tool in case.tools for result in tool.results), default=0)
    return answer + "x" * (MAX_TOOL_CALLS * (longest + TOOL_RESULT_BYTES))
