"""The frame around every command: the shared options, and what becomes of errors. Knows no command."""

import errno
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from muster.cli.line import Group, Misuse, Option
from muster.cli.line.group import CliCommand as Member
from muster.cli.line.parameters import HelpWanted, read, read_before
from muster.cli.terminal.output import OutputOptions, fail, fail_with, note, print_json, say, warn

if TYPE_CHECKING:
    from muster.app import Muster, Patience

T = TypeVar("T")
Command = Callable[..., int | None]

JsonOption = Annotated[bool, Option("--json", help="Answer with one JSON envelope.")]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="No progress and no notes.")]
HomeOption = Annotated[
    Path | None, Option("--home", metavar="PATH", help="Where the state is kept (.muster here or above, MUSTER_HOME).")
]


def shared(json: JsonOption = False, quiet: QuietOption = False, home: HomeOption = None) -> OutputOptions:
    """Take what every command and every group takes."""
    return OutputOptions(json=json, quiet=quiet, home=home)


def group(about: str, more: Command | None = None) -> Group:
    """Make a group of commands; `more` takes options of its own, and answers or gives None."""
    return Group(about, shared, more)


def command(app: Group, name: str) -> Callable[[Command], Command]:
    """Register a function whose first argument is the manner; the shared options are added to its own."""

    def register(function: Command) -> Command:
        app.add(name, function)
        return function

    return register


def default(app: Group) -> Callable[[Command], Command]:
    """Register what a group does when the words name none of its members."""

    def register(function: Command) -> Command:
        app.set_default(function)
        return function

    return register


def perform(app: Group, words: Sequence[str]) -> int:
    """Do what the words say; raises Misuse when they say nothing that is known."""
    member: Group | Member = app
    path, manner, rest = "muster", OutputOptions(), list(words)
    try:
        while isinstance(member, Group):
            if (usual := member.default_for(rest)) is not None:
                member = usual
                break
            given, rest = read_before(rest, (*member.shared(), *member.own()))
            manner, given = _joined(manner, path, given)
            if member.more is not None and (code := member.more(manner, **given)) is not None:
                return code
            if not rest:
                return _help(manner, member.help(path))
            member, path, rest = member.find(rest[0], path), f"{path} {rest[0]}", rest[1:]
        manner, given = _joined(manner, path, read(rest, (*member.own(), *member.shared())))
    except HelpWanted:
        return _help(OutputOptions(), member.help(path))
    except Misuse as misuse:
        raise misuse.at(path) from None
    function = member.function
    return answered(manner, lambda: function(manner, **given))


def _joined(before: OutputOptions, path: str, given: dict[str, Any]) -> tuple[OutputOptions, dict[str, Any]]:
    """Join what was said before with what the shared options say here; the rest is the command's own."""
    here = shared(given.pop("json"), given.pop("quiet"), given.pop("home"))
    return before.joined(replace(here, command=path.partition(" ")[2])), given


def _help(manner: OutputOptions, text: str) -> int:
    if manner.json:
        print_json({"ok": True, "command": manner.command, "data": {"help": text}})
    else:
        say(text)
    return 0


def answered(manner: OutputOptions, work: Callable[[], int | None]) -> int:
    """Do the work; every error becomes a message and an exit code."""
    from muster.domain.errors import Interrupted, MusterError

    try:
        signal.signal(signal.SIGTERM, _like_an_interrupt)
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as the entry point left it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return work() or 0
    except MusterError as error:
        return fail(manner, error)
    except KeyboardInterrupt:
        return fail(manner, Interrupted("interrupted"))
    except BrokenPipeError:  # whoever read our output has seen enough
        _silence()
        return 4
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            return fail_with(manner, _unexpected(error), 4)
        _silence()
        sys.stderr.write(f"error: the answer cannot be written: {error.strerror}\n")
        return 4
    except Exception as error:
        return fail_with(manner, _unexpected(error), 4)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # all is said: a signal from here on needs no words


def _silence() -> None:
    """Send what is left of our output nowhere, so that the end of the process does not fail on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _unexpected(error: Exception) -> dict[str, Any]:
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f" ({Path(where.tb_frame.f_code.co_filename).name}:{where.tb_lineno})" if where else ""
    message = f"something unexpected happened: {type(error).__name__}: {error}{place}"
    return {"code": "unexpected", "message": message, "suggestions": ["please report this, with what you did before"]}


def _like_an_interrupt(number: int, frame: object) -> None:
    # Not by raising SIGINT: a shell that starts us in the background has it ignored.
    raise KeyboardInterrupt


def with_muster(
    manner: OutputOptions,
    work: "Callable[[Muster], Awaitable[T]]",
    *,
    allow_unpriced: bool = False,
    keyless: bool = False,
    patience: "Patience | None" = None,
    sweep: bool = True,
    create: bool = False,
) -> T:
    """Open the store, bury the runs of dead drivers, and do some work with it; only with `create` is one made."""
    import asyncio

    from muster.app import open_muster
    from muster.settings import load_settings

    settings = load_settings(manner.home)
    sweep = sweep and (create or os.path.lexists(settings.database))
    opened: list[Muster] = []

    async def inside() -> T:
        async with open_muster(
            settings=settings,
            allow_unpriced=allow_unpriced,
            keyless=keyless,
            patience=patience,
            on_wait=warn,
            create=create,
        ) as muster:
            opened.append(muster)
            if muster.reaped:
                agents = ", ".join(sorted({process.agent for process in muster.reaped if process.agent}))
                count = "a process" if len(muster.reaped) == 1 else f"{len(muster.reaped)} processes"
                note(manner, f"stopped {count} that a dead driver had left behind ({agents})")
            if sweep:
                await _sweep(muster)
            return await work(muster)

    with asyncio.Runner() as runner:
        try:
            return runner.run(inside())
        except KeyboardInterrupt:
            for muster in opened:  # told twice: what still waits for another process's lock waits no longer
                muster.store.stop_waiting()
            raise


async def _sweep(muster: "Muster") -> None:
    """Bury the runs of dead drivers; a store that cannot be written to can still be read."""
    from muster.domain.errors import StoreFailed

    shortage = await muster.store.shortage()
    if shortage is not None:
        warn(f"{shortage}; what it holds can be read, and nothing can be stored or started")
    try:
        await muster.store.sweep()
    except StoreFailed as error:
        warn(f"runs whose driver died are still shown as running: {error.message}")
