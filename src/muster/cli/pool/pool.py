"""`muster pool`: slots started, scaled and drained; shared context, and messages between slots."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.values import task_id, task_state, task_title
from muster.app.views.errors import pool_error
from muster.app.views.pool import ReachedSlotsView, UnreadView, driven_pool_view, message_view, pool_view, slot_view
from muster.cli.drive import SignalHandler
from muster.cli.line import Argument, Option
from muster.cli.options import UnpricedOption
from muster.cli.pool.tables import slots_table, status_lines, unlisted_words
from muster.cli.service.options import LoggingOptions
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note, say, warn
from muster.domain.entry import Signal
from muster.domain.errors import MusterError, state_verb
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.domain.task import TaskState

if TYPE_CHECKING:
    from rich.console import Console

SlotArgument = Annotated[str, Argument(metavar="SLOT", help="A slot's name or id.")]
NameArgument = Annotated[str, Argument(metavar="NAME", help="The name of the text.")]
FromOption = Annotated[str, Option("--from", metavar="NAME", help="The sender: a slot's name or id.")]


def start(
    common: CommonOptions,
    log: LoggingOptions,
    budget: Annotated[
        str | None, Option("--budget", metavar="USD", help="The budget of all tasks since the pool was created.")
    ] = None,
    until_idle: Annotated[bool, Option("--until-idle", help="Exit when no task is left that can start.")] = False,
    allow_unpriced: UnpricedOption = False,
) -> int:
    """Run the tasks of the pool until it is stopped or drained."""

    async def work(muster: Muster) -> tuple[list[Task], Sequence[Task], PoolStatus]:
        if budget is not None:
            await muster.pool.set_budget(budget)
        ended: dict[str, None] = {}

        def on_end(run: Run) -> None:
            ended[task_id(run)] = None
            if not common.json:
                say(clean(f"task {task_title(run)} {state_verb(task_state(run))}, {run.cost}"))

        def on_error(run: RunId, error: MusterError) -> None:
            warn(f"task {run} could not be executed: {'; '.join((error.message, *error.suggestions))}")

        driver = muster.pool.driver(on_end=on_end, on_error=on_error)
        SignalHandler(muster, warn, on_first=driver.close).install()
        where = f"running the pool of {muster.settings.store_place}"
        await driver.serve(until_idle=until_idle, on_begin=lambda: note(common, where))
        tasks = muster.pool.tasks
        unpaid = [task for task in await tasks.list([TaskState.PENDING]) if task.refusal] if until_idle else []
        return [await tasks.get(name) for name in ended], unpaid, await muster.pool.status()

    tasks, unpaid, found = with_muster(common, work, allow_unpriced=allow_unpriced, create=True, log=log)
    data = driven_pool_view(found, tasks)
    error = pool_error(tasks, unpaid)
    if error is not None:
        return fail_with(common, error, 1, data)
    answer(common, data, lambda console: console.print("\n".join(status_lines(found)), soft_wrap=True))
    return 0


def status(common: CommonOptions) -> None:
    """Show slots, tasks, cost and the process that runs the pool."""

    async def work(muster: Muster) -> PoolStatus:
        return await muster.pool.status()

    found = with_muster(common, work)
    answer(common, pool_view(found), lambda console: console.print("\n".join(status_lines(found)), soft_wrap=True))


def slots(
    common: CommonOptions,
    name: Annotated[str | None, Option("--name", metavar="NAME", help="Only this slot.")] = None,
    role: Annotated[str | None, Option("--role", metavar="ROLE", help="Only slots with this role.")] = None,
    state: Annotated[
        str | None,
        Option("--state", values=("idle", "busy", "stopped", "errored"), help="Only slots in this state."),
    ] = None,
) -> None:
    """List the slots."""

    async def work(muster: Muster) -> tuple[list[Slot], PoolStatus]:
        return list(await muster.pool.slots(name=name, role=role, state=state)), await muster.pool.status()

    found, status = with_muster(common, work)
    _tell_slots(common, found)
    if status.unlisted and (name, role, state) == (None, None, None):
        note(common, f"the pool has cost {status.cost}, {unlisted_words(status)}")


def scale(
    common: CommonOptions,
    number: Annotated[str, Argument(metavar="N|+N|-N", help="The number of slots, or how many to add or remove.")],
) -> None:
    """Change the number of slots; a busy slot is removed when its task ends."""

    async def work(muster: Muster) -> list[Slot]:
        return list(await muster.pool.scale(number))

    _tell_slots(common, with_muster(common, work, create=True))


def drain(
    common: CommonOptions,
    timeout: Annotated[
        float, Option("--timeout", metavar="S", min=0, help="Maximum seconds to wait for running tasks.")
    ] = 60.0,
) -> None:
    """Refuse new tasks, wait for running ones, and stop all slots; pending tasks stay queued."""

    async def work(muster: Muster) -> PoolStatus:
        return await muster.pool.drain(timeout)

    found = with_muster(common, work)
    answer(common, pool_view(found), lambda console: console.print("\n".join(status_lines(found)), soft_wrap=True))


def set_context(
    common: CommonOptions, name: NameArgument, text: Annotated[str, Argument(metavar="TEXT", help="The text.")]
) -> None:
    """Set a text that is added to the prompts of every slot."""

    async def work(muster: Muster) -> None:
        await muster.pool.set_context(name, text)

    with_muster(common, work, create=True)
    answer(common, {"name": name, "text": text}, lambda console: console.print(f"set {name}", soft_wrap=True))


def get_context(common: CommonOptions, name: NameArgument) -> None:
    """Print one of the texts that are added to the prompts of every slot."""

    async def work(muster: Muster) -> str:
        return await muster.pool.context_text(name)

    text = with_muster(common, work)
    answer(common, {"name": name, "text": text}, lambda console: console.print(clean(text), soft_wrap=True))


def delete_context(common: CommonOptions, name: NameArgument) -> None:
    """Delete one of the texts that are added to the prompts of every slot."""

    async def work(muster: Muster) -> None:
        await muster.pool.delete_context(name)

    with_muster(common, work)
    answer(common, {"deleted": name}, lambda console: console.print(f"deleted {name}", soft_wrap=True))


def list_context(common: CommonOptions) -> None:
    """List the texts that are added to the prompts of every slot."""

    async def work(muster: Muster) -> dict[str, str]:
        return dict(await muster.pool.context())

    found = with_muster(common, work)
    lines = [f"{name}: {text}" for name, text in found.items()]
    answer(common, found, lambda console: console.print(clean("\n".join(lines)), soft_wrap=True))


def send(
    common: CommonOptions,
    slot: SlotArgument,
    text: Annotated[str, Argument(metavar="TEXT", when_more="Quote the text.", help="The message.")],
    sender: FromOption = "",
) -> None:
    """Send a message to a slot; its agent gets it once, during its task or in its next prompt."""

    async def work(muster: Muster) -> Signal:
        return await muster.pool.send(slot, text, sender=sender)

    sent = with_muster(common, work)
    answer(common, message_view(sent), lambda console: console.print(f"sent to {slot}", soft_wrap=True))


def broadcast(
    common: CommonOptions,
    text: Annotated[str, Argument(metavar="TEXT", when_more="Quote the text.", help="The message.")],
    sender: FromOption = "",
) -> None:
    """Send a message to every slot except the sender and stopped slots."""

    async def work(muster: Muster) -> list[str]:
        return list(await muster.pool.broadcast(text, sender=sender))

    names = with_muster(common, work)
    words = f"sent to {', '.join(names) or 'nobody'}"
    answer(common, ReachedSlotsView(slots=names), lambda console: console.print(words, soft_wrap=True))


def read(common: CommonOptions, slot: SlotArgument) -> None:
    """Show the unread messages of a slot and mark them as read; its agent does not get them."""

    async def work(muster: Muster) -> list[Signal]:
        return list(await muster.pool.read(slot))

    _tell_messages(common, with_muster(common, work))


def peek(common: CommonOptions, slot: SlotArgument) -> None:
    """Show the unread messages of a slot; they stay unread."""
    _tell_messages(common, _unread(common, slot))


def _tell_messages(common: CommonOptions, found: list[Signal]) -> None:
    lines = [clean(f"{message.sender or 'operator'}: {message.payload}") for message in found]
    data = [message_view(message) for message in found]

    def tell(console: "Console") -> None:
        if lines:
            console.print("\n".join(lines), soft_wrap=True)
        else:
            note(common, "no unread messages")

    answer(common, data, tell)


def count(common: CommonOptions, slot: SlotArgument) -> None:
    """Print the number of unread messages of a slot."""
    number = len(_unread(common, slot))
    answer(common, UnreadView(unread=number), lambda console: console.print(str(number)))


def _unread(common: CommonOptions, slot: str) -> list[Signal]:
    async def work(muster: Muster) -> list[Signal]:
        return list(await muster.pool.unread(slot))

    return with_muster(common, work)


def _tell_slots(common: CommonOptions, found: list[Slot]) -> None:
    def tell(console: "Console") -> None:
        if found:
            console.print(slots_table(found, console.width))
        else:
            note(common, "no slots found; muster pool start creates those of muster.toml")

    answer(common, [slot_view(slot) for slot in found], tell)
