"""The command `muster`: one process, one command, one exit code; and how usage errors are told."""

import gc
import io
import sys
from collections.abc import Sequence
from dataclasses import replace

import click

from muster import __version__
from muster.cli.commands import app
from muster.cli.line.commands import UnexpectedArgument, VersionAsked
from muster.cli.line.parameters import BadParameters, shown_name
from muster.cli.line.types import FlawedValue
from muster.cli.terminal.output import CommonOptions, answer, discard, fail_with
from muster.domain.canonical import JsonObject
from muster.domain.flaw import FieldFlaw, missing_flaw, unknown_flaw

GARBAGE = 10_000  # new values before circles among them are looked for
TURN = 0.0002  # seconds for which a thread may keep the interpreter while another wants it


def set_up() -> None:
    """Set the interpreter of this process up for runs."""
    # A run makes many values and few of them in circles: looking for those all the time cost a thirtieth of its speed.
    gc.set_threshold(GARBAGE)
    # The store's writer gives the interpreter up for every statement; to wait 5 ms to have it back took longer than
    # the statement.
    sys.setswitchinterval(TURN)


def main() -> None:
    """Run the command of this process and exit."""
    set_up()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an answer must never be lost to an encoding
    code = run(sys.argv[1:])
    # CPython exits by SIGINT, whatever sys.exit says, once an interrupt came out of evaluated source text, such as that
    # of a dataclass being made while modules are loaded; evaluating any other text clears that mark.
    exec("")  # noqa: S102
    gc.freeze()  # all goes with the process: looking for circles once more at its end took a tenth of a command's time
    try:
        sys.stdout.flush()
    except OSError as error:
        discard(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"error: cannot write to standard output: {error.strerror}\n")
            code = code or 4
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    return perform(app, arguments)


def perform(group: click.Command, arguments: Sequence[str]) -> int:
    """Run one command of a group and return its exit code."""
    before = list(arguments)[: list(arguments).index("--")] if "--" in arguments else list(arguments)
    common = CommonOptions(json="--json" in before)
    try:
        return group.main(list(arguments), prog_name="muster", standalone_mode=False) or 0
    except VersionAsked as asked:
        return _tell_version(replace(common, command=_words(asked.ctx)))
    except click.UsageError as error:
        return _refuse(common, error)


def _tell_version(common: CommonOptions) -> int:
    answer(common, {"version": __version__}, lambda console: console.print(f"muster {__version__}", highlight=False))
    return 0


def _refuse(common: CommonOptions, error: click.UsageError) -> int:
    path = "muster" if error.ctx is None else error.ctx.command_path
    advice = [error.advice] if isinstance(error, UnexpectedArgument) and error.advice else []
    told: JsonObject = {"code": "usage", "message": usage_words(error), "suggestions": [*advice, f"{path} --help"]}
    if flaws := usage_flaws(error):
        told["fields"] = [flaw.record() for flaw in flaws]
    return fail_with(replace(common, command=path.partition(" ")[2]), told, 2)


def usage_flaws(error: click.UsageError) -> Sequence[FieldFlaw]:
    """Return what is wrong with each option and argument."""
    match error:
        case BadParameters(errors=errors):
            return list(dict.fromkeys(flaw for one in errors for flaw in usage_flaws(one)))
        case click.MissingParameter(param=click.Parameter() as parameter):
            return [missing_flaw(shown_name(parameter))]
        case FlawedValue(param=click.Parameter() as parameter, flaw=flaw):
            return [replace(flaw, path=shown_name(parameter))]  # one of several values stands under the same option
        case click.BadParameter(param=click.Parameter() as parameter):
            return [FieldFlaw(path=shown_name(parameter), message=error.message)]
        case click.NoSuchOption(option_name=name):
            return [unknown_flaw(name, _options(error.ctx))]
    return []


def _options(ctx: click.Context | None) -> list[str]:
    parameters = [] if ctx is None else ctx.command.get_params(ctx)
    return [shown_name(each) for each in parameters if isinstance(each, click.Option) and not each.hidden]


def usage_words(error: click.UsageError) -> str:
    """Return what is wrong with the words that were typed."""
    match error:
        case BadParameters(errors=errors):
            return "; ".join(map(usage_words, errors))
        case click.MissingParameter(param=click.Parameter() as parameter):
            about = f" ({_plain(parameter.help)})" if parameter.help else ""
            return f"missing {parameter.param_type_name} {shown_name(parameter)}{about}"
        case click.BadParameter(param=click.Parameter() as parameter):
            return f"{shown_name(parameter)} {error.message}"
        case click.NoSuchOption(possibilities=[*likely]) | click.NoSuchCommand(possibilities=[*likely]) if likely:
            return f"{_plain(error.message)}. Did you mean {likely[0]!r}?"
        case click.NoSuchOption() | click.NoSuchCommand():
            return _plain(error.message)
    return _plain(error.format_message())


def _plain(message: str) -> str:
    """Return a sentence of click as messages are written here: no capital, no period."""
    return f"{message[:1].lower()}{message[1:].rstrip('.')}"


def _words(ctx: click.Context) -> str:
    """Return the command as it is typed, without the program's name."""
    return ctx.command_path.partition(" ")[2]
