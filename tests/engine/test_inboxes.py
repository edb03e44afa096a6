"""What reaches a call while it is made: taken once, remembered, and told again to whoever is asked anew."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.agents.base import Inbox, InboxMessage, OnDelta
from muster.domain.agent import Timeouts
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.canonical import Json
from muster.domain.entry import NewSignal, Signal, slot_address
from muster.domain.errors import Unreachable
from muster.domain.run import RunState
from muster.engine.base.signals import CallInbox
from muster.engine.calls.retry import RetryPolicy
from muster.engine.context import Context
from tests.engine.house import House, Puppet, echo, house, reply

ADDRESS = slot_address("slot-1")
Talk = Callable[[Request, Inbox, int], Awaitable[Reply]]


@dataclass
class Talker(Puppet):
    """An agent that is told more while it works."""

    talk: Talk | None = None
    takes_messages: bool = True

    async def converse(
        self, request: Request, timeouts: Timeouts, inbox: Inbox, on_delta: OnDelta | None = None
    ) -> Reply:
        self.asked.append(request)
        assert self.talk is not None
        return await self.talk(request, inbox, len(self.asked))


def talker(talk: Talk) -> Talker:
    return Talker(echo().answer, talk=talk)


async def send(h: House, text: str) -> None:
    new = NewSignal(address=ADDRESS, channel="inbox", payload=text, client_id=text, at=h.clock.now())
    await h.store.signals.send(new)


def text_of(signal: Signal) -> str:
    return f"<{signal.payload}>"


async def work(ctx: Context, spec: Any) -> Json:
    inbox = ctx.inbox("work", "inbox", slot="slot-1", written=text_of)
    return (await ctx.call("a", "begin", key="work", inbox=inbox)).text


async def take(inbox: Inbox) -> InboxMessage:
    message = await asyncio.wait_for(inbox.next(), 30)
    await inbox.taken(message)
    return message


async def test_another_attempt_is_told_what_the_one_before_had_taken_in(tmp_path: Path) -> None:
    async def talk(request: Request, inbox: Inbox, n: int) -> Reply:
        if n == 1:
            assert [(await take(inbox)).text for _ in range(2)] == ["<one>", "<two>"]
            raise Unreachable("gone")
        return reply(str(request.volatile["inbox"]) + (await take(inbox)).text)

    async with house(tmp_path, a=talker(talk), policy=RetryPolicy(first_delay=0.0)) as h:
        for text in ("one", "two", "three"):
            await send(h, text)
        run = await h.drive(work)
        assert (run.state, run.result) == (RunState.COMPLETED, "['<one>', '<two>']<three>")
        assert not await h.store.signals.untaken(ADDRESS, "inbox")
        taken = [await h.store.journal.find(run.id, f"work/inbox/{n:03d}") for n in (1, 2, 3, 4)]
        assert [entry and entry.value[0]["payload"] for entry in taken] == ["one", "two", "three", None]
        entry = await h.store.journal.find(run.id, "work")
        assert entry is not None
        assert "inbox" not in str(entry.request)


async def test_what_was_offered_and_not_taken_stays_where_it_was(tmp_path: Path) -> None:
    async def talk(request: Request, inbox: Inbox, n: int) -> Reply:
        first = await asyncio.wait_for(inbox.next(), 30)
        second = await asyncio.wait_for(inbox.next(), 30)
        await inbox.taken(second)
        return reply(f"{first.text} {second.text}")

    async with house(tmp_path, a=talker(talk)) as h:
        await send(h, "one")
        await send(h, "two")
        run = await h.drive(work)
        assert run.result == "<one> <two>"
        assert [one.payload for one in await h.store.signals.untaken(ADDRESS, "inbox", 9)] == ["one"]


async def test_what_is_read_is_not_offered_and_what_is_offered_is_not_read(tmp_path: Path) -> None:
    async def talk(request: Request, inbox: Inbox, n: int) -> Reply:
        assert isinstance(inbox, CallInbox)
        offered = [await asyncio.wait_for(inbox.next(), 30)]
        next_ = asyncio.ensure_future(inbox.next())
        read = list(await inbox.read())
        await send(h, "three")
        offered.append(await asyncio.wait_for(next_, 30))
        read += await inbox.read()  # whichever of the two was first has the second message, the other the third
        return reply(" ".join(sorted([*(one.text for one in offered), *(f"<{one.payload}>" for one in read)])))

    async with house(tmp_path, a=talker(talk)) as h:
        await send(h, "one")
        await send(h, "two")
        assert (await h.drive(work)).result == "<one> <three> <two>"


async def test_an_agent_that_cannot_be_told_more_takes_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, a=echo()) as h:
        await send(h, "one")
        assert (await h.drive(work)).result == "begin"
        assert len(await h.store.signals.untaken(ADDRESS, "inbox", 9)) == 1


async def test_a_message_that_somebody_else_has_read_is_not_taken_again(tmp_path: Path) -> None:
    async def talk(request: Request, inbox: Inbox, n: int) -> Reply:
        message = await asyncio.wait_for(inbox.next(), 30)
        await h.store.signals.mark_read(ADDRESS, "inbox", 9)
        await inbox.taken(message)
        return reply()

    async with house(tmp_path, a=talker(talk)) as h:
        await send(h, "one")
        run = await h.drive(work)
        assert run.state is RunState.COMPLETED
        assert await h.store.journal.find(run.id, "work/inbox/001") is None


async def test_what_is_attached_is_sent_and_not_remembered(tmp_path: Path) -> None:
    agent = echo()

    async def ask(ctx: Context, spec: Any) -> Json:
        told = Message(role=Role.USER, text="hello")
        request = Request(messages=(told,), volatile={"environment": {"A": "1"}, "cwd": "here"})
        return (await ctx.call("a", request, key="k")).text

    async with house(tmp_path, a=agent) as h:
        run = await h.create(ask)
        attached: dict[str, Json] = {"environment": {"TOKEN": "of-no-worth"}, "mcp_config": "file"}
        await h.engine.drive(run.id, attached=attached)
        (request,) = agent.asked
        environment = {"A": "1", "TOKEN": "of-no-worth"}
        assert request.volatile == {"environment": environment, "cwd": "here", "mcp_config": "file"}
    assert b"of-no-worth" not in b"".join(path.read_bytes() for path in tmp_path.glob("muster.db*"))
