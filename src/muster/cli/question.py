"""A question put to an agent, durably: checked before anything is stored, shown while it is written."""

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.cli.clean import Cleaner, clean
from muster.cli.driving import drive
from muster.cli.progress import Silence
from muster.cli.speech import warn
from muster.domain.call import Message, Reply, Request, Role
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import Run

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.handle import RunHandle

KEY = "ask"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of whom, and how."""

    agent: str
    prompt: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    budget: str | None = None
    name: str | None = None
    timeout: float | None = None
    streams: bool = False
    tells: bool = True  # why it takes long, on standard error


async def put(muster: "Muster", question: Question) -> tuple[Run, Reply]:
    """Ask, and give the run with the reply."""
    check_name(question.name)
    _check_agent(muster, question)
    writer = Writer() if question.streams else None
    handle = await muster.start(
        "ask",
        _spec(question),
        budget_usd=question.budget,
        name=question.name,
        timeout=question.timeout,
        on_delta=writer,
    )
    watching = asyncio.ensure_future(_watch_retries(handle, writer, question.tells))
    try:
        run = await drive(muster, handle, Silence())
    finally:
        watching.cancel()
        if writer is not None:
            writer.break_line()
    entry = await muster.store.journal.find(run.id, KEY)
    if entry is None or entry.reply is None:
        raise NotFound(f"run {run.id} has no reply")
    if writer is not None:
        writer.finish(entry.reply.text)
    return run, entry.reply


def check_name(name: str | None) -> None:
    """Refuse names that would stand for something else."""
    if name is not None and (not name.strip() or name == "last" or not name.isprintable()):
        raise BadArgument(
            f"{name!r} cannot be the name of a run", suggestions=("use a printable word, but not `last`",)
        )


def _check_agent(muster: "Muster", question: Question) -> None:
    """Find out before a run is stored whether there is such an agent with a key and a price."""
    agent = muster.directory.find(question.agent)
    request = Request(
        messages=(Message(role=Role.USER, text=question.prompt),),
        system=question.system,
        max_tokens=question.max_tokens,
    )
    agent.quote(agent.profile.complete(request))


def _spec(question: Question) -> dict[str, object]:
    names = ("agent", "prompt", "system", "max_tokens", "temperature", "seed")
    return {name: getattr(question, name) for name in names} | {"stream": question.streams}


async def _watch_retries(handle: "RunHandle", writer: "Writer | None", tells: bool) -> None:
    async for event in handle.events():
        if event.kind != "call.retry":
            continue
        if writer is not None:
            writer.start_over()
        if tells:
            message = clean(str(event.data["error"]["message"]))
            warn(f"attempt {event.data['attempt']}: {message}; trying again in {event.data['again_in']:.0f} s")


class Writer:
    """Writes an answer to the terminal while it comes, without anything that a terminal would obey."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._parts: list[str] = []
        self._shown = ""  # the last piece that was written

    def __call__(self, key: str, delta: str) -> None:
        """Write some more."""
        self._parts.append(delta)
        self._write(self._cleaner.feed(delta))

    def start_over(self) -> None:
        """Tell that what was written so far does not count."""
        if self._parts:
            self.break_line()
            warn("(the answer broke off; it is asked for again)")
        self._parts, self._cleaner = [], Cleaner()

    def break_line(self) -> None:
        """End the line that is being written."""
        self._write(self._cleaner.finish())
        if self._shown and not self._shown.endswith("\n"):
            self._write("\n")

    def finish(self, text: str) -> None:
        """Write the whole text if it is not what was written."""
        if "".join(self._parts) != text:
            self._write(clean(text))
            self.break_line()

    def _write(self, text: str) -> None:
        if text:
            self._shown = text
            sys.stdout.write(text)
            sys.stdout.flush()
