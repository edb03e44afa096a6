"""A battle summed up from the store: its conversation, its decisions, and what it came to."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from itertools import count as count_from

from muster.battles.kind import BATTLE
from muster.battles.spec import BattleSpec, known_spec
from muster.battles.values import (
    DECISION_EVENT,
    MESSAGE_EVENT,
    PLATEAU,
    BattleDecision,
    BattleEnding,
    BattleMessage,
    decision_key,
    detail_of,
    ending_of,
    message_key,
)
from muster.domain.call import Role
from muster.domain.entry import Entry, Event
from muster.domain.errors import state_verb
from muster.domain.ids import RunId
from muster.domain.kind import require_kind
from muster.domain.money import Microdollars
from muster.domain.run import TERMINAL, CallCounts, Run, RunState, Spent
from muster.store.base import Store
from muster.text import typed
from muster.text.words import count

MAX_MESSAGES = 500  # on one page
_PAGE = 250  # events that are read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleUsage:
    """Tokens and time of a conversation, its judges counted too."""

    tokens_in: int = 0
    tokens_out: int = 0
    calls: int = 0

    def plus(self, other: "BattleUsage") -> "BattleUsage":
        """Add two."""
        return BattleUsage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            calls=self.calls + other.calls,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BattleReport:
    """Everything that is known of a battle."""

    run: Run
    spec: BattleSpec
    messages: tuple[BattleMessage, ...]
    decisions: tuple[BattleDecision, ...]

    @property
    def ending(self) -> BattleEnding | None:
        """Return why it ended; None while it goes on."""
        return ending_of(self.run)

    @property
    def detail(self) -> str | None:
        """Return more about its end."""
        return detail_of(self.run)

    @property
    def replies(self) -> tuple[BattleMessage, ...]:
        """Return what the agent under test said."""
        return tuple(one for one in self.messages if one.role is Role.ASSISTANT)

    @property
    def turns(self) -> int:
        """Return how often the agent under test has answered."""
        return len(self.replies)

    @property
    def progress(self) -> float:
        """Return how far it is, from 0 to 1."""
        if self.run.state in TERMINAL:
            return 1.0
        return min(1.0, self.turns / self.spec.message_limit)

    @property
    def last_activity(self) -> float:
        """Return when something was last said or decided."""
        said, made = (one.created_at for one in self.messages), (one.created_at for one in self.decisions)
        return max(*said, *made, self.run.ended_at or self.run.started_at or self.run.created_at, 0.0)

    @property
    def usage(self) -> BattleUsage:
        """Return all tokens, those of judges too."""
        said, made = self.messages, self.decisions
        return BattleUsage(
            tokens_in=sum(one.tokens_in for one in said) + sum(one.tokens_in for one in made),
            tokens_out=sum(one.tokens_out for one in said) + sum(one.tokens_out for one in made),
            calls=self.run.calls.done,
        )

    @property
    def cost(self) -> Microdollars:
        """Return what was booked for it, in all lanes."""
        return self.run.spent.settled

    @property
    def ok(self) -> bool:
        """Return whether it is a success: its goal is reached, or there was none and it went to its limit."""
        if self.ending is BattleEnding.GOAL:
            return True
        return self.ending is BattleEnding.LIMIT and not self.spec.decides

    @property
    def verdict(self) -> str:
        """Return on one line what it came to."""
        after = f"after {count(self.turns, 'reply', 'replies')} of {self.spec.agent}"
        if self.ending is None:
            return f"the battle {state_verb(self.run.state)} {after}"
        return f"{battle_words(self)} {after}"


_WORDS: Mapping[BattleEnding, str] = {
    BattleEnding.GOAL: "the goal is reached",
    BattleEnding.ERROR: "it failed",
    BattleEnding.MANUAL: "it was canceled",
    BattleEnding.TIMEOUT: "its time is over",
    BattleEnding.BUDGET: "its budget is used up",
}


def battle_words(report: BattleReport) -> str:
    """Return why a battle ended, in words."""
    if report.ending is BattleEnding.LIMIT and report.detail == PLATEAU:
        return f"no rise of the judge's confidence in {report.spec.plateau_turns} turns: the goal is not reached"
    if report.ending is BattleEnding.LIMIT:
        return "the limit came before the goal" if report.spec.decides else "the limit is reached"
    return _WORDS[report.ending] if report.ending else "it goes on"


async def summarize_battle(store: Store, run: Run) -> BattleReport:
    """Sum a battle up; raises BadArgument for a run of another workload."""
    require_kind(run, BATTLE)
    return BattleReport(
        run=run,
        spec=known_spec(run.spec),
        messages=tuple([one async for one in messages_of(store, run.id)]),
        decisions=tuple([one async for one in decisions_of(store, run.id)]),
    )


async def messages_of(
    store: Store, run: RunId, since: int = 0, limit: int | None = None
) -> AsyncIterator[BattleMessage]:
    """Yield the messages after a number, in their order."""
    numbers = count_from(since + 1) if limit is None else range(since + 1, since + 1 + limit)
    for seq in numbers:
        entry = await store.journal.find(run, message_key(seq))
        if entry is None:
            return
        yield typed.convert(_value(entry), BattleMessage)


async def decisions_of(store: Store, run: RunId) -> AsyncIterator[BattleDecision]:
    """Yield the decisions of all turns, in their order, up to the first turn that has none."""
    for turn in count_from(1):
        entry = await store.journal.find(run, decision_key(turn, 1))
        if entry is None:  # those of a turn come before the next reply, and the spec says whether turns have any
            return
        for number in count_from(2):
            yield typed.convert(_value(entry), BattleDecision)
            entry = await store.journal.find(run, decision_key(turn, number))
            if entry is None:
                break


def _value(entry: Entry) -> dict[str, object]:
    found = dict(entry.value) if isinstance(entry.value, Mapping) else {}
    return found | {"created_at": entry.settled_at or entry.opened_at}


async def events_until(store: Store, run: RunId, seq: int) -> AsyncIterator[Event]:
    """Yield the events of a run up to a number."""
    after = 0
    while after < seq:
        page = await store.events.read(run, after, _PAGE)
        for event in page:
            if event.seq <= seq:
                yield event
        after = page[-1].seq if page else seq


async def battle_at(store: Store, run: Run, event: Event, state: RunState) -> BattleReport:
    """Sum a battle up as it stood after one of its events, from that and those before it."""
    if state in TERMINAL:
        return await summarize_battle(store, run)
    messages: list[BattleMessage] = []
    decisions: list[BattleDecision] = []
    costs: dict[object, int] = {}  # of each attempt, as it was booked last
    done: set[object] = set()
    started: float | None = None
    async for one in events_until(store, run.id, event.seq):
        if one.kind == MESSAGE_EVENT:
            messages.append(typed.convert({**one.data, "created_at": one.at}, BattleMessage))
        elif one.kind == DECISION_EVENT:
            decisions.append(typed.convert({**one.data, "created_at": one.at}, BattleDecision))
        elif one.kind == "run.started":
            started = one.at
        elif one.kind.startswith("call."):
            costs[one.data.get("key"), one.data.get("attempt")] = int(str(one.data.get("cost") or 0))
            if one.kind in ("call.done", "call.reused") or one.data.get("kept"):
                done.add(one.data.get("key"))
    before = replace(
        unended(run, state),
        started_at=started,
        calls=CallCounts(done=len(done)),
        spent=Spent(billed=Microdollars(sum(costs.values()))),
    )
    return BattleReport(
        run=before,
        spec=known_spec(run.spec),
        messages=tuple(messages),
        decisions=tuple(decisions),
    )


def unended(run: Run, state: RunState) -> Run:
    """Return a run as it was before its end."""
    return replace(run, state=state, ended_at=None, ended_reason=None, error=None, result=None)
