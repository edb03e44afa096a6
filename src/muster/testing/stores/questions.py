"""What every store must do about questions: each is opened once without money, answered once, and becomes a reply."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from dataclasses import replace

from muster.domain.call import Reply
from muster.domain.entry import AwaitedSignal, EntryKind, EntryState, NewSignal, answer_channel
from muster.domain.errors import AwaitsSignal, Conflict, LeaseLost, NotFound
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.store.base import AnswerTaking, QuestionOpening, RunRelease, Store
from muster.testing.stores.values import NOW, OTHER, SECRET, Check, driven, new_run, opening, raises, stored

KEY = "ask"
LATE = {"code": "timed_out", "message": "nobody answered"}
ANSWER = NewSignal(
    address="lineage:run1", channel=answer_channel(KEY), payload={"text": "yes"}, client_id="c1", at=NOW + 5
)


def asking(run: RunId, epoch: int, key: str = KEY, *, at: float = NOW) -> QuestionOpening:
    """Make a question about to be asked."""
    request = '{"messages":[{"role":"user","text":"well?"}]}'
    return QuestionOpening(run=run, epoch=epoch, key=key, digest="d", agent="me", request=request, at=at)


def taking(run: RunId, epoch: int, *, failing: bool = False) -> AnswerTaking:
    """Make a request for the answer."""
    failure = LATE if failing else None
    return AnswerTaking(run=run, epoch=epoch, key=KEY, address=ANSWER.address, at=NOW + 9, failure=failure)


async def opens_a_question_once_and_without_money(store: Store) -> None:
    """A question is a call without attempts; asking again changes nothing, and keeps the time of the first."""
    run, claim = await driven(store)
    assert await store.questions.ask(asking(run, claim.epoch)) == NOW
    assert await store.questions.ask(asking(run, claim.epoch, at=NOW + 3)) == NOW
    entry = await store.journal.find(run, KEY)
    assert entry is not None
    assert (entry.kind, entry.state, entry.attempts, entry.agent) == (EntryKind.CALL, EntryState.OPEN, 0, "me")
    found = await stored(store, run)
    assert (found.calls.total, found.spent.reserved) == (1, 0)
    assert not await store.archive.attempts(run)
    assert [one.key for one in await store.questions.unanswered(run)] == [KEY]
    kinds = [event.kind for event in await store.events.read(run, 0, 100)]
    assert kinds.count("call.asked") == 1


async def makes_the_answer_the_reply(store: Store) -> None:
    """The answer is taken with the reply that it becomes; taking it again gives back that reply."""
    run, claim = await driven(store)
    await store.questions.ask(asking(run, claim.epoch))
    assert await store.questions.settle(taking(run, claim.epoch)) is None
    await store.questions.answer(run, KEY, ANSWER)
    assert not await store.questions.unanswered(run)
    reply = await store.questions.settle(taking(run, claim.epoch))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.cost, reply.timings.waited) == ("yes", 0, 5.0)
    assert await store.questions.settle(taking(run, claim.epoch, failing=True)) == reply
    entry = await store.journal.find(run, KEY)
    assert entry is not None
    assert (entry.state, entry.reply) == (EntryState.DONE, reply)
    assert not await store.signals.untaken(ANSWER.address, ANSWER.channel)
    assert (await stored(store, run)).calls.done == 1


async def fails_a_question_that_nobody_answered(store: Store) -> None:
    """A call whose time is over fails, cannot be answered, and can be asked again."""
    run, claim = await driven(store)
    await store.questions.ask(asking(run, claim.epoch))
    assert await store.questions.settle(taking(run, claim.epoch, failing=True)) is None
    entry = await store.journal.find(run, KEY)
    assert entry is not None
    assert (entry.state, entry.error) == (EntryState.FAILED, LATE)
    assert (await stored(store, run)).calls.failed == 1
    await raises(Conflict, store.questions.answer(run, KEY, ANSWER))
    assert await store.questions.ask(asking(run, claim.epoch, at=NOW + 20)) == NOW + 20
    assert (await stored(store, run)).calls.failed == 0
    await store.questions.answer(run, KEY, ANSWER)


async def prefers_an_answer_to_the_end_of_its_time(store: Store) -> None:
    """An answer that is stored when the time is over counts."""
    run, claim = await driven(store)
    await store.questions.ask(asking(run, claim.epoch))
    await store.questions.answer(run, KEY, ANSWER)
    reply = await store.questions.settle(taking(run, claim.epoch, failing=True))
    assert reply is not None
    assert reply.text == "yes"


async def takes_one_answer_of_two_senders(store: Store) -> None:
    """The second of two answers is refused; the same client id again is the same answer, also after it was taken."""
    run, claim = await driven(store)
    await store.questions.ask(asking(run, claim.epoch))
    other = replace(ANSWER, payload={"text": "no"}, client_id="c2")
    results = await asyncio.gather(
        store.questions.answer(run, KEY, ANSWER), store.questions.answer(run, KEY, other), return_exceptions=True
    )
    assert [isinstance(result, Conflict) for result in results] == [False, True]
    assert await store.questions.answer(run, KEY, ANSWER) == results[0]
    await store.questions.settle(taking(run, claim.epoch))
    assert await store.questions.answer(run, KEY, ANSWER) == results[0]
    await raises(Conflict, store.questions.answer(run, KEY, other))
    sent = await store.questions.sent(run, "c1")
    assert sent is not None
    assert (sent.run, sent.key, sent.signal.payload) == (run, KEY, {"text": "yes"})
    assert await store.questions.sent(run, "c2") is None


async def refuses_answers_to_what_is_not_a_question(store: Store) -> None:
    """Calls to other agents, keys that nobody knows and runs that are over take no answers."""
    run, claim = await driven(store)
    await raises(NotFound, store.questions.answer(run, KEY, ANSWER))
    await store.journal.open(opening(run, claim.epoch, KEY))
    assert not await store.questions.unanswered(run)
    await raises(Conflict, store.questions.answer(run, KEY, ANSWER))
    await raises(Conflict, store.questions.ask(asking(run, claim.epoch)))
    await store.questions.ask(asking(run, claim.epoch, "other"))
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.FAILED, reason="x", at=NOW + 1))
    assert not await store.questions.unanswered(run)
    channel = answer_channel("other")
    await raises(Conflict, store.questions.answer(run, "other", replace(ANSWER, channel=channel)))


async def lets_only_the_driver_ask_and_take(store: Store) -> None:
    """A driver that was replaced asks nothing and takes nothing."""
    run, claim = await driven(store)
    await store.questions.ask(asking(run, claim.epoch))
    await store.questions.answer(run, KEY, ANSWER)
    second = await store.leases.claim(run, OTHER, claim.epoch, NOW + 20, NOW + 35)
    await raises(LeaseLost, store.questions.ask(asking(run, claim.epoch, "more")))
    await raises(LeaseLost, store.questions.settle(taking(run, claim.epoch)))
    assert await store.questions.settle(taking(run, second.epoch)) is not None


async def finds_and_wakes_questions_of_children(store: Store) -> None:
    """The questions of a run are those of all runs below it; an answer queues the run at the top."""
    root, claim = await driven(store)
    child = await store.runs.create(new_run("child1", parent=root, parent_key="c"))
    its = await store.leases.claim(child.id, OTHER, child.lease.epoch, NOW, NOW + 15)
    await store.questions.ask(asking(child.id, its.epoch))
    assert [one.run for one in await store.questions.unanswered(root)] == [child.id]
    awaited = AwaitedSignal(address=child.lineage_level, channel=ANSWER.channel)
    left = RunRelease(state=RunState.WAITING, reason=AwaitsSignal.code, at=NOW + 1, awaited=(awaited,))
    await store.leases.release(child.id, its.epoch, left)
    await store.leases.release(root, claim.epoch, replace(left, awaited=()))
    await store.questions.answer(child.id, KEY, replace(ANSWER, address=child.lineage_level))
    assert (await stored(store, root)).state is RunState.QUEUED
    assert await store.questions.sent(root, "c1") is not None


async def stores_no_secret_of_an_answer(store: Store) -> None:
    """Secrets are taken out of questions and answers; the same answer again is still the same."""
    run, claim = await driven(store)
    request = f'{{"messages":[{{"role":"user","text":"{SECRET}"}}]}}'
    await store.questions.ask(replace(asking(run, claim.epoch), request=request))
    (question,) = await store.questions.unanswered(run)
    secret = replace(ANSWER, payload={"text": f"use {SECRET}"}, sender=SECRET)
    first = await store.questions.answer(run, KEY, secret)
    assert await store.questions.answer(run, KEY, secret) == first
    reply = await store.questions.settle(taking(run, claim.epoch))
    assert SECRET not in f"{question} {first} {reply}"


CHECKS: tuple[Check, ...] = (
    opens_a_question_once_and_without_money,
    makes_the_answer_the_reply,
    fails_a_question_that_nobody_answered,
    prefers_an_answer_to_the_end_of_its_time,
    takes_one_answer_of_two_senders,
    refuses_answers_to_what_is_not_a_question,
    lets_only_the_driver_ask_and_take,
    finds_and_wakes_questions_of_children,
    stores_no_secret_of_an_answer,
)
