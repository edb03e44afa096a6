"""Commands and groups of click: groups read a table and load a command's module when it is called."""

import gc
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import click
from click.core import augment_usage_errors
from click.shell_completion import CompletionItem

from muster.cli.line.declaration import declaration_of
from muster.cli.line.frame import answered
from muster.cli.line.parameters import (
    COMMON,
    FLAWS,
    BadParameters,
    Bundle,
    CliArgument,
    Option,
    Taken,
    bundled,
    by_heading,
    parameters_of,
    shown_name,
)
from muster.cli.terminal.output import CommonOptions, print_json, write_to
from muster.domain.errors import BadArgument, BadConfiguration, NotFound

ROOM = "muster.cli"
HELP = "help"
MAX_UNKNOWN = 20  # options that are told at once
HELP_ABOUT = "Show the help of a command."
SETTINGS: dict[str, Any] = {"help_option_names": [], "max_content_width": 80}  # the help is an option of ours

Function = Callable[..., int | None]


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A line of the table of commands: the words for the help, and MODULE:FUNCTION below `muster.cli`, or a function.

    With `commands` it is a group; the function is then what the group does when none of them is named. `arguments` is
    the place of a class that has the options of the command as its fields, and needs no module that takes long to
    load, or a function that returns one: a help is written without the function, which gets an object of it.
    """

    about: str
    place: str | Function = ""
    commands: Mapping[str, "CommandEntry"] = field(default_factory=dict)
    arguments: str | Callable[[], Any] = ""

    @property
    def line(self) -> str:
        """Return the first paragraph of what it is about, as one line."""
        return " ".join(self.about.partition("\n\n")[0].split())

    def load(self) -> Function:
        """Return the function; loads its module."""
        found: Function = load_place(self.place) if isinstance(self.place, str) else self.place
        return found

    def taken(self) -> tuple[Taken, ...]:
        """Return what the command takes besides the shared options; loads no more than it must."""
        if not self.arguments:
            return parameters_of(self._declaration(), skip=1)
        made = load_place(self.arguments) if isinstance(self.arguments, str) else self.arguments()
        return (bundled("arguments", Bundle(made)),)

    def help(self) -> str:
        """Return what the command's own help says first; it may say more than the table."""
        is_whole = bool(self.arguments or self.commands)
        return self.about if is_whole else inspect.cleandoc(self._declaration().__doc__ or "")

    def _declaration(self) -> Function:
        """Return the function without what it does, where its source is enough; else loads its module."""
        module, _, name = self.place.partition(":") if isinstance(self.place, str) else ("", "", "")
        return (declaration_of(f"{ROOM}.{module}", name) if module else None) or self.load()


def load_place(place: str) -> Any:
    """Return what has this place, MODULE:NAME below `muster.cli`; loads the module."""
    module, _, name = place.partition(":")
    gc.disable()  # what a module makes stays: looking for garbage among it took a twentieth of a short command
    try:
        return getattr(importlib.import_module(f"{ROOM}.{module}"), name)
    finally:
        gc.enable()


class VersionAsked(Exception):
    """Somebody asks for the version; `ctx` is where."""

    def __init__(self, ctx: click.Context) -> None:
        super().__init__("the version was asked for")
        self.ctx = ctx


class UnexpectedArgument(click.UsageError):
    """One word more than a command takes; `advice` is what may have been meant."""

    def __init__(self, word: str, ctx: click.Context, advice: str = "") -> None:
        super().__init__(f"unexpected argument {word!r}", ctx)
        self.advice = advice


