"""Parameters of click, read from annotations: `limit: Annotated[int, Option("--limit", min=1, help="…")] = 20`."""

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from muster.cli.line.types import (
    AmountType,
    ChoiceType,
    Completer,
    FilePath,
    FlawedValue,
    NumberType,
    completing,
    files,
)
from muster.domain.doors import Door
from muster.domain.flaw import FieldFlaw
from muster.domain.order import (
    DeclaredField,
    FieldForm,
    choices_of,
    element_of,
    given_fields,
    is_many,
    order_fields,
    value_flaws,
)

OPTIONS = "Options"  # the heading of options that have none of their own
MAX_SAYABLE = 2**62
COMMON = "Common options"  # of those that every command takes, and of what click adds


def _by_name(name: str) -> Completer:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found: Completer = getattr(importlib.import_module("muster.cli.completion"), name)
        return found(ctx, param, incomplete)

    return complete


class ParameterDeclaration:
    """What an annotation says of a parameter besides its type.

    `values` are shown, offered and the only ones that are taken.
    `complete` may name a function of the module `completers`, which is loaded when something is to be completed.
    `bare` is the value of an option that stands without one; `shown` is the default in words where it is None.
    """

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002 - the names that everybody knows
        metavar: str = "",
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        above: float | None = None,
        values: Iterable[str] = (),
        bare: str | None = None,
        shown: str = "",
        heading: str = OPTIONS,
        when_more: str = "",
        complete: Completer | str | None = None,
    ) -> None:
        self.names, self.least, self.most, self.above, self.bare = names, min, max, above, bare
        self.values = tuple(values)
        self.help = f"{help} One of {', '.join(self.values)}." if metavar and self.values else help
        self.metavar = metavar or "|".join(self.values)
        self.shown, self.heading, self.when_more = shown, heading, when_more
        named = _by_name(complete) if isinstance(complete, str) else complete
        self.complete = named or (completing(self.values) if self.values else None)


class Option(ParameterDeclaration):
    """Declares an option with its names; a flag may have a name that takes it back: `--counts/--no-counts`."""


class Argument(ParameterDeclaration):
    """Declares an argument, known by its place; `when_more` is advice for somebody who gives one too many."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Declares that a parameter is made by a function from options of that function's own, under one heading.

    Options in `hidden` mean nothing to this command: they are taken, so that words for another command can stay as they
    are, and not shown.
    """

    make: Callable[..., Any]
    heading: str = ""
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One parameter of a function, with the parameters of click that it is made from."""

    name: str
    parameters: tuple[click.Parameter, ...]
    make: Callable[[Mapping[str, Any]], Any]


def parameters_of(function: Callable[..., Any], *, skip: int = 0) -> tuple[Taken, ...]:
    """Return what the parameters of a function are made from; the first `skip` of them are not read."""
    return tuple(_taken(each) for each in list(inspect.signature(function).parameters.values())[skip:])


def _taken(parameter: inspect.Parameter) -> Taken:
    annotation, declared = get_args(parameter.annotation)
    if isinstance(declared, Bundle):
        return bundled(parameter.name, declared)
    kind, many = _kind(annotation)
    made = _made(parameter, declared, kind, many)

    def value(given: Mapping[str, Any]) -> Any:
        found = given[parameter.name]
        if not many:
            return found
        return list(found) if found else (None if parameter.default is parameter.empty else parameter.default)

    return Taken(name=parameter.name, parameters=(made,), make=value)


def bundled(name: str, bundle: Bundle) -> Taken:
    """Return a parameter that is made by the function of a bundle, or an order that is made from its fields."""
    declared = order_fields(bundle.make) if is_dataclass(bundle.make) else ()
    inner = tuple(_ordered(one) for one in declared if one.at(Door.COMMAND)) or parameters_of(bundle.make)
    parameters = tuple(_within(bundle, each) for one in inner for each in one.parameters)

    def value(given: Mapping[str, Any]) -> Any:
        values = {one.name: one.make(given) for one in inner}
        return bundle.make(**(given_fields(bundle.make, values) if declared else values))

    return Taken(name=name, parameters=parameters, make=value)


def _ordered(field: DeclaredField) -> Taken:
    """Return the option or the argument of a field of an order."""
    kind, _ = element_of(field.kind)
    many, joined = is_many(field.kind) and not field.declared.joined, field.declared.joined
    usual = str(field.usual) if isinstance(field.usual, StrEnum) else field.usual
    default = inspect.Parameter.empty if field.required(Door.COMMAND) else None if joined else usual
    parameter = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default)
    made = _made(parameter, _declaration(field, kind), kind, many)

    def value(given: Mapping[str, Any]) -> Any:
        found = given[field.name]
        if joined and found is not None:
            return tuple(filter(None, map(str.strip, found.split(",")))) or ("",)
        return tuple(found) if many else found

    if field.declared.form is FieldForm.BUDGET:
        made.type = AmountType(float, field.declared.min, field.declared.max, field.declared.above)

    def flaws(found: Any) -> Iterator[FieldFlaw]:
        said = value({field.name: found})
        return value_flaws(said, field.kind, field.declared, "") if said not in (None, field.default) else iter(())

    made.flaws = flaws
    return Taken(name=field.name, parameters=(made,), make=value)


def _declaration(field: DeclaredField, kind: Any) -> ParameterDeclaration:
    declared, inner = field.declared, element_of(field.kind)[1] or field.declared
    is_file = kind is Path or (declared.form is FieldForm.PATH and "=" not in declared.metavar)  # not KIND=VALUE
    said: dict[str, Any] = {
        "help": declared.option_help or declared.help,
        "metavar": declared.metavar,
        "complete": _COMPLETERS.get(declared.form) or (files if is_file else None),
    }
    if declared.argument:
        return Argument(when_more=declared.when_more, **said)
    return Option(
        *(declared.option or (f"--{field.name.replace('_', '-')}",)),
        min=_sayable(inner.min),
        max=_sayable(inner.max),
        above=inner.above,
        values=choices_of(field.kind),
        bare=declared.bare,
        shown=declared.shown,
        heading=declared.heading or OPTIONS,
        **said,
    )


_COMPLETERS = {FieldForm.AGENT: "agent_names", FieldForm.RUN: "run_names_or_files"}


def _sayable(bound: float | None) -> float | None:
    """Return a bound that a help should show; that of a 64-bit number is checked with the order."""
    return None if bound is None or abs(bound) >= MAX_SAYABLE else bound


def _within(bundle: Bundle, parameter: click.Parameter) -> click.Parameter:
    if isinstance(parameter, CliOption):
        parameter.heading = bundle.heading if bundle.heading and parameter.heading == OPTIONS else parameter.heading
        parameter.hidden = parameter.hidden or not set(bundle.hidden).isdisjoint(parameter.opts)
    return parameter


def _kind(annotation: Any) -> tuple[Any, bool]:
    """Return the type of one value, and whether there can be many."""
    if get_origin(annotation) is list:
        return get_args(annotation)[0], True
    choices = [choice for choice in get_args(annotation) if choice is not NoneType]
    return _kind(choices[0]) if choices else (annotation, False)


def _made(
    parameter: inspect.Parameter, declared: ParameterDeclaration, kind: Any, many: bool
) -> "CliOption | CliArgument":
    required = parameter.default is parameter.empty
    given: dict[str, Any] = {
        "type": _type(kind, declared),
        "required": required,
        "help": declared.help,
        "metavar": declared.metavar or None,
        "shell_complete": declared.complete,
    }
    if not required and not many:
        given["default"] = parameter.default
    if isinstance(declared, Argument):
        return CliArgument([parameter.name], when_more=declared.when_more, nargs=-1 if many else 1, **given)
    if kind is bool:
        given |= {"is_flag": True, "type": None}
        if parameter.default is True and declared.names[0].startswith("--no-"):
            given["flag_value"] = False
    elif declared.bare is not None:
        given |= {"is_flag": False, "flag_value": declared.bare}
    names = [parameter.name, *declared.names]
    return CliOption(names, heading=declared.heading, shown=declared.shown, multiple=many, **given)


def _type(kind: Any, declared: ParameterDeclaration) -> click.ParamType[Any]:
    if kind in (int, float):
        return NumberType(kind, declared.least, declared.most, declared.above)
    if declared.values:
        return ChoiceType((*declared.values, *([declared.bare] if declared.bare else [])))
    return FilePath() if kind is Path else click.STRING


FLAWS = "muster.flaws"  # in the context: the errors about parameters so far


class CheckedParameter(click.Parameter):
    """A parameter that does not keep the others from being read when its value does not do."""

    flaws: Callable[[Any], Iterable[FieldFlaw]] = staticmethod(lambda found: ())  # of a value of the right type

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the value, or None when it does not do; the command says so when it has read all of them."""
        errors: list[click.UsageError] = ctx.meta.setdefault(FLAWS, [])
        try:
            found, rest = super().handle_parse_result(ctx, opts, args)
        except click.BadParameter as error:
            errors.append(error)
            return None, args
        errors += [FlawedValue(flaw, self, ctx) for flaw in self.flaws(found)]
        return found, rest


