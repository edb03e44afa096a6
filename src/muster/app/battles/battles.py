"""Battles: put together, started, followed, canceled and summed up. `Muster.battles`."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from muster.app.base.backend import Backend
from muster.app.base.costs import Quoter, Quoting
from muster.app.base.feeds import RunEnd
from muster.app.battles.files import read_media, read_prompt, read_validators
from muster.app.battles.scales import Scales
from muster.app.runs.handle import RunHandle
from muster.app.runs.kind_part import KindPart
from muster.app.runs.options import RunOptions
from muster.app.runs.reports import RunReport
from muster.app.runs.runs import Runs
from muster.battles.judge import judge_question
from muster.battles.kind import BATTLE, SCALE
from muster.battles.order import BattleOrder, ScaleOrder, require_consistent
from muster.battles.prompts import agent_request, counterpart_request, program_request
from muster.battles.reports.formats import report_of_battle
from muster.battles.scale import PLAYED_EVENT
from muster.battles.scale_spec import ScaleSpec
from muster.battles.scale_summary import ScaleReport, scale_at, summarize_scale
from muster.battles.spec import BattleSpec, known_spec, read_spec, stored
from muster.battles.summary import (
    MAX_MESSAGES,
    BattleReport,
    battle_at,
    decisions_of,
    messages_of,
    summarize_battle,
)
from muster.battles.validators import ReplyValidator, ValidatorKind
from muster.battles.values import (
    DECISION_EVENT,
    MESSAGE_EVENT,
    BattleDecision,
    BattleEnding,
    BattleMessage,
    DecisionSource,
    GoalVerdict,
)
from muster.domain.advice import ArgumentAdvice
from muster.domain.call import Request, Role
from muster.domain.canonical import Json
from muster.domain.dispatch import Dispatch
from muster.domain.effort import split_effort, with_effort
from muster.domain.entry import Event
from muster.domain.errors import BadArgument, ErrorCollector
from muster.domain.flaw import FieldFlaw, FlawCode, missing_flaw
from muster.domain.media import Media, references
from muster.domain.order import shared_fields
from muster.domain.run import Run, RunState, state_after
from muster.engine.drive import Listener
from muster.settings.sections import ModelSection, ProgramSection
from muster.text import typed
from muster.text.schemas.guard import in_schema_thread

__all__ = [
    "DECISION_EVENT",
    "MESSAGE_EVENT",
    "BattleDecision",
    "BattleEnding",
    "BattleMessage",
    "BattleReport",
    "BattleSpec",
    "Battles",
    "DecisionSource",
    "GoalVerdict",
    "MessagePage",
    "ReplyValidator",
    "Standing",
]

SMALL_MODELS = {  # by provider, for judges that nobody named
    "anthropic": "anthropic/claude-haiku-5-5",
    "openai": "openai/gpt-5-mini",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage:
    """Some messages of a conversation, and the number after which to ask for more."""

    messages: tuple[BattleMessage, ...]
    next_seq: int


Standing = BattleReport | ScaleReport
_SUMMARIES: Mapping[str, tuple[Callable[..., Awaitable[Standing]], Callable[..., Awaitable[Standing]]]] = {
    BATTLE.workload: (summarize_battle, battle_at),
    SCALE.workload: (summarize_scale, scale_at),
}


class Battles(KindPart):
    """The battles of an open Muster."""

    def __init__(self, backend: Backend, runs: Runs) -> None:
        self._backend = backend
        self._settings, self._store, self._directory = backend.settings, backend.store, backend.directory
        self._runs = runs

    @cached_property
    def scales(self) -> Scales:
        """Return what can be done with scale tests: many battles that measure an agent or a prompt."""
        return Scales(self._backend, self._runs, self.check)

    def spec(
        self,
        agent: str,
        counterpart: str | None = None,
        *,
        goal: str = "",
        judge: str | None = None,
        confirm_judge: str | None = None,
        validators: Iterable[ReplyValidator | Mapping[str, Json]] = (),
        models: Collection[str] | None = None,
        files: Iterable[str | Path | Media] = (),
        **more: Any,
    ) -> BattleSpec:
        """Return the spec of a battle; who is not named is taken from the settings. Raises BadArgument with all flaws.

        `more` are other fields of a BattleSpec; None leaves one as it is. `models` are those that may judge without
        being named, where only some are allowed. `files` are images and documents that belong to the first message.
        """
        battles = self._settings.battles
        other = counterpart or battles.counterpart or agent
        checks = [one if isinstance(one, Mapping) else stored_validator(one) for one in validators]
        errors = ErrorCollector()
        chosen = judge or (errors.check(self._default_judge, agent, models, needed=not checks) if goal else "") or ""
        given: dict[str, Json] = {
            "agent": agent,
            "counterpart": other,
            "goal": goal,
            "judge": chosen,
            "confirm_judge": confirm_judge or (battles.confirm_judge or "" if chosen else ""),
            "validators": checks,
            **{name: value for name, value in more.items() if value is not None},
        }
        given["persona"] = given.get("persona") or self._own_persona(other, agent)
        given["people"] = [name for name in dict.fromkeys((agent, other)) if self._directory.is_person(name)]
        shown = errors.check(read_media, files) or ()
        if shown:
            given["media"] = typed.to_builtins(references(shown))
            given["blind"] = errors.check(self._is_blind, other, shown) or False
        return replace(errors.finish(read_spec, given), media=shown)

    def ordered(self, order: BattleOrder, *, models: Collection[str] | None = None) -> BattleSpec:
        """Return the spec of a battle that was ordered; raises BadArgument with all flaws."""
        chosen = {name: value for name, value in shared_fields(order, BattleSpec).items() if value not in ("", None)}
        checks = [*read_validators(order.validator_texts, order.validators_file), *order.validators]
        agent = with_effort(order.subject, order.model_effort)
        return self.spec(**chosen | {"agent": agent, "validators": checks, "models": models, "files": order.files})

    def ordered_scale(self, order: ScaleOrder, *, models: Collection[str] | None = None) -> ScaleSpec:
        """Return the spec of a scale test that was ordered; raises BadArgument with all flaws."""
        errors = ErrorCollector()
        errors.check(require_consistent, order)
        if errors:  # which of two files or texts is meant, nobody knows
            errors.finish(self.ordered, replace(order, agent=order.subject or "?", model=None), models=models)
        goals = order.goals if order.goals_file is None else self.scales.goals(order.goals_file)
        agents = tuple(with_effort(name, order.model_effort) for name in (order.subject, *order.agents) if name)
        if not agents:
            errors.keep(BadArgument.of([missing_flaw("agents", "name an agent under test")]))
            errors.require()
        whole = replace(order, agent=agents[0], model=None, goal=goals[0].goal if goals else order.goal)
        battle = errors.finish(self.ordered, whole, models=models)
        return self.scales.spec(
            battle,
            runs=order.runs or None,
            concurrency=order.concurrency or None,
            agents=agents,
            prompts=(*order.prompts, *map(read_prompt, order.prompt_files)),
            goals=goals,
            min_goal_rate=order.min_goal_rate,
            reviser=(order.reviser or None) if order.revision else "",
            try_revised=order.try_revised,
        )

    async def check_validators(self, validators: Iterable[Mapping[str, Json]]) -> None:
        """Raise BadArgument for validators with flaws, found in a thread: large patterns and schemas take a while.

        What was found is remembered, so that a spec with the same validators is made at once.
        """
        listed = list(validators)
        if listed:
            await in_schema_thread(read_spec, {"agent": "?", "counterpart": "?", "validators": listed})

    def _default_judge(self, agent: str, models: Collection[str] | None, *, needed: bool) -> str:
        """Return who judges when nobody is named: the operator's choice, or the small model of the same provider."""
        if self._settings.battles.judge:
            return self._settings.battles.judge
        name = agent if agent in self._settings.agents else split_effort(agent)[0]
        section = self._settings.agents.get(name)
        provider = section.kind if isinstance(section, ModelSection) else name.partition("/")[0]
        small = "" if section is not None and not isinstance(section, ModelSection) else SMALL_MODELS.get(provider, "")
        if small and (models is None or small in models):
            return small
        if needed:
            way = ArgumentAdvice("judge", "AGENT", words="name one: {}")
            message = f"a goal needs a judge, and {agent!r} has no default judge"
            raise BadArgument.of(
                [FieldFlaw(path="judge", message=message, code=FlawCode.MISSING, suggestion=way, by_itself=True)],
                suggestions=(way, 'or set judge = "AGENT" under [battles] in muster.toml'),
            )
        return ""

    def _is_blind(self, name: str, media: tuple[Media, ...]) -> bool:
        support = self._directory.find(name).profile.media
        return support is None or any(each.kind not in support.kinds for each in media)

    def _own_persona(self, counterpart: str, agent: str) -> str:
        """Return the system prompt that a declared counterpart has of its own: it is who it plays."""
        if counterpart == agent or counterpart not in self._settings.agents:
            return ""
        return self._directory.find(counterpart).profile.system

    def check(self, spec: BattleSpec, dispatch: Dispatch, quoting: Quoting = Quoting.FIRST) -> None:
        """Raise what would keep a battle from being played: an agent, a key or a price that is not there."""
        quoter = Quoter(self._directory, dispatch, quoting)
        for name in filter(None, dict.fromkeys((spec.judge, spec.confirm_judge))):
            self._directory.find(name)  # without a goal nobody asks a judge, and yet it must be one
            if self._directory.is_person(name):
                raise BadArgument(
                    f"agent {name!r} is a person and cannot judge a battle", suggestions=("name a model",)
                )
        for validator in spec.validators:
            section = self._settings.agents.get(validator.agent)
            if validator.kind is ValidatorKind.PROGRAM and not isinstance(section, ProgramSection):
                raise BadArgument(
                    f"validator {validator.agent!r} is not a program that is declared in muster.toml",
                    suggestions=(f'add [agents.{validator.agent}] with kind = "program"',),
                )
        for name, request in _first_requests(spec):
            mode = self._directory.mode_of(name, dispatch.mode)
            if quoter.wants(name):
                quoter.load(name, [request], [request], 1, mode)

    async def start(
        self,
        spec: BattleSpec,
        options: RunOptions | None = None,
        *,
        detach: bool = False,
        on_delta: Listener | None = None,
    ) -> RunHandle:
        """Start a battle in this process; raises before anything is stored when an agent cannot be asked."""
        chosen = self._options(spec, options)
        self.check(spec, chosen.dispatch)
        return await self._runs.start(BATTLE.workload, stored(spec), chosen, detach=detach, on_delta=on_delta)

    async def submit(self, spec: BattleSpec, options: RunOptions | None = None) -> RunHandle:
        """Store a battle for the workers."""
        chosen = self._options(spec, options)
        self.check(spec, chosen.dispatch)
        return await self._runs.submit(BATTLE.workload, stored(spec), chosen)

    def _options(self, spec: BattleSpec, options: RunOptions | None) -> RunOptions:
        """Return the options of a run with the files of its battle, and its time limit unless they name one."""
        chosen = options or self._runs.options()
        timeout = spec.seconds if chosen.timeout is None else chosen.timeout
        return replace(chosen, timeout=timeout, media=spec.media)

    async def find(self, reference: str) -> Run:
        """Return a battle by its reference, also one of a scale test; `last` is the newest that is not of one."""
        return await self._runs.of_kind(BATTLE, reference)

    async def status(self, reference: str) -> BattleReport:
        """Return how a battle stands: its messages, decisions, usage and cost, from the store."""
        return await summarize_battle(self._store, await self.find(reference))

    async def standing(self, run: Run, update: Event | RunEnd) -> Standing | None:
        """Return how a battle or scale test stood after an update that tells of it; None for any other update.

        From the events up to that one, so that it is the same whenever it is asked for.
        """
        summaries = _SUMMARIES.get(run.workload)
        if summaries is None:
            return None
        whole, at = summaries
        if isinstance(update, RunEnd):
            return await whole(self._store, update.run)
        told = RunState.RUNNING if update.kind == PLAYED_EVENT else state_after(update.kind)
        if told is None:
            return None
        return await at(self._store, await self._runs.find(run.id), update, told)

    async def messages(self, reference: str, since_seq: int = 0, limit: int = 50) -> MessagePage:
        """Return the messages after a number, at most so many."""
        if since_seq < 0:
            raise BadArgument(f"must be 0 or more, not {since_seq!r}", argument="since_seq")
        if not 1 <= limit <= MAX_MESSAGES:
            raise BadArgument(f"must be from 1 to {MAX_MESSAGES}, not {limit!r}", argument="limit")
        run = await self.find(reference)
        found = tuple([one async for one in messages_of(self._store, run.id, since_seq, limit)])
        return MessagePage(messages=found, next_seq=found[-1].seq if found else since_seq)

    async def decisions(self, reference: str) -> tuple[BattleDecision, ...]:
        """Return what was decided after each reply, in order."""
        run = await self.find(reference)
        return tuple([one async for one in decisions_of(self._store, run.id)])

    async def cancel(self, reference: str) -> Run:
        """Cancel a battle; what was said stays."""
        run = await self.find(reference)
        return await self._runs.cancel(run.id)

    async def report(self, run: Run) -> RunReport[BattleReport]:
        """Return a battle summed up, to be written in any format."""
        return await report_of_battle(self._store, run)

    def require(self, spec: Json, dispatch: Dispatch, *, here: bool) -> None:
        """Raise what would keep a stored spec from being played; elsewhere the keys of this process do not count."""
        self.check(known_spec(spec), dispatch, Quoting.FIRST if here else Quoting.NONE)

    def limit_of(self, run: Run) -> int:
        """Return how many replies the agent under test may give."""
        return known_spec(run.spec).message_limit


def stored_validator(validator: ReplyValidator) -> dict[str, Json]:
    """Return a validator as JSON."""
    found = stored(BattleSpec(agent="?", counterpart="?", validators=(validator,)))
    return dict(found["validators"][0])


def _first_requests(spec: BattleSpec) -> list[tuple[str, Request]]:
    """Return one request to each agent, as the first turn has it."""
    first = BattleMessage(seq=1, role=Role.USER, content=spec.first_message)
    said = [first, BattleMessage(seq=2, role=Role.ASSISTANT, content=spec.first_message)]
    programs = [one.agent for one in spec.validators if one.kind is ValidatorKind.PROGRAM]
    return [
        (spec.agent, agent_request(spec, [first], 1)),
        (spec.counterpart, counterpart_request(spec, said, 1)),
        *((name, program_request(spec, said, 1)) for name in programs),
        *((name, judge_question(spec, said, DecisionSource.JUDGE).request) for name in spec.judges),
    ]
