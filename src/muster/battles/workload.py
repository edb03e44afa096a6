"""The workload of battles: the sides speak in turns, and after each reply of the agent under test it is decided.

Messages and decisions are events that are told once, so that any process can read a conversation from the store.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from muster.battles.judge import decision_of, judge_question
from muster.battles.order import MAX_REPLIES
from muster.battles.prompts import (
    agent_request,
    closes_unopened,
    counterpart_request,
    program_request,
    spoken,
    spoken_so_far,
)
from muster.battles.rules import FINAL, BattleStop, stop_after
from muster.battles.spec import BattleSpec, read_spec
from muster.battles.validators import ReplyValidator, ValidatorFinding, ValidatorKind, read_program, validate
from muster.battles.values import (
    DECISION_EVENT,
    MESSAGE_EVENT,
    WORKLOAD,
    BattleDecision,
    BattleEnding,
    BattleMessage,
    BattleOutcome,
    DecisionSource,
    GoalVerdict,
    decision_key,
    failed_verdict,
    message_key,
)
from muster.domain.call import Quality, Reply, Request, Role, says_something
from muster.domain.canonical import Json
from muster.domain.errors import BattleFailed
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.judging.base import FAILED_CALL, words_of
from muster.judging.structured import ask_structured
from muster.text import typed
from muster.text.limited.allowance import CpuAllowance
from muster.text.schemas.guard import in_schema_thread
from muster.text.words import shorten

_VALIDATOR_SECONDS = 2.0  # of CPU, for all validators of a reply together
_CLOSING, _MAX_CLOSING = 6, 1500  # messages, and characters of each, that a scale test is shown


@workload(WORKLOAD, check=read_spec)
async def battle(ctx: Context, spec: Any) -> Any:
    """Let two sides talk until the goal is reached or something runs out."""
    # In a thread: the patterns and schemas of a run that is resumed elsewhere are read anew, and may be large.
    playing = _Battle(ctx=ctx, spec=await in_schema_thread(read_spec, spec))
    stop = await playing.play()
    closing = tuple((str(one.role), shorten(one.content, _MAX_CLOSING)) for one in playing.messages[-_CLOSING:])
    return typed.to_builtins(
        BattleOutcome(
            ending=stop.ending,
            detail=stop.detail,
            turns=playing.turn,
            conversation=ctx.run,
            closing=closing,
            unjudged=playing.unjudged if stop.ending is BattleEnding.LIMIT else "",
        )
    )


@dataclass(slots=True, kw_only=True)
class _Battle:
    """A battle that is being played."""

    ctx: Context
    spec: BattleSpec
    messages: list[BattleMessage] = field(default_factory=list)
    history: list[tuple[BattleDecision, ...]] = field(default_factory=list)  # the decisions of each turn
    turn: int = 0
    unopened: set[str] = field(default_factory=set)  # agents whose thinking is closed and never opened
    allowance: CpuAllowance = field(
        default_factory=lambda: CpuAllowance(_VALIDATOR_SECONDS)
    )  # of the validators of a reply

    @property
    def unjudged(self) -> str:
        """Why nobody has judged all replies; empty where each was judged."""
        return failed_verdict(one for turn in self.history for one in turn)

    async def play(self) -> BattleStop:
        """Play turns until there is a reason to stop."""
        await self._say(BattleMessage(seq=1, role=Role.USER, content=self.spec.first_message))
        limit = min(self.spec.message_limit, MAX_REPLIES)  # whoever made the spec
        while True:
            self.turn += 1
            await self._ask(self.spec.agent, agent_request(self.spec, self.messages, self.turn), Role.ASSISTANT)
            self.history.append(tuple(await self._decide()))
            stop = stop_after(self.history, limit=limit, plateau_turns=self.spec.plateau_turns)
            if stop is not None:
                return stop
            request = counterpart_request(self.spec, self.messages, self.turn)
            await self._ask(self.spec.counterpart, request, Role.USER)

    async def _ask(self, agent: str, request: Request, role: Role) -> None:
        """Get the next message of a side; one that says nothing has no next message, and ends the battle."""
        side = "agent" if role is Role.ASSISTANT else "counterpart"
        shown = partial(spoken_so_far, unopened=agent in self.unopened)
        reply = await self.ctx.call(agent, request, key=f"turn/{self.turn:02}/{side}", stream=True, shown=shown)
        said = spoken(reply.text)
        if closes_unopened(reply.text):
            self.unopened.add(agent)
        if reply.quality is Quality.EMPTY or not says_something(said):
            raise BattleFailed(
                f"turn {self.turn}: the {side} {agent!r} gave an empty reply; the conversation cannot continue",
                suggestions=(
                    "raise max_tokens if it was cut off while thinking",
                    "resume the run to continue from here",
                ),
            )
        await self._say(_message(len(self.messages) + 1, role, agent, said, reply))

    async def _say(self, message: BattleMessage) -> None:
        """Add a message to the conversation, and tell it once."""
        self.messages.append(message)
        await self.ctx.emit(message_key(message.seq), MESSAGE_EVENT, _told(message))

    async def _decide(self) -> list[BattleDecision]:
        """Ask validators and then judges until one decides; each decision is stored before the next is made."""
        made: list[BattleDecision] = []
        self.allowance = CpuAllowance(_VALIDATOR_SECONDS)
        for number, validator in enumerate(self.spec.validators, 1):
            made.append(await self._decision(number, self._validation(validator, number)))
            if made[-1].verdict in FINAL:
                return made
        if not self.spec.judges:
            return made
        made.append(await self._decision(len(made) + 1, self._judgement(DecisionSource.JUDGE)))
        if made[-1].verdict is GoalVerdict.YES:
            made.append(await self._decision(len(made) + 1, self._judgement(DecisionSource.CONFIRM)))
        return made

    async def _decision(self, number: int, make: Callable[[], Awaitable[BattleDecision]]) -> BattleDecision:
        """Make a decision once: what depended on time is the same on resume."""

        async def work() -> Json:
            return _told(await make())

        key = decision_key(self.turn, number)
        made = typed.convert(await self.ctx.step(f"{key}/made", work), BattleDecision)
        await self.ctx.emit(key, DECISION_EVENT, _told(made))
        return made

    def _judgement(self, source: DecisionSource) -> Callable[[], Awaitable[BattleDecision]]:
        is_second = source is DecisionSource.CONFIRM
        judge = (self.spec.confirm_judge if is_second else "") or self.spec.judge

        async def make() -> BattleDecision:
            question = judge_question(self.spec, self.messages, source)
            answer = await ask_structured(self.ctx, judge, question, f"turn/{self.turn:02}/{source}")
            return decision_of(self.turn, source, judge, answer)

        return make

    def _validation(self, validator: ReplyValidator, number: int) -> Callable[[], Awaitable[BattleDecision]]:
        async def make() -> BattleDecision:
            blank = BattleDecision(
                turn=self.turn,
                source=DecisionSource.VALIDATOR,
                verdict=GoalVerdict.UNCERTAIN,
                criteria=(validator.name,),
                model=validator.agent,
            )
            if validator.kind is ValidatorKind.PROGRAM:
                return await self._program(validator.agent, blank, f"turn/{self.turn:02}/validator/{number}")
            # In a thread: a pattern may take its whole time limit, and other runs go on meanwhile.
            reply = self.messages[-1].content
            before = self.allowance.left
            finding = await in_schema_thread(validate, validator, reply, self.allowance)
            return replace(_found(blank, finding), latency_ms=round(1000 * (before - self.allowance.left)))

        return make

    async def _program(self, agent: str, blank: BattleDecision, key: str) -> BattleDecision:
        request = program_request(self.spec, self.messages, self.turn)
        try:
            reply = await self.ctx.call(agent, request, key=key)
        except FAILED_CALL as error:
            return replace(blank, reason=f"no verdict: {words_of(error)}")
        return _found(blank, read_program(reply.text)).paid([reply])


def _told(value: BattleMessage | BattleDecision) -> dict[str, Json]:
    """Return a value as its event has it; when it was told, the event itself knows."""
    found: dict[str, Json] = typed.to_builtins(value)
    del found["created_at"]
    return found


def _found(blank: BattleDecision, finding: ValidatorFinding) -> BattleDecision:
    return replace(blank, verdict=finding.verdict, confidence=finding.confidence, reason=finding.reason)


def _message(seq: int, role: Role, agent: str, said: str, reply: Reply) -> BattleMessage:
    return BattleMessage(
        seq=seq,
        role=role,
        content=said,
        agent=agent,
        model=reply.model,
        tokens_in=reply.usage.all_input,
        tokens_out=reply.usage.output,
        cost=reply.cost,
        latency_ms=round(1000 * reply.timings.shown),
        quality=str(reply.quality),
    )
