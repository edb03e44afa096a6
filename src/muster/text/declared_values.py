"""Plain values, such as JSON, read as what is declared: everything that is wrong is told, field by field.

What is said of a field is said in the words of `domain/order.py`, whoever finds it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw, FlawCode, missing_flaw, type_flaw, unknown_flaw
from muster.domain.order import ValueBounds, choices_of, chosen_kind, is_many, order_fields, value_flaws, without_none
from muster.text import typed
from muster.text.words import conversion_words

T = TypeVar("T")
MAX_NAME = 100  # characters of a name that nobody knows
_READABLE = frozenset({FlawCode.UNKNOWN, FlawCode.OUT_OF_BOUNDS})  # with such flaws it is a value of the type still


def _nothing(_: Any) -> tuple[()]:
    return ()


def read_value(
    given: Any, kind: type[T], *, about: str, rules: Callable[[T], Iterator[FieldFlaw] | tuple[()]] = _nothing
) -> T:
    """Return a value of a dataclass from a plain one; raises BadArgument with everything that is wrong with it.

    `rules` yields what the declaration of the fields does not say.
    """
    flaws = list(plain_flaws(given, kind))
    try:
        if all(flaw.code in _READABLE for flaw in flaws):
            made = typed.convert(given, kind)
            flaws += rules(made)
            if not flaws:
                return made
    except BadArgument as error:  # of the type itself
        flaws += error.flaws or (FieldFlaw(path="", message=error.message),)
    except typed.ValidationError as error:
        flaws.append(FieldFlaw(path="", message=conversion_words(str(error), "an object")))
    raise BadArgument.of(list(dict.fromkeys(flaws)), about=about)


def plain_flaws(given: Any, kind: Any, path: str = "") -> Iterator[FieldFlaw]:
    """Yield what is unknown, missing, of another type or out of bounds in the plain value of a dataclass."""
    if not isinstance(given, Mapping):
        yield type_flaw(path, "an object", given)
        return
    hints, known = _hints(kind), {field.name: field for field in fields(kind)}
    declared = {one.name: one.declared for one in order_fields(kind)}  # also where a class narrows the type of a field
    for key in given:
        if key not in known:
            yield unknown_flaw(_within(path, str(key)[:MAX_NAME]), known)
    for name, field in known.items():
        usual = _usual(field)
        if name not in given:
            yield from () if usual is not MISSING else (missing_flaw(_within(path, name)),)
        elif not _same(given[name], usual):
            yield from _field_flaws(given[name], hints[name], declared.get(name), _within(path, name))


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _usual(field: "Field[Any]") -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _same(given: Any, usual: Any) -> bool:
    """Return whether a plain value is the default: an empty list is an empty tuple, and 0 is not False."""
    plain = tuple(given) if isinstance(given, list) else given
    return plain == usual and isinstance(plain, bool) is isinstance(usual, bool)


def _field_flaws(given: Any, hint: Any, bounds: ValueBounds | None, path: str) -> Iterator[FieldFlaw]:
    """Yield what is wrong with the value of a field, and with what is within it."""
    kind, own = _bare(hint)
    bounds = bounds or own
    inner = without_none(kind)
    if given is None and inner is not kind:
        return
    kind, own = _bare(_branch(inner, given))
    if is_dataclass(kind):
        yield from plain_flaws(given, kind, path)
    elif is_many(kind) and isinstance(given, list | tuple):
        if bounds is not None and (flaw := bounds.flaw(given, path)):
            yield flaw
            return
        for place, one in enumerate(given):
            yield from _field_flaws(one, get_args(kind)[0], None, f"{path}[{place}]")
    elif isinstance(given, Mapping) and (of_values := _dataclass_of_values(kind)):
        for name, one in given.items():
            yield from plain_flaws(one, of_values, _within(path, str(name)[:MAX_NAME]))
    elif flaws := [*value_flaws(given, kind, bounds, path), *value_flaws(given, kind, own, path)]:
        yield flaws[0]
    elif not choices_of(kind):
        yield from _unreadable(given, kind, path)


def _branch(kind: Any, given: Any) -> Any:
    """Return which of several types a plain value is read as."""
    kinds = get_args(kind) if isinstance(given, Mapping) and get_origin(kind) in (Union, UnionType) else ()
    return next(filter(is_dataclass, kinds), chosen_kind(kind, given))


def _dataclass_of_values(kind: Any) -> Any:
    """Return the dataclass of the values of a mapping; None where they are something else."""
    kinds = get_args(kind) if isinstance(get_origin(kind), type) and issubclass(get_origin(kind), Mapping) else ()
    return kinds[1] if kinds and is_dataclass(kinds[1]) else None


def _bare(hint: Any) -> tuple[Any, ValueBounds | None]:
    """Return a type without its metadata, and the bounds among them."""
    if get_origin(hint) is not Annotated:
        return hint, None
    kind, *metadata = get_args(hint)
    return kind, next((one for one in metadata if isinstance(one, ValueBounds)), None)


def _unreadable(given: Any, kind: Any, path: str) -> Iterator[FieldFlaw]:
    """Yield what keeps a value of which nothing is declared from being read."""
    try:
        typed.convert(given, kind)
    except typed.ValidationError as error:
        yield FieldFlaw(path=path, message=conversion_words(str(error), "an object"))
