"""A question put to an agent, durably: checked before anything is stored, shown while it is written."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.app.ask import Question
from muster.cli.answering import Answer
from muster.cli.clean import clean
from muster.cli.driving import drive
from muster.cli.progress import Display
from muster.cli.sending import Sending
from muster.cli.speech import warn
from muster.cli.writer import Writer
from muster.domain.errors import BadArgument

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A question, and how it is put."""

    question: Question
    sending: Sending
    budget: str | None = None
    name: str | None = None
    timeout: float | None = None
    tells: bool = True  # why it takes long, on standard error


async def put(muster: "Muster", inquiry: Inquiry, display: Display) -> Answer:
    """Ask, and return the run with the reply; detached, without one."""
    check_name(inquiry.name)
    question, sending = inquiry.question, inquiry.sending
    writer = Writer(muster.settings.secrets) if question.stream else None
    options = muster.runs.options(
        budget_usd=inquiry.budget, name=inquiry.name, timeout=inquiry.timeout, dispatch=sending.dispatch
    )
    handle = await muster.start_question(question, options, detach=sending.detach, on_delta=writer)
    if sending.batch and inquiry.tells and not muster.agents.has_batches(question.agent):
        warn(f"{question.agent} answers on this machine and has no batches: it is asked live")
    watching = asyncio.ensure_future(_watch_retries(handle, writer, inquiry))
    try:
        run = await drive(muster, handle, display)
    finally:
        watching.cancel()
        if writer is not None:
            writer.break_line()
    batches = await muster.runs.batches_of(run.id)
    if run.is_detached:
        return Answer(run=run, reply=None, batches=batches, workers=await muster.runs.workers())
    reply = await muster.answer_of(run.id)
    if writer is not None:
        writer.finish(reply.text)
    return Answer(run=run, reply=reply, batches=batches)


def check_name(name: str | None) -> None:
    """Refuse names that would stand for something else."""
    if name is not None and (not name.strip() or name == "last" or not name.isprintable()):
        raise BadArgument(
            f"{name!r} cannot be the name of a run", suggestions=("use a printable word, but not `last`",)
        )


async def _watch_retries(handle: "RunHandle", writer: "Writer | None", inquiry: Inquiry) -> None:
    async for event in handle.events():
        if event.kind != "call.retry":
            continue
        if writer is not None:
            writer.start_over()
        if inquiry.tells:
            message = clean(str(event.data["error"]["message"]))
            when = "in another batch" if inquiry.sending.batch else f"in {event.data['again_in']:.0f} s"
            warn(f"attempt {event.data['attempt']}: {message}; trying again {when}")
