"""The branch of the call path for people: a question that is open without an attempt, and an answer that is received.

It opens nothing in the ledger, takes no place in its run or in a map, and is not tried again. While nobody answers, the
run waits as for any signal: its clock stands still, and it needs no process.
"""

from math import isinf

from muster.domain.call import Reply
from muster.domain.entry import AwaitedSignal, answer_channel
from muster.domain.errors import TimedOut
from muster.engine.base.driven_run import CallGuard, CallJournal, DrivenRun
from muster.engine.base.mapping import item_under_way
from muster.engine.base.signals import Receiver
from muster.engine.calls.state import CallServices, CallState, require_unicode
from muster.store.base import AnswerTaking, QuestionOpening


class PeoplePath:
    """The calls of one run to people, under one driver."""

    def __init__(
        self, services: CallServices, driven: DrivenRun, journal: CallJournal, guard: CallGuard, receiver: Receiver
    ) -> None:
        self._with, self._journal, self._guard, self._receiver = services, journal, guard, receiver
        self._run, self._epoch = driven.run, driven.epoch

    async def ask(self, asking: CallState) -> Reply:
        """Return the reply from the journal, or the answer as soon as it comes; raises TimedOut when none does."""
        entry = await self._journal.find(asking.key, asking.identity.digest)
        if entry is not None and entry.reply is not None:
            return entry.reply
        require_unicode(asking)
        asking.agent.quote(asking.request)  # raises for what a person cannot be asked
        self._guard.check()
        awaited = await self._open(asking)
        while True:
            over = await self._wait(asking.key, awaited)
            reply = await self._take(asking, awaited, over)
            if reply is not None:
                return reply
            if over:
                raise _late(asking)

    async def _open(self, asking: CallState) -> AwaitedSignal:
        """Write the question into the journal, once, and return what is waited for."""
        since = await self._with.store.questions.ask(
            QuestionOpening(
                run=self._run.id,
                epoch=self._epoch,
                key=asking.key,
                digest=asking.identity.digest,
                agent=asking.agent.profile.name,
                request=asking.identity.text,
                at=self._with.clock.now(),
            )
        )
        self._with.kill.reach("question.asked")
        limit = asking.timeouts.call
        return AwaitedSignal(
            address=self._run.lineage_level,
            channel=answer_channel(asking.key),
            until=None if isinf(limit) else since + limit,
        )

    async def _wait(self, key: str, awaited: AwaitedSignal) -> bool:
        """Wait for the answer and leave the place in a map to another item; returns whether the time is over."""
        item = item_under_way()
        if item is not None:
            item.park()
        try:
            return await self._receiver.wait(key, awaited)
        finally:
            if item is not None:
                item.unpark()

    async def _take(self, asking: CallState, awaited: AwaitedSignal, over: bool) -> Reply | None:
        self._with.kill.reach("question.before_take")
        reply = await self._with.store.questions.settle(
            AnswerTaking(
                run=self._run.id,
                epoch=self._epoch,
                key=asking.key,
                address=awaited.address,
                at=self._with.clock.now(),
                failure=_late(asking).record() if over else None,
            )
        )
        self._with.kill.reach("question.answered")
        return reply


def _late(asking: CallState) -> TimedOut:
    who, seconds = asking.agent.profile.name, asking.timeouts.call
    return TimedOut(f"call {asking.key!r}: agent {who!r}, a person, did not answer within {seconds:g} s")
