"""Orders: what a caller may say to start a kind of work, declared once as a dataclass whose fields hold metadata.

    replies: Annotated[int, OrderField(help="Maximum replies of the agent.", min=1, max=25)] = 25

Every door is derived from that: options of commands, bodies of requests, inputs of tools, jobs of the queue, forms.
Nothing here reads what a door was given; `field_flaws` checks a value that was made.
"""

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import cache
from inspect import get_annotations
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from muster.domain.doors import EVERYWHERE, REMOTE, Door
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode, choice_flaw, type_flaw

MAX_NAME, MAX_TEXT = 200, 100_000  # characters
DEFAULT = "{}"  # as what is shown of a field: its default itself
MAX_GLOB = 1_000  # characters; the library makes a pattern of it and keeps that


class FieldForm(StrEnum):
    """What a value means: at which doors it may arrive, what completes it, and how a form asks for it."""

    VALUE = "value"
    AGENT = "agent"
    SUITE = "suite"  # of the library, like the next two
    CHAIN = "chain"
    COUNCIL = "council"
    RUN = "run"  # at this machine, also a file that it was exported to
    ID = "id"  # that a program chooses; a form does not ask for it
    BUDGET = "budget"
    PATH = "path"
    COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueBounds:
    """The values that are allowed: of a number, or the length of a text or a list."""

    min: float | None = None
    max: float | None = None
    above: float | None = None  # an exclusive minimum
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""
    max_json: int | None = None  # characters of an object, as JSON

    def flaw(self, value: Any, path: str = "") -> FieldFlaw | None:
        """Return what is wrong with a value of the right type; None if nothing is."""
        if isinstance(value, bool) or value is None:
            return None
        wrong, given = self._broken(value)
        if wrong:
            return FieldFlaw(path=path, message=wrong, code=FlawCode.OUT_OF_BOUNDS, given=given)
        is_other = isinstance(value, str) and self.pattern and not re.fullmatch(self.pattern, value)
        return FieldFlaw(path=path, message=f"must match {self.pattern}") if is_other else None

    def _broken(self, value: Any) -> tuple[str, str]:
        """Return the bound that a value breaks, and what it is."""
        if isinstance(value, int | float):
            return self._broken_by(value), f"{value!r}"
        if self.max_json is not None and (size := len(json.dumps(value))) > self.max_json:
            return f"must have at most {self.max_json} characters as JSON", f"{size}"
        return self._broken_length(value) if isinstance(value, Collection) else ("", "")

    def _broken_by(self, value: float) -> str:
        if not math.isfinite(value):
            return "must be a finite number"
        if self.min is not None and value < self.min:
            return f"must be at least {self.min}"
        if self.above is not None and value <= self.above:
            return f"must be more than {self.above}"
        return f"must be at most {self.max}" if self.max is not None and value > self.max else ""

    def _broken_length(self, value: Collection[Any]) -> tuple[str, str]:
        unit = "characters" if isinstance(value, str) else "entries"
        if self.max_length is not None and len(value) > self.max_length:
            return f"must have at most {self.max_length} {unit}", f"{len(value)}"
        if self.min_length and isinstance(value, str) and not value.strip():
            return "is empty", ""
        if self.min_length is not None and len(value) < self.min_length:
            least = f"must have at least {self.min_length} {unit}"
            return ("is empty", "") if self.min_length == 1 else (least, f"{len(value)}")
        return "", ""

    @property
    def words(self) -> str:
        """The bounds of a number in words."""
        if self.min is not None and self.max is not None:
            return f"from {self.min:,} to {self.max:,}"
        if self.min is not None:
            return f"{self.min:,} or more"
        if self.above is not None:
            return f"more than {self.above:,}" + ("" if self.max is None else f" and at most {self.max:,}")
        return "a finite number" if self.max is None else f"at most {self.max:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderField(ValueBounds):
    """What a field of an order says of itself besides its type and its default.

    `help` is one sentence for people; `tool` is what models are told, and a field without it is not offered to them.
    `option` are the names on the command line, by default made from the field's; with `argument` it is known by its
    place there, with `bare` an option may stand without a value, with `joined` one option has all values, between
    commas. `shown` is the default in words, or DEFAULT: at a door such a field is null until it is given. `alias` is
    the name in requests and jobs where that is another one; `same_as` makes a field another name of one that orders
    have.
    `required_at` are doors at which nothing else says it.
    """

    help: str
    tool: str = ""
    form: FieldForm = FieldForm.VALUE
    doors: frozenset[Door] = EVERYWHERE
    alias: str = ""
    same_as: str = ""
    required_at: frozenset[Door] = frozenset()
    option: tuple[str, ...] = ()
    option_help: str = ""  # where an option says the opposite, or more
    argument: bool = False  # on the command line: known by its place
    when_more: str = ""  # advice for somebody who gives one argument too many
    piped: bool = False  # on the command line, - or nothing is what stands on standard input
    bare: str | None = None
    joined: bool = False
    metavar: str = ""
    shown: str = ""
    heading: str = ""

    def __post_init__(self) -> None:
        if self.form in (FieldForm.PATH, FieldForm.COMMAND) and self.doors & REMOTE:
            raise TypeError(f"a {self.form} never arrives over a network: doors must be LOCAL")


