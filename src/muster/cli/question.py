"""A question put to an agent, durably: checked before anything is stored, shown while it is written."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.cli.answering import Answer
from muster.cli.clean import clean
from muster.cli.driving import detached, drive
from muster.cli.pooled import pooled
from muster.cli.progress import Display
from muster.cli.sending import Sending
from muster.cli.speech import warn
from muster.cli.writer import Writer
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import Fallback, Run

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle

KEY = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of whom, and how."""

    agent: str
    prompt: str
    sending: Sending
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    budget: str | None = None
    name: str | None = None
    timeout: float | None = None
    streams: bool = False
    tells: bool = True  # why it takes long, on standard error


async def put(muster: "Muster", question: Question, display: Display) -> Answer:
    """Ask, and give the run with the reply; detached, without one."""
    check_name(question.name)
    _check_agent(muster, question)
    writer = Writer(muster.settings.secrets) if question.streams else None
    handle = await muster.start(
        "ask",
        _spec(question),
        budget_usd=question.budget,
        name=question.name,
        timeout=question.timeout,
        dispatch=question.sending.dispatch,
        detach=question.sending.detach,
        on_delta=writer,
    )
    watching = asyncio.ensure_future(_watch_retries(handle, writer, question))
    try:
        run = await drive(muster, handle, display)
    finally:
        watching.cancel()
        if writer is not None:
            writer.break_line()
    if detached(run):
        workers = len(await muster.engine.workers())
        return Answer(run=run, reply=None, pooled=await pooled(muster, run), workers=workers)
    reply = await _reply(muster, run)
    if writer is not None:
        writer.finish(reply.text)
    return Answer(run=run, reply=reply, pooled=await pooled(muster, run))


async def _reply(muster: "Muster", run: Run) -> Reply:
    entry = await muster.store.journal.find(run.id, KEY)
    if entry is None or entry.reply is None:
        raise NotFound(f"run {run.id} has no reply")
    return entry.reply


def check_name(name: str | None) -> None:
    """Refuse names that would stand for something else."""
    if name is not None and (not name.strip() or name == "last" or not name.isprintable()):
        raise BadArgument(
            f"{name!r} cannot be the name of a run", suggestions=("use a printable word, but not `last`",)
        )


def _check_agent(muster: "Muster", question: Question) -> None:
    """Find out before a run is stored whether there is such an agent with a key and a price."""
    agent = muster.directory.find(question.agent)
    request = agent.profile.complete(
        Request(
            messages=(Message(role=Role.USER, text=question.prompt),),
            system=question.system,
            max_tokens=question.max_tokens,
        )
    )
    dispatch = question.sending.dispatch
    batching = muster.directory.batching(question.agent) if question.sending.batch else None
    if batching is None or dispatch.fallback is Fallback.LIVE:
        agent.quote(request)
    if batching is not None:
        batching.quote(request, len(batching.encode(request, dispatch.cache)))
    elif question.sending.batch and question.tells:
        warn(f"{question.agent} answers on this machine and has no batches: it is asked live")


def _spec(question: Question) -> dict[str, object]:
    names = ("agent", "prompt", "system", "max_tokens", "temperature", "seed")
    return {name: getattr(question, name) for name in names} | {"stream": question.streams}


async def _watch_retries(handle: "RunHandle", writer: "Writer | None", question: Question) -> None:
    async for event in handle.events():
        if event.kind != "call.retry":
            continue
        if writer is not None:
            writer.start_over()
        if question.tells:
            message = clean(str(event.data["error"]["message"]))
            when = "in another batch" if question.sending.batch else f"in {event.data['again_in']:.0f} s"
            warn(f"attempt {event.data['attempt']}: {message}; trying again {when}")
