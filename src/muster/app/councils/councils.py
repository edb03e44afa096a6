"""Councils: put together, started, told something, stopped and summed up. `Muster.councils`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.app.base.backend import Backend
from muster.app.base.costs import NOTHING, Load, Quoter, Quoting
from muster.app.base.media import media_file
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions
from muster.app.runs.reports import RunReport
from muster.app.runs.runs import Runs
from muster.councils.baseline import MAX_SAMPLES
from muster.councils.kind import COUNCIL
from muster.councils.members.prompts import request_of
from muster.councils.members.turns import Council, propose_turn
from muster.councils.order import CouncilFields, CouncilOrder, MemberFields, MemberOrder
from muster.councils.phase import STOP
from muster.councils.policy import NAME, CouncilInspection, read_policy
from muster.councils.reports.formats import report_of_council
from muster.councils.reports.json_report import CouncilView, council_view
from muster.councils.rules.outcome import CouncilOutcome, CouncilRound
from muster.councils.rules.values import CouncilAbstention, CouncilMember, Evaluation
from muster.councils.spec import WORKLOAD, CouncilSpec, read_spec, require_council, stored
from muster.councils.summary import AgentCost, CouncilReport, Injection, summarize_council
from muster.councils.workload import INJECT
from muster.domain.advice import ArgumentAdvice
from muster.domain.call import says_something
from muster.domain.canonical import Json
from muster.domain.dispatch import LIVE, Dispatch
from muster.domain.effort import with_effort
from muster.domain.entry import Signal
from muster.domain.errors import BadArgument, BadFile, Conflict, NotFound
from muster.domain.media import references
from muster.domain.order import given_by
from muster.domain.run import TERMINAL, Run
from muster.engine.drive import Listener
from muster.text.document_tree import Unreadable
from muster.text.files import opened
from muster.text.files import shown as shown_path
from muster.text.media_files import SUFFIXES

__all__ = [
    "AgentCost",
    "CouncilAbstention",
    "CouncilInspection",
    "CouncilMember",
    "CouncilOutcome",
    "CouncilPlan",
    "CouncilReport",
    "CouncilRound",
    "CouncilSpec",
    "CouncilView",
    "Councils",
    "Evaluation",
    "Injection",
    "council_view",
]

MAX_FILE = 1_000_000  # bytes of a file that is part of the question
MAX_INJECTION = 100_000  # characters; every member reads it in every phase after


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilPlan:
    """How often each agent would be asked at most, and what its first call can cost at most."""

    loads: tuple[tuple[str, Load], ...]
    most_calls: int  # in all rounds, repairs left out


def member_of(order: MemberOrder) -> CouncilMember:
    """Return a member that was ordered."""
    return CouncilMember(name=with_effort(order.agent, order.model_effort), **given_by(MemberFields, order))


def _with_effort(members: Iterable[CouncilMember], order: CouncilOrder) -> tuple[CouncilMember, ...]:
    return tuple(replace(one, name=with_effort(one.name, order.model_effort)) for one in members)


class Councils(KindPart):
    """The councils of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs = runs

    def load(self, path: str | Path) -> CouncilSpec:
        """Read a policy, or that of a folder; its question is still to be put, and more agents may join."""
        path = Path(path)
        return read_policy(path / NAME if path.is_dir() else path, alone=False)

    def spec(
        self,
        question: str,
        agents: Iterable[str | CouncilMember] = (),
        *,
        policy: CouncilSpec | None = None,
        files: Iterable[str | Path] = (),
        **chosen: Any,
    ) -> CouncilSpec:
        """Return the spec of a council; what is given counts before what the policy says.

        Agents come after those of the policy. `chosen` are fields of a CouncilSpec (rounds, effort, …); None leaves one
        as it is. Raises BadArgument with everything that is wrong.
        """
        added = tuple(CouncilMember(name=one) if isinstance(one, str) else one for one in agents)
        base = policy or CouncilSpec(question="", members=())
        members = (*base.members, *added)
        given = {name: value for name, value in chosen.items() if value is not None}
        named = [Path(file) for file in files]
        shown = tuple(media_file(path) for path in named if path.suffix.lower() in SUFFIXES)
        texts = (_quoted(path) for path in named if path.suffix.lower() not in SUFFIXES)
        whole = "\n\n".join([question, *texts])
        made = replace(
            base,
            question=whole if says_something(question) else "",
            members=members,
            media=shown or base.media,
            **given,
        )
        return self._completed(made)

    def ordered(self, order: CouncilOrder) -> CouncilSpec:
        """Return the spec of a council that was ordered; raises BadArgument with everything that is wrong."""
        policy = None if order.policy_file is None else self.load(order.policy_file)
        members = [CouncilMember(name=one) if isinstance(one, str) else member_of(one) for one in order.agents]
        return self.spec(
            order.question or "",
            _with_effort(members, order),
            policy=policy and replace(policy, members=_with_effort(policy.members, order)),
            files=order.files,
            **given_by(CouncilFields, order),
        )

    def _completed(self, spec: CouncilSpec) -> CouncilSpec:
        """Return a valid council whose people are marked, and whose author is the moderator unless it is a member."""
        spec = self._moderated(replace(spec, members=tuple(self._told_apart(member) for member in spec.members)))
        require_council(spec)
        return spec

    def _moderated(self, spec: CouncilSpec) -> CouncilSpec:
        is_member = any(member.name == spec.synthesis for member in spec.members)
        if spec.moderator is None and spec.synthesis is not None and not is_member:
            spec = replace(spec, moderator=CouncilMember(name=spec.synthesis), synthesis=None)
        return spec if spec.moderator is None else replace(spec, moderator=self._told_apart(spec.moderator))

    def _told_apart(self, member: CouncilMember) -> CouncilMember:
        """Return a member that is marked as a person if its agent is one."""
        return replace(member, person=True) if self._directory.is_person(member.name) else member

    def plan(self, spec: CouncilSpec, dispatch: Dispatch = LIVE, quoting: Quoting = Quoting.ALL) -> CouncilPlan:
        """Return what a council would ask at most; raises for agents that cannot be asked."""
        self._require_fitting(spec)
        quoter = Quoter(self._directory, dispatch, quoting)
        council = Council(
            question=spec.question, members=spec.members, rounds=spec.rounds, seed=0, media=references(spec.media)
        )
        request = request_of(propose_turn(council, spec.members[0], ()))
        loads = []
        for name in spec.agents:
            mode = self._directory.mode_of(name, dispatch.mode)
            wants = quoter.wants(name)
            loads.append((name, quoter.load(name, [request], [request], 1, mode) if wants else NOTHING))
        return CouncilPlan(loads=tuple(loads), most_calls=2 * spec.rounds * len(spec.members))

    def _require_fitting(self, spec: CouncilSpec) -> None:
        """Raise BadArgument for an agent that cannot do its part."""
        if spec.baseline is not None and self._directory.is_person(spec.baseline):
            raise BadArgument(
                f"the baseline {spec.baseline!r} is a person, who would be asked the same question up to "
                f"{MAX_SAMPLES} times",
                suggestions=(ArgumentAdvice("baseline", words="name a model or a program with {}"),),
            )
        if spec.author is not None and not self._directory.takes_prompts(spec.author.name):
            raise BadArgument(
                f"{spec.author.name!r} cannot write the answer: it is a program of the exec protocol, which only "
                "proposes and evaluates",
                suggestions=(f'set mode = "plain" in [agents.{spec.author.name}], or name another agent',),
            )

    async def start(
        self,
        spec: CouncilSpec,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
    ) -> RunHandle:
        """Start a council in this process; raises before anything is stored when an agent cannot be asked.

        With `detach` it is driven only until it waits for its batches.
        """
        chosen, spec = options or self._runs.options(), self._completed(spec)
        self.plan(spec, chosen.dispatch, Quoting.FIRST)
        chosen = replace(chosen, media=spec.media)
        return await self._runs.start(WORKLOAD, stored(spec), chosen, detach=detach, on_delta=on_delta)

    async def submit(self, spec: CouncilSpec, options: RunOptions | None = None) -> RunHandle:
        """Store a council for the workers."""
        chosen, spec = options or self._runs.options(), self._completed(spec)
        self.plan(spec, chosen.dispatch, Quoting.FIRST)
        return await self._runs.submit(WORKLOAD, stored(spec), replace(chosen, media=spec.media))

    async def find(self, reference: str) -> Run:
        """Return a council by its reference; `last` is the newest council."""
        return await self._runs.of_kind(COUNCIL, reference)

    async def inject(self, reference: str, text: str, *, client_id: str | None = None) -> Signal:
        """Tell all members something; they are told in every phase that begins from now on."""
        if not says_something(text):
            raise BadArgument("the text is empty; nothing was sent")
        if len(text) > MAX_INJECTION:
            raise BadArgument(
                f"the text has {len(text):,} characters, and the maximum is {MAX_INJECTION:,}; nothing was sent"
            )
        run = await self.find(reference)
        return await self._runs.send(run.id, INJECT, text, client_id=client_id)

    async def stop(self, reference: str, *, client_id: str | None = None) -> Signal:
        """End a council with the best proposal so far; calls that are at work are waited for."""
        run = await self.find(reference)
        return await self._runs.send(run.id, STOP, True, client_id=client_id)

    async def trace(self, reference: str) -> CouncilReport:
        """Return what happened in a council round by round, also while it is held."""
        return await self.trace_of(await self.find(reference))

    async def trace_of(self, run: Run) -> CouncilReport:
        """Return what happened in a council round by round."""
        return await summarize_council(self._store, run)

    def people_to_ask(self, run: Run) -> tuple[str, ...]:
        """Return the members of a council that are persons, until the council has ended; none for any other run."""
        if run.workload != WORKLOAD or run.state in TERMINAL:
            return ()
        return tuple(member.name for member in read_spec(run.spec).members if member.person)

    def require_no_people_to_ask(self, run: Run) -> None:
        """Raise Conflict while members that are persons may be asked: a report says whose proposals they weigh."""
        people = self.people_to_ask(run)
        if people:
            raise Conflict(
                f"the report of run {run.id} is withheld; it would show {' and '.join(people)} who wrote what",
                suggestions=("read it when the council has ended",),
            )

    async def report(self, run: Run) -> RunReport[CouncilReport]:
        """Return a council summed up, to be written in any format."""
        return await report_of_council(self._store, run)

    async def result(self, reference: str) -> CouncilOutcome:
        """Return what a council came to; raises BadArgument for one that has no result."""
        found = await self.trace(reference)
        if found.outcome is None:
            raise BadArgument(
                f"run {found.run.id} has no result: it is {found.run.state}",
                suggestions=(f"muster trace {found.run.id}",),
            )
        return found.outcome

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being held; elsewhere the keys of this process do not count."""
        self.plan(read_spec(spec), dispatch, Quoting.FIRST if here else Quoting.NONE)

    async def output(self, run: Run) -> str:
        """Return the answer of a council: what was written from its proposals, or the best of them."""
        report = await self.trace_of(run)
        synthesis = None if report.outcome is None else report.outcome.synthesis
        best = synthesis or report.winner
        return "" if best is None else best.text

    def rounds_of(self, run: Run) -> int:
        """Return how many rounds a council may hold."""
        return read_spec(run.spec).rounds


def _quoted(path: Path) -> str:
    """Return a file as part of a question; raises BadFile for one that is too large or no text."""
    if not path.exists():
        raise NotFound(f"no such file: {path}")
    try:
        with opened(path) as file:
            data = file.read(MAX_FILE + 1)
    except Unreadable as error:
        raise BadFile(shown_path(path), error.message) from None
    if len(data) > MAX_FILE:
        raise BadFile(shown_path(path), f"larger than {MAX_FILE:,} bytes, the maximum for a file of a question")
    try:
        return f"# File {path.name}\n{data.decode('utf-8')}"
    except UnicodeDecodeError:
        raise BadFile(shown_path(path), "is not UTF-8 text") from None