class BadParameters(click.UsageError):
    """Several parameters that are unknown or missing, or whose values do not do."""

    def __init__(self, errors: Sequence[click.UsageError]) -> None:
        super().__init__("", errors[0].ctx)
        self.errors = tuple(errors)


class CliOption(CheckedParameter, click.Option):
    """An option that stands under a heading in the help."""

    def __init__(self, names: list[str], *, heading: str, shown: str, **given: Any) -> None:
        default = given.get("default")
        told = default not in (None, "") and given.get("flag_value") is not False  # --no-… tells it by its name
        super().__init__(names, show_default=bool(shown) or told, **given)
        self.heading, self.shown = heading, shown

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return the default, the bounds and whether it is required, as the help shows them."""
        extra = super().get_help_extra(ctx)
        if self.shown:
            extra["default"] = self.shown
        elif isinstance(self.default, float):
            extra["default"] = f"{self.default:g}"  # 60, not 60.0
        if isinstance(self.type, NumberType) and self.type.bounds:
            extra["range"] = self.type.bounds
        return extra


class CliArgument(CheckedParameter, click.Argument):
    """An argument that is written in brackets where it can be left out."""

    def __init__(self, names: list[str], *, when_more: str, **given: Any) -> None:
        super().__init__(names, **given)
        self.when_more = when_more

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the argument as the usage line shows it."""
        name = self.make_metavar(ctx)
        return [name if self.required else f"[{name}]"]


def shown_name(parameter: click.Parameter) -> str:
    """Return the name that a person knows a parameter by."""
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name.removesuffix("|-")
    return max(parameter.opts, key=len)


def by_heading(parameters: Iterable[click.Parameter]) -> Iterator[tuple[str, list[click.Parameter]]]:
    """Yield the options under each heading: those without one first, else in the order of their declaration."""
    found: dict[str, list[click.Parameter]] = {OPTIONS: []}
    for each in parameters:
        if isinstance(each, click.Option) and not each.hidden:
            found.setdefault(each.heading if isinstance(each, CliOption) else COMMON, []).append(each)
    yield from ((heading, options) for heading, options in found.items() if options)