def _holds_path(kind: Any) -> bool:
    is_path = isinstance(kind, type) and issubclass(kind, Path)
    return is_path or any(map(_holds_path, get_args(kind)))


Name = Annotated[str, ValueBounds(min_length=1, max_length=MAX_NAME)]
Text = Annotated[str, ValueBounds(min_length=1, max_length=MAX_TEXT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """A field of an order with its name, its type without metadata, and its default."""

    name: str
    kind: Any
    declared: OrderField
    default: Any = MISSING

    def __post_init__(self) -> None:
        """Refuse the declaration of a path that would arrive over a network, whatever its form says."""
        if self.declared.doors & REMOTE and _holds_path(self.kind):
            raise TypeError(f"{self.name} is a path, which never arrives over a network: doors must be LOCAL")

    def required(self, door: Door) -> bool:
        """Return whether it must be given at a door."""
        return self.default is MISSING or door in self.declared.required_at

    @property
    def usual(self) -> Any:
        """What it is at a door until it is given."""
        return None if self.declared.shown else self.default

    def at(self, door: Door) -> bool:
        """Return whether it can be given at a door."""
        return door in self.declared.doors and (door is not Door.TOOL or bool(self.declared.tool))


@cache
def order_fields(kind: Any) -> tuple[DeclaredField, ...]:
    """Return the fields of an order, its own before those of its bases; without metadata one is not a caller's to give.

    Fields that bases declare and this kind of work does not take, or not at every door, stand in its `without`; what
    it says of them in other words stands in its `said`.
    """
    hints, inherited = get_type_hints(kind, include_extras=True), _metadata(kind)
    left_out: Mapping[str, frozenset[Door]] = getattr(kind, "without", {})
    return tuple(
        DeclaredField(
            name=field.name,
            kind=_type_of(hints[field.name]),
            declared=_not_at(_with_default(inherited[field.name], _default(field)), left_out.get(field.name)),
            default=_default(field),
        )
        for field in _own_first(kind)
        if field.name in inherited
    )


def _metadata(kind: Any) -> Mapping[str, OrderField]:
    """Return what is declared of fields: a class that narrows the type of a field inherits what its base says of it."""
    declared: dict[str, OrderField] = {}
    for base in reversed(kind.__mro__):
        hints: dict[str, Any] = get_annotations(base)
        for name, hint in hints.items():
            own = (part for part in getattr(hint, "__metadata__", ()) if isinstance(part, OrderField))
            declared.update((name, part) for part in own)
        said: Mapping[str, Mapping[str, str]] = vars(base).get("said", {})
        declared.update((name, _said_of(declared[name], words)) for name, words in said.items())
    return declared


def _said_of(declared: OrderField, words: Mapping[str, str]) -> OrderField:
    if others := words.keys() - _WORDS:
        raise TypeError(f"the same at every order, since a base declares it: {', '.join(sorted(others))}")
    return replace(declared, **words)  # type: ignore[arg-type]  # fields that hold words


_WORDS = frozenset({"help", "option_help", "tool", "shown", "heading"})


def _own_first(kind: Any) -> "list[Field[Any]]":
    names = (name for base in kind.__mro__ for name in get_annotations(base))
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return sorted(fields(kind), key=lambda field: places[field.name])


def _with_default(declared: OrderField, default: Any) -> OrderField:
    """Return what is declared, with the default in words where it is to be shown."""
    return replace(declared, shown=str(default)) if declared.shown == DEFAULT else declared


def _not_at(declared: OrderField, doors: frozenset[Door] | None) -> OrderField:
    return declared if doors is None else replace(declared, doors=declared.doors - doors)


def _type_of(hint: Any) -> Any:
    """Return a type without what is declared of the field; bounds of its own stay."""
    if get_origin(hint) is not Annotated:
        return hint
    inner, *metadata = get_args(hint)
    own = [one for one in metadata if isinstance(one, ValueBounds) and not isinstance(one, OrderField)]
    return Annotated[inner, own[0]] if own else inner


def _default(field: "Field[Any]") -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def field_flaws(value: Any, prefix: str = "") -> Iterator[FieldFlaw]:
    """Yield what is out of bounds in a value whose class has order fields; a default is always allowed."""
    kind: Any = type(value)
    for one in order_fields(kind):
        given = getattr(value, one.name)
        if given != one.default:
            yield from value_flaws(given, one.kind, one.declared, f"{prefix}{one.name}")


def require_bounds(order: Any) -> None:
    """Raise BadArgument for all fields of an order that are out of bounds."""
    if flaws := list(field_flaws(order)):
        raise BadArgument.of(flaws)


def value_flaws(given: Any, kind: Any, bounds: ValueBounds | None, path: str) -> Iterator[FieldFlaw]:
    """Yield what is wrong with the value of a field, whatever its annotation promised: programs are not checked."""
    if given is None and without_none(kind) is not kind:
        return
    kind = without_none(kind)
    inner, own = element_of(kind) if not is_many(kind) else (kind, None)
    if wrong := _type_flaw(given, inner, path):
        yield wrong
        return
    broken = (each.flaw(given, path) for each in (bounds, own) if each is not None)
    if flaw := next(filter(None, broken), None):
        yield flaw
    elif is_dataclass(given) and not isinstance(given, type):
        yield from field_flaws(given, f"{path}.")
    elif is_many(kind):
        for place, one in enumerate(given):
            yield from value_flaws(one, chosen_kind(get_args(kind)[0], one), None, f"{path}[{place}]")


def chosen_kind(kind: Any, given: Any) -> Any:
    """Return which of the types that a value may have it is checked as: a text, or an object."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else ()
    return next((one for one in kinds if _type_flaw(given, element_of(one)[0], "") is None), kind)


def _type_flaw(given: Any, kind: Any, path: str) -> FieldFlaw | None:
    if choices := choices_of(kind):
        return None if given in choices else choice_flaw(path, choices, given)
    return None if _fits(given, kind) else type_flaw(path, noun_of(kind), given)


def noun_of(kind: Any) -> str:
    """Return what a value of a type is called; empty for a type whose values are not looked at."""
    inner = element_of(kind)[0] if not is_many(kind) else kind
    if get_origin(inner) in (Union, UnionType):
        return " or ".join(map(noun_of, get_args(inner)))
    return _NOUNS.get(_plain_type(inner), "")


def _fits(given: Any, kind: Any) -> bool:
    if get_origin(kind) in (Union, UnionType):
        return any(_fits(given, element_of(one)[0]) for one in get_args(kind))
    if is_dataclass(kind):
        return isinstance(given, kind)  # type: ignore[arg-type]  # a class
    plain = _plain_type(kind)
    return plain not in _TYPES or (isinstance(given, _TYPES[plain]) and (plain is bool or not isinstance(given, bool)))


def _plain_type(kind: Any) -> Any:
    """Return which of the types of JSON a type is."""
    origin = get_origin(kind) or kind
    return Mapping if is_dataclass(kind) or (isinstance(origin, type) and issubclass(origin, Mapping)) else origin


_TYPES: dict[Any, tuple[type, ...]] = {
    int: (int,),
    float: (int, float),
    str: (str,),
    bool: (bool,),
    Path: (str, Path),
    tuple: (tuple, list),
    Mapping: (Mapping,),
}
_NOUNS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    Path: "a path",
    tuple: "a list",
    Mapping: "an object",
}


def element_of(kind: Any) -> tuple[Any, ValueBounds | None]:
    """Return the type of one value, without None and without the tuple around it, and its own bounds."""
    kind = without_none(kind)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    if get_origin(kind) is Annotated:
        inner, *metadata = get_args(kind)
        return inner, next((one for one in metadata if isinstance(one, ValueBounds)), None)
    return kind, None


def without_none(kind: Any) -> Any:
    """Return a type without its None."""
    if get_origin(kind) in (Union, UnionType):
        left = [one for one in get_args(kind) if one is not NoneType]
        return left[0] if len(left) == 1 else kind
    return kind


def is_many(kind: Any) -> bool:
    """Return whether a field holds several values."""
    return get_origin(without_none(kind)) is tuple


def choices_of(kind: Any) -> tuple[str, ...]:
    """Return the words that a field may hold, in their order; empty if any are allowed."""
    inner, _ = element_of(kind)
    if get_origin(inner) is Literal:
        return get_args(inner)
    return tuple(inner) if isinstance(inner, type) and issubclass(inner, StrEnum) else ()


def given_fields(kind: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an order is made from: values that are null are left out, and stand under the name that they mean."""
    known = {one.name: one for one in order_fields(kind)}
    given = {name: value for name, value in values.items() if value is not None}
    return {known[name].declared.same_as or name: _member(known[name].kind, value) for name, value in given.items()}


def given_by(kind: Any, source: Any) -> dict[str, Any]:
    """Return what a value with the attributes of an order says of its fields, as `given_fields` does."""
    return given_fields(kind, {one.name: getattr(source, one.name) for one in order_fields(kind)})


def _member(kind: Any, value: Any) -> Any:
    """Return a word as the member of its enumeration."""
    inner, _ = element_of(kind)
    is_word = isinstance(value, str) and isinstance(inner, type) and issubclass(inner, StrEnum)
    return inner(value) if is_word else value


def shared_fields(order: Any, kind: type) -> Mapping[str, Any]:
    """Return the values of an order that another class has as well, by their names: its spec shares its declaration."""
    names = {field.name for field in fields(kind)}
    return {field.name: getattr(order, field.name) for field in fields(order) if field.name in names}
