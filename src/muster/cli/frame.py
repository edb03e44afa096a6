"""The frame around every command: the shared options, and what becomes of errors. Knows no command."""

import errno
import inspect
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from muster.cli.manner import Manner
from muster.cli.speech import fail, fail_with, note

if TYPE_CHECKING:
    from muster.app import Muster, Patience

T = TypeVar("T")
Command = Callable[..., int | None]

JsonOption = Annotated[bool, typer.Option("--json", help="Answer with one JSON envelope.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.")]
HomeOption = Annotated[
    Path | None, typer.Option("--home", metavar="PATH", help="Where the state is kept (.muster, MUSTER_HOME).")
]

_SHARED = {"json": (JsonOption, False), "quiet": (QuietOption, False), "home": (HomeOption, None)}


def group(help_text: str) -> typer.Typer:
    """Make a group of commands."""
    app = typer.Typer(help=help_text, rich_markup_mode=None, add_completion=False)

    def callback(
        context: typer.Context, json: JsonOption = False, quiet: QuietOption = False, home: HomeOption = None
    ) -> None:
        context.obj = manner_of(context, json=json, quiet=quiet, home=home)
        help_without_command(context)

    app.callback(invoke_without_command=True, help=help_text)(callback)
    return app


def help_without_command(context: typer.Context) -> None:
    """Print the help of a group when no command of it is named."""
    if context.invoked_subcommand is None:
        manner = context.obj
        if isinstance(manner, Manner) and manner.json:
            from muster.cli.speech import answer

            answer(manner, {"help": context.get_help()}, lambda console: None)
        else:
            typer.echo(context.get_help())


def command(app: typer.Typer, name: str) -> Callable[[Command], Command]:
    """Register a function whose first argument is the manner; the shared options are added to its own."""

    def register(function: Command) -> Command:
        app.command(name)(_framed(function))
        return function

    return register


def manner_of(context: typer.Context, *, json: bool, quiet: bool, home: Path | None) -> Manner:
    """Join what was said at the command with what was said before it."""
    before = context.obj if isinstance(context.obj, Manner) else Manner()
    name = context.command_path.partition(" ")[2]
    return before.joined(Manner(command=name, json=json, quiet=quiet, home=home))


def _framed(function: Command) -> Command:
    def framed(context: typer.Context, json: bool, quiet: bool, home: Path | None, **given: Any) -> int:
        manner = manner_of(context, json=json, quiet=quiet, home=home)
        return answered(manner, lambda: function(manner, **given))

    own = list(inspect.signature(function).parameters.values())[1:]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [
        inspect.Parameter(name, kind, default=default, annotation=annotation)
        for name, (annotation, default) in _SHARED.items()
    ]
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(parameter.replace(kind=kind) for parameter in own), *shared]
    framed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    framed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    framed.__doc__ = function.__doc__
    return framed


def answered(manner: Manner, work: Callable[[], int | None]) -> int:
    """Do the work; every error becomes a message and an exit code."""
    from muster.domain.errors import Interrupted, MusterError

    try:
        signal.signal(signal.SIGTERM, _like_an_interrupt)
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
    manner: Manner,
    work: "Callable[[Muster], Awaitable[T]]",
    *,
    allow_unpriced: bool = False,
    keyless: bool = False,
    patience: "Patience | None" = None,
    sweep: bool = True,
) -> T:
    """Open the store, bury the runs of dead drivers, and do some work with it."""
    import asyncio

    from muster.app import open_muster

    async def inside() -> T:
        async with open_muster(
            manner.home, allow_unpriced=allow_unpriced, keyless=keyless, patience=patience
        ) as muster:
            if muster.reaped:
                agents = ", ".join(sorted({process.agent for process in muster.reaped if process.agent}))
                count = "a process" if len(muster.reaped) == 1 else f"{len(muster.reaped)} processes"
                note(manner, f"stopped {count} that a dead driver had left behind ({agents})")
            if sweep:
                await muster.engine.sweep()
            return await work(muster)

    return asyncio.run(inside())
