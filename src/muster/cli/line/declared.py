"""What a command takes, read from the annotations of its function: `Annotated[int, Option("--limit", help="…")]`."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args, get_origin


class Option:
    """An option with its names; a flag may have a name that takes it back: `--counts/--no-counts`.

    One with a `bare` value may stand alone and then means that; another value follows an equals sign: `--changed=main`.
    """

    def __init__(
        self,
        *names: str,
        help: str,  # noqa: A002 - the names that everybody knows
        metavar: str = "",
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        bare: str | None = None,
    ) -> None:
        self.names, self.help, self.metavar, self.least, self.most = names, help, metavar, min, max
        self.bare = bare


class Argument:
    """A word that stands for itself, known by its place."""

    def __init__(self, *, metavar: str, help: str) -> None:  # noqa: A002
        self.names, self.help, self.metavar = (), help, metavar
        self.least = self.most = self.bare = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One thing that a command takes."""

    name: str  # of the function's argument
    kind: Callable[[str], Any]  # what one word is made into
    many: bool
    required: bool
    default: Any
    names: tuple[str, ...] = ()  # as they are typed; none: it is known by its place
    off_names: tuple[str, ...] = ()
    metavar: str = ""
    help: str = ""
    least: float | None = None
    most: float | None = None
    bare: str | None = None  # what it means without a value; None: it wants one

    @property
    def flag(self) -> bool:
        """Return whether it takes no value."""
        return self.kind is bool

    @property
    def shown(self) -> str:
        """Return the name that a person knows it by."""
        return max(self.names, key=len, default=self.metavar)


def parameters_of(arguments: Iterable[inspect.Parameter]) -> tuple[Parameter, ...]:
    """Read what a command takes from the arguments of its function."""
    return tuple(_parameter(argument) for argument in arguments)


def _parameter(argument: inspect.Parameter) -> Parameter:
    annotation, declared = get_args(argument.annotation)
    kind, many = _kind(annotation)
    names = [name.split("/") for name in declared.names]
    required = argument.default is inspect.Parameter.empty
    return Parameter(
        name=argument.name,
        kind=kind,
        many=many,
        required=required,
        default=None if required else argument.default,
        names=tuple(on for on, *_ in names),
        off_names=tuple(off for _, *offs in names for off in offs),
        metavar=declared.metavar,
        help=declared.help,
        least=declared.least,
        most=declared.most,
        bare=declared.bare,
    )


def _kind(annotation: Any) -> tuple[Callable[[str], Any], bool]:
    """Say what one word is made into, and whether there can be many."""
    if get_origin(annotation) is list:
        return get_args(annotation)[0], True
    choices = [choice for choice in get_args(annotation) if choice is not NoneType]
    return _kind(choices[0]) if choices else (annotation, False)