def shared(
    json: Annotated[bool, Option("--json", heading=COMMON, help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", heading=COMMON, help="Suppress progress and notes.")] = False,
    home: Annotated[
        Path | None,
        Option(
            "--home",
            metavar="PATH",
            heading=COMMON,
            help="The folder of the store.",
            shown="MUSTER_HOME, else .muster in this folder or a parent",
        ),
    ] = None,
) -> CommonOptions:
    """Return what the options say that every command and every group takes."""
    return CommonOptions(json=json, quiet=quiet, home=home)


class _Shared(click.Command):
    """What commands and groups have in common: the shared options, and a help with headings."""

    def shared_parameters(self) -> list[click.Parameter]:
        """Return the options that every command and every group takes."""
        alone: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
        version = click.Option(["-V", "--version"], callback=_ask_version, help="Show the version and exit.", **alone)
        about = click.Option(["-h", "--help"], callback=_ask_help, help="Show this message and exit.", **alone)
        return [*(each for one in parameters_of(shared) for each in one.parameters), version, about]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; every error says for which command they were meant."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage, what it is about, the arguments, the options by heading, and the commands."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        arguments = [each for each in self.get_params(ctx) if isinstance(each, click.Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([each.get_help_record(ctx) for each in arguments])
        self.format_options(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by heading."""
        for heading, options in by_heading(self.get_params(ctx)):
            with formatter.section(heading):
                formatter.write_dl([record for each in options if (record := each.get_help_record(ctx))])


def _ask_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        raise VersionAsked(ctx)


def _ask_help(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.exit(show_help(CommonOptions(), ctx))


def _joined(ctx: click.Context) -> CommonOptions:
    """Return what the shared options say here, joined with what they said further to the left."""
    here = shared(**{one.name: ctx.params[one.name] for one in parameters_of(shared)})
    before: CommonOptions = ctx.obj or CommonOptions()
    return before.joined(replace(here, command=ctx.command_path.partition(" ")[2]))


class CliCommand(_Shared):
    """A command made from a function; its first parameter is CommonOptions, the others are what the command takes."""

    allow_extra_args = True  # refused here, with advice

    def __init__(self, name: str | None, entry: CommandEntry) -> None:
        self.taken: tuple[Taken, ...] = entry.taken()
        self.entry = entry
        own = [each for one in self.taken for each in one.parameters]
        super().__init__(
            name,
            params=[*own, *self.shared_parameters()],
            help=entry.help(),
            context_settings=SETTINGS,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; raises UsageError with all that is wrong with options, and when there are too many words."""
        rest, unknown = self._read(ctx, self._with_negative_numbers(args))
        errors = [*unknown, *ctx.meta.pop(FLAWS, [])]
        if errors and not ctx.resilient_parsing:  # a line that is being completed is not whole yet
            raise errors[0] if len(errors) == 1 else BadParameters(errors)
        if rest and not ctx.resilient_parsing:
            places = [each for each in self.params if isinstance(each, CliArgument)]
            raise UnexpectedArgument(rest[0], ctx, places[-1].when_more if places else "")
        return rest

    def _read(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[click.UsageError]]:
        """Return the words that are left, and the options that are not known, which keep no others from being read."""
        unknown: list[click.UsageError] = []
        while True:
            try:
                return super().parse_args(ctx, list(args)), unknown
            except click.NoSuchOption as error:
                ctx.meta.pop(FLAWS, None)
                before = args.index("--") if "--" in args else len(args)
                place = next((at for at in range(before) if _is_option(args[at], error.option_name)), None)
                if place is None or len(unknown) == MAX_UNKNOWN:
                    raise
                unknown.append(error)
                args = [*args[:place], *args[place + 1 :]]

    def _with_negative_numbers(self, args: list[str]) -> list[str]:
        """Return the words with -1 as an argument, for a command that takes such a number at that place."""
        takes = any(isinstance(each, CliArgument) and "-N" in (each.metavar or "") for each in self.params)
        if not takes or "--" in args:
            return args
        numbers = [word for word in args if word[:1] == "-" and word[1:].isdecimal()]
        return [*(word for word in args if word not in numbers), *(["--", *numbers] if numbers else [])]

    def invoke(self, ctx: click.Context) -> int:
        """Call the function; returns the exit code."""
        common = _joined(ctx)
        return answered(common, lambda: self._call(common, ctx.params))

    def _call(self, common: CommonOptions, given: Mapping[str, Any]) -> int | None:
        """Call the function; an error about an argument names the option by which it is given."""
        try:
            return self.entry.load()(common, **{one.name: one.make(given) for one in self.taken})
        except BadArgument as error:
            raise error.named(self._options()) from error
        except (BadConfiguration, NotFound) as error:
            error.flaws = tuple(flaw.named(self._options()) for flaw in error.flaws)
            raise

    def _options(self) -> dict[str, str]:
        """Return options and arguments by the names of what they set, and options by their own, also with a unit."""
        options = [each for each in self.params if isinstance(each, click.Option)]
        named = {name.lstrip("-").replace("-", "_"): name for each in options for name in each.opts if name[:2] == "--"}
        units = {f"{name}_{unit}": option for name, option in named.items() for unit in ("usd", "secs")}
        return units | named | {str(each.name): shown_name(each) for each in self.params}


def _is_option(word: str, name: str) -> bool:
    """Return whether a word gives an option, alone, with a value or among other short ones."""
    is_short = name[:2] != "--"
    return word.partition("=")[0] == name or (is_short and word[:1] == "-" != word[1:2] and name[1:] in word)


class CliGroup(_Shared, click.Group):
    """A group of the commands in a table."""

    def __init__(self, name: str | None, entry: CommandEntry) -> None:
        super().__init__(
            name=name,
            params=self.shared_parameters(),
            help=entry.about,
            callback=self._begin,
            invoke_without_command=True,
            subcommand_metavar="COMMAND [ARGS]...",
            context_settings=SETTINGS,
        )
        self.entry = entry

    @staticmethod
    def _begin(**given: Any) -> int | None:
        """Take the shared options; without a command, show the help."""
        ctx = click.get_current_context()
        ctx.obj = _joined(ctx)
        return show_help(ctx.obj, ctx) if ctx.invoked_subcommand is None else None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(self.entry.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return what has this name, loading its module; raises NoSuchCommand."""
        entry = self.entry.commands.get(cmd_name)
        if entry is None and cmd_name == HELP:
            return HelpCommand(ctx)
        if entry is None and ctx.resilient_parsing:
            return None
        if entry is None:
            raise click.NoSuchCommand(cmd_name, possibilities=[*self.entry.commands, HELP], ctx=ctx)
        return CliGroup(cmd_name, entry) if entry.commands else CliCommand(cmd_name, entry)

    def default(self) -> "DefaultCommand | None":
        """Return what the group does when the words name none of its commands."""
        return DefaultCommand(self) if self.entry.place else None

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the words; the context is that of the default command if they are for it."""
        begun = args or not extra.get("resilient_parsing")  # completion of the first word offers the commands too
        if self.entry.place and begun and not self._names_command(args):
            return DefaultCommand(self).make_context(info_name, args, parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)

    def _names_command(self, words: Sequence[str]) -> bool:
        """Return whether the first word that is not a shared option names a command."""
        try:
            _, rest, _ = self.make_parser(click.Context(self, **SETTINGS)).parse_args(list(words))
        except click.UsageError:  # an option of the default command's own
            return False
        before = words[: len(words) - len(rest)]
        return bool(rest) and (rest[0] in self.entry.commands or rest[0] == HELP) and list(before[-1:]) != ["--"]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help; of a group that does something by itself, that of both."""
        default = self.default()
        if default is not None:
            default.format_help(ctx, formatter)
        else:
            super().format_help(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands as the table has them, so that no module is loaded."""
        with formatter.section("Commands"):
            rows = [(name, entry.line) for name, entry in self.entry.commands.items()]
            formatter.write_dl(rows if ctx.parent else [*rows, (HELP, HELP_ABOUT)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands, as the table has them, and options; of the default command too."""
        found, default = self.offered(incomplete), self.default()
        if default is None:
            return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
        first = next((each for each in default.params if isinstance(each, CliArgument)), None)
        if first is not None and incomplete and incomplete[0] != "-":
            # First, because bash forgets what stands before files; with a beginning, because zsh stumbles over "".
            found = [*first.shell_complete(ctx, incomplete), *found]
        return [*found, *default.shell_complete(ctx, incomplete)]

    def offered(self, incomplete: str) -> list[CompletionItem]:
        """Offer the commands that begin like this."""
        rows = [*((name, entry.line) for name, entry in self.entry.commands.items()), (HELP, HELP_ABOUT)]
        return [CompletionItem(name, help=line) for name, line in rows if name.startswith(incomplete)]


class DefaultCommand(CliCommand):
    """What a group does when the words name none of its commands; its help is that of the group too."""

    def __init__(self, group: CliGroup) -> None:
        super().__init__(group.name, group.entry)
        self.group = group

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write how it is typed, without and with a command."""
        super().format_usage(ctx, formatter)
        formatter.write_usage(ctx.command_path, "[OPTIONS] COMMAND [ARGS]...", prefix=" " * len("Usage: "))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the commands of the group."""
        super().format_options(ctx, formatter)
        self.group.format_commands(ctx, formatter)


class HelpCommand(_Shared):
    """`help [COMMAND]...` in any group: what `COMMAND --help` shows."""

    def __init__(self, group: click.Context) -> None:
        about = "The command to show the help of."
        words = click.Argument(["words"], nargs=-1, metavar="[COMMAND]...", help=about, shell_complete=self._offer)
        params = [words, *self.shared_parameters()]
        super().__init__(HELP, params=params, help=HELP_ABOUT, context_settings=SETTINGS)
        self.group = group

    def invoke(self, ctx: click.Context) -> int:
        """Show the help; raises NoSuchCommand."""
        common = replace(_joined(ctx), command="")
        return show_help(common, self._found(ctx, ctx.params["words"]))

    def _found(self, ctx: click.Context, words: Sequence[str]) -> click.Context:
        """Return the context of the command that the words name."""
        found = self.group
        for word in words:
            group = found.command
            if not isinstance(group, CliGroup):
                raise UnexpectedArgument(word, ctx)
            command = group.get_command(found, word)
            if command is None:
                raise click.NoSuchCommand(word, ctx=ctx)
            found = click.Context(command, info_name=word, parent=found, **SETTINGS)
        return found

    def _offer(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = self._found(ctx, ctx.params.get("words") or ()).command
        except click.UsageError:
            return []
        return found.offered(incomplete) if isinstance(found, CliGroup) else []


def show_help(common: CommonOptions, ctx: click.Context) -> int:
    """Print the help of a command; returns the exit code."""
    text = ctx.get_help()

    def show() -> None:
        if common.json:
            print_json({"ok": True, "command": ctx.command_path.partition(" ")[2], "data": {"help": text}})
        else:
            write_to(sys.stdout, text + "\n")

    return answered(common, show)
