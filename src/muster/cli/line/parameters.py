"""What a command takes, read from the annotations of its function, and the words of a command line read as that.

A parameter is declared as `Annotated[int, Option("--limit", help="…")]`. Options may stand anywhere, arguments are
known by their place, and `--` stands before words that only look like options.
"""

import inspect
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args, get_origin


class Misuse(Exception):
    """The words do not fit the command; `path` is the command that they were meant for, as it is typed."""

    def __init__(self, message: str, path: str = "muster") -> None:
        super().__init__(message)
        self.message, self.path = message, path

    def at(self, path: str) -> "Misuse":
        """Say for which command the words were meant."""
        return Misuse(self.message, path)


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


HELP = "--help"

_WORDS: dict[object, str] = {int: "a whole number", float: "a number"}
# As people write numbers: Python reads other digits, underscores, blanks and words as well.
_SPELLINGS: dict[object, re.Pattern[str]] = {
    int: re.compile(r"[+-]?[0-9]+"),
    float: re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"),
}


class HelpWanted(Exception):
    """Somebody asks what there is."""


def read(words: Sequence[str], parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return the value of each parameter, or raise Misuse."""
    said, plain = _sorted_out(words, parameters, mixed=True)
    said |= _placed(plain, [each for each in parameters if not each.names])
    return {each.name: _value(each, said.get(each.name, [])) for each in parameters}


def read_before(words: Sequence[str], parameters: Sequence[Parameter]) -> tuple[dict[str, Any], list[str]]:
    """Read the options that stand before a command; give their values, and the command with all after it."""
    said, rest = _sorted_out(words, parameters, mixed=False)
    return {each.name: _value(each, said.get(each.name, [])) for each in parameters}, rest


def _sorted_out(
    words: Sequence[str], parameters: Iterable[Parameter], *, mixed: bool
) -> tuple[dict[str, list[Any]], list[str]]:
    """Part options from the other words; unless they may be mixed, the first of those ends the options."""
    named = {name: each for each in parameters for name in (*each.names, *each.off_names)}
    said: dict[str, list[Any]] = {}
    plain: list[str] = []
    left = deque(words)
    while left:
        word = left.popleft()
        if word == "--":
            return said, [*plain, *left]
        if word[:1] != "-" or word == "-":
            plain.append(word)
            if not mixed:
                return said, [*plain, *left]
        else:
            _take(word, left, named, said)
    return said, plain


def _take(word: str, left: deque[str], named: dict[str, Parameter], said: dict[str, list[Any]]) -> None:
    """Take one option, with its value if it wants one."""
    if word == HELP:
        raise HelpWanted
    name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
    parameter = named.get(name)
    if parameter is None:
        raise Misuse(f"there is no option {name}{_likely(name, named)}")
    values = said.setdefault(parameter.name, [])
    if parameter.bare is not None and not equals and not value:
        values.append(parameter.bare)
    elif not parameter.flag:
        if not equals and not value and not left:
            raise Misuse(f"{name} wants a value" + (f": {parameter.metavar}" if parameter.metavar else ""))
        values.append(value if equals or value else left.popleft())
    elif equals:
        raise Misuse(f"{name} takes no value")
    else:
        values.append(name in parameter.names)
        if value:  # short flags stand together: -qa
            left.appendleft(f"-{value}")


def _likely(name: str, named: Iterable[str]) -> str:
    from difflib import get_close_matches

    likely = get_close_matches(name, [*named, HELP], n=1)
    return f"; did you mean {likely[0]}?" if likely else ""


def _placed(plain: Sequence[str], arguments: Sequence[Parameter]) -> dict[str, list[Any]]:
    """Return each argument its words: one, or for the last all that are left."""
    left = deque(plain)
    placed: dict[str, list[Any]] = {}
    for each in arguments:
        placed[each.name] = [left.popleft() for _ in range(len(left) if each.many else min(len(left), 1))]
    if left:
        raise Misuse(f"{left[0]!r} is one word too many")
    return placed


def _value(parameter: Parameter, said: Sequence[Any]) -> Any:
    if not said:
        if parameter.required:
            raise Misuse(f"{parameter.shown} is missing" + (f": {parameter.help}" if parameter.help else ""))
        return parameter.default
    if parameter.flag:
        return said[-1]
    made = [_made(parameter, word) for word in said]
    return made if parameter.many else made[-1]


def _made(parameter: Parameter, word: str) -> Any:
    spelling = _SPELLINGS.get(parameter.kind)
    try:
        value = parameter.kind(word)
    except ValueError:  # also of more digits than Python reads
        value = math.inf
    if spelling is not None and (spelling.fullmatch(word) is None or value == math.inf):
        raise Misuse(f"{parameter.shown} must be {_WORDS[parameter.kind]}, not {word!r}")
    if parameter.least is not None and value < parameter.least:
        raise Misuse(f"{parameter.shown} must be at least {parameter.least}, not {word}")
    if parameter.most is not None and value > parameter.most:
        raise Misuse(f"{parameter.shown} must be at most {parameter.most}, not {word}")
    return value
