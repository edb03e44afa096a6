"""Every field of every order is the same at every door: its type, its bounds, and what it is until it is given."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, is_dataclass, replace
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Protocol, Union, get_args, get_origin

import click
import pytest
from pydantic import ValidationError

from muster.api.app import ROUTERS
from muster.app.kinds import KINDS, AppKind
from muster.app.serving.jobs import KINDS as JOBS
from muster.app.serving.order_models import OrderModel, order_model
from muster.app.serving.request_flaws import request_flaws
from muster.battles.order import BattleOrder, BattlesOrder, ScaleOrder
from muster.cli.commands import app
from muster.cli.line import Bundle
from muster.cli.line.commands import SETTINGS, CliCommand, CliGroup, load_place
from muster.domain.doors import REMOTE, Door
from muster.domain.errors import BadArgument
from muster.domain.order import (
    DeclaredField,
    Name,
    OrderField,
    ValueBounds,
    choices_of,
    element_of,
    is_many,
    order_fields,
    require_bounds,
)
from muster.domain.run_order import RunOrder
from muster.mcp.server import TOOLS
from tests.orders import ORDERS

Values = Mapping[str, Any]
MAX_LENGTH = 2_000_000  # characters of a text that is tried
MAX_SHOWN = 2**62 - 1  # a bound of a number of 64 bits is not shown
INNER = "$fields"  # marks what is said of the fields within a value
REFUSALS = (ValidationError, BadArgument, click.UsageError)
EXAMPLES: dict[Any, Any] = {str: "one", int: 1, float: 0.5, bool: True, Path: Path("one")}


class OrderDoor(Protocol):
    """A way in which an order comes."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def door(self) -> Door:
        """Which of the ways it is."""

    def order(self, given: Values) -> Any:
        """Return the order that says this, by the names of fields; raises one of REFUSALS."""

    def takes(self, field: str) -> bool:
        """Return whether a field can be given."""


@dataclass(frozen=True)
class InPython:
    """A program that makes the order itself."""

    kind: Any
    name = "Python"
    door = Door.PYTHON

    def takes(self, field: str) -> bool:
        return field in self.kind.__dataclass_fields__

    def order(self, given: Values) -> Any:
        made = self.kind(**given)
        require_bounds(made)
        return made


@dataclass(frozen=True)
class InJson:
    """A request, the call of a tool, or a job."""

    name: str
    door: Door
    model: type[OrderModel]

    def takes(self, field: str) -> bool:
        return field in self.model.model_fields

    def order(self, given: Values) -> Any:
        names = self.model.names()
        sent = {names[name]: self._sent(name, value, names) for name, value in given.items()}
        return self.model.model_validate(sent).order()

    def _sent(self, name: str, value: Any, names: Mapping[str, str]) -> Any:
        if isinstance(value, tuple):
            return [self._sent(name, one, names) for one in value]
        if not is_dataclass(value) or isinstance(value, type):
            return value
        return {names[f"{name}.{one.name}"]: getattr(value, one.name) for one in order_fields(type(value))}

    def told(self, field: str) -> Any:
        """Return what the schema says of a field, besides words; that it may be null is the same everywhere."""
        schema = _schema(self.model)
        return _plain(schema["properties"][self.model.names()[field]], schema.get("$defs", {}))


@dataclass(frozen=True)
class InWords:
    """A command."""

    name: str
    command: CliCommand
    kind: Any
    door = Door.COMMAND

    def takes(self, field: str) -> bool:
        return any(each.name == field for each in self.command.params)

    def order(self, given: Values) -> Any:
        options = {each.name: each for each in self.command.params}
        declared = {one.name: one for one in order_fields(self.kind)}
        words, places = [], []
        for name, value in given.items():
            option = options[name]
            values = value if isinstance(value, tuple) else (value,)
            if declared[name].declared.joined:
                values = (",".join(values),)
            if isinstance(option, click.Argument):
                places += [str(one) for one in values]
            elif isinstance(value, bool):
                words += [max(option.opts, key=len)] if value is not declared[name].default else []
            else:
                words += [f"{max(option.opts, key=len)}={_spelled(one)}" for one in values]
        context = self.command.make_context("muster", [*words, "--", *places], **SETTINGS)
        return next(made for one in self.command.taken for made in _orders_in(one.make(context.params), self.kind))

    def shown(self, field: DeclaredField) -> str:
        """Return the bounds that the help shows of an option."""
        option = next(each for each in self.command.params if each.name == field.name)
        extra = option.get_help_extra(click.Context(self.command)) if isinstance(option, click.Option) else {}
        return str(extra.get("range", ""))


@cache
def _schema(model: type[OrderModel]) -> Values:
    return model.model_json_schema(by_alias=True)


def _spelled(value: Any) -> str:
    return f"{value:f}" if isinstance(value, float) else str(value)


def _orders_in(made: Any, kind: Any) -> Iterator[Any]:
    if isinstance(made, kind):
        yield made
    elif hasattr(made, "order"):
        yield made.order


def _plain(schema: Any, defined: Values) -> Any:
    if isinstance(schema, list):
        return [_plain(one, defined) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        inner = defined[schema["$ref"].rpartition("/")[2]]["properties"]
        return {INNER: True, **{name: _plain(one, defined) for name, one in inner.items()}}
    branches = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    whole = {**schema, **branches[0]} if len(branches) == 1 else schema
    left_out = {"title", "description", "anyOf" if len(branches) == 1 else ""}
    return {
        name: _plain(one, defined)
        for name, one in whole.items()
        if not (name in left_out and not isinstance(one, dict)) and not name.startswith("x-")
    }


@cache
def doors_of(kind: Any) -> tuple[OrderDoor, ...]:
    """Return every door of an order: they are found, not listed."""
    return (InPython(kind), *(door for door in _all_doors() if _kind_at(door) is kind))


def _kind_at(door: "InJson | InWords") -> Any:
    kind = door.model.order_kind if isinstance(door, InJson) else door.kind
    return kind if kind in ORDERS else next(one for one in kind.__mro__ if one in ORDERS)


@cache
def _all_doors() -> "tuple[InJson | InWords, ...]":
    found: list[InJson | InWords] = [InJson(f"job of a {name}", Door.JOB, kind.model) for name, kind in JOBS.items()]
    found += [InJson(tool.name, Door.TOOL, tool.takes) for tool in TOOLS.values() if issubclass(tool.takes, OrderModel)]
    found += [
        InJson(f"POST {vars(route)['path']}", Door.REQUEST, model)
        for router in ROUTERS
        for route in router.routes
        if (model := _body_of(route)) is not None
    ]
    found += [
        InWords(path, command, order)
        for path, command in _commands(app, "muster")
        if (order := _ordered_by(command)) is not None
    ]
    return tuple(found)


def _body_of(route: Any) -> type[OrderModel] | None:
    found = getattr(getattr(route, "body_field", None), "field_info", None)
    model = None if found is None else found.annotation
    return model if isinstance(model, type) and issubclass(model, OrderModel) else None


def _commands(group: CliGroup, path: str) -> Iterator[tuple[str, CliCommand]]:
    for name in group.list_commands(click.Context(group)):
        command: Any = group.get_command(click.Context(group), name)
        if isinstance(command, CliGroup):
            yield from _commands(command, f"{path} {name}")
            command = command.default()
        if command is not None:
            yield f"{path} {name}", command


def _ordered_by(command: CliCommand) -> Any:
    """Return the order that a command takes; one that has only a part of one takes none."""
    place = command.entry.arguments
    if not place:
        return None
    arguments = load_place(place) if isinstance(place, str) else place()
    hints = [one.annotation for one in signature(arguments).parameters.values()]
    bundles = (part.make for hint in hints for part in get_args(hint)[1:] if isinstance(part, Bundle))
    return next((make for make in bundles if make in ORDERS), None)


def example(one: DeclaredField) -> Any:
    """Return a value that a field may have."""
    return _many(one, _example(one))


def _example(one: DeclaredField) -> Any:
    if choices := choices_of(one.kind):
        return choices[-1]
    kind, _ = element_of(one.kind)
    if is_dataclass(kind):
        made: Any = kind
        return made(**{inner.name: _example(inner) for inner in order_fields(made)})
    if kind not in EXAMPLES:
        return "one" if get_origin(kind) is Union else {}
    return max(EXAMPLES[kind], one.declared.min or 0) if kind in (int, float) else EXAMPLES[kind]


def _many(one: DeclaredField, value: Any) -> Any:
    return (value,) * max(1, one.declared.min_length or 1) if is_many(one.kind) else value


def least(kind: Any, door: Door) -> dict[str, Any]:
    """Return what must be given at a door."""
    return {one.name: example(one) for one in order_fields(kind) if one.at(door) and one.required(door)}


def tries(one: DeclaredField, door: Door) -> Iterator[tuple[Any, bool]]:
    """Yield values at and beyond the bounds of a field, and whether they are within."""
    kind, inner = element_of(one.kind)
    yield from ((_many(one, value), within) for value, within in _element_tries(one, kind, inner, door))
    if is_many(one.kind):
        yield from (((_example(one),) * number, within) for number, within in _length_tries(one.declared))
    if one.declared.max_json is not None:
        room = one.declared.max_json - len(json.dumps({"one": ""}))
        yield {"one": "a" * room}, True
        yield {"one": "a" * (room + 1)}, False


def _element_tries(one: DeclaredField, kind: Any, inner: ValueBounds | None, door: Door) -> Iterator[tuple[Any, bool]]:
    bounds = inner or one.declared
    if is_dataclass(kind):
        yield from _within_tries(_example(one), door)
    elif kind in (int, float):
        yield from _number_tries(kind, bounds)
    elif choices := choices_of(one.kind):
        yield from ((choice, True) for choice in choices)
        yield "nothing known", False
    elif kind is str and (inner or not is_many(one.kind)):
        yield from ((text, within or text == one.default) for text, within in _text_tries(bounds))


def _within_tries(whole: Any, door: Door) -> Iterator[tuple[Any, bool]]:
    """Yield values of which one field is at or beyond a bound."""
    kind: Any = type(whole)
    for field in order_fields(kind):
        if field.at(door):
            yield from ((replace(whole, **{field.name: value}), within) for value, within in tries(field, door))


def _number_tries(kind: Any, bounds: ValueBounds) -> Iterator[tuple[Any, bool]]:
    step = 1 if kind is int else 0.001
    for bound, away in ((bounds.min, -step), (bounds.max, step)):
        if bound is not None:
            yield kind(bound), True
            yield kind(bound) + away, False
    if bounds.above is not None:
        yield kind(bounds.above), False


def _text_tries(bounds: ValueBounds) -> Iterator[tuple[str, bool]]:
    if bounds.max_length is not None and bounds.max_length <= MAX_LENGTH:
        yield "a" * bounds.max_length, True
        yield "a" * (bounds.max_length + 1), False
    if bounds.min_length:
        yield "", False
    if bounds.pattern:
        yield from ((text, False) for text in ("/ one", "one\n", " one"))


def _length_tries(bounds: ValueBounds) -> Iterator[tuple[int, bool]]:
    if bounds.max_length is not None:
        yield bounds.max_length, True
        yield bounds.max_length + 1, False
    if bounds.min_length:
        yield bounds.min_length - 1, False


def refused(door: OrderDoor, given: Values) -> bool:
    try:
        door.order(given)
    except REFUSALS:
        return True
    return False


def differences(kind: Any, doors: "tuple[OrderDoor, ...]") -> Iterator[str]:
    """Yield in which field which door differs from the declaration."""
    for one in order_fields(kind):
        yield from _differences_of(one, kind, doors)


def _differences_of(one: DeclaredField, kind: Any, doors: "tuple[OrderDoor, ...]") -> Iterator[str]:
    at = [door for door in doors if one.at(door.door)]
    lost = [door for door in at if not door.takes(one.name)]
    yield from (f"{kind.__name__}.{one.name} is not taken at {door.name}" for door in lost)
    at = [door for door in at if door not in lost]
    told = {door.name: door.told(one.name) for door in at if isinstance(door, InJson)}
    if len({json.dumps(_shared(each, told.values()), sort_keys=True) for each in told.values()}) > 1:
        yield f"{kind.__name__}.{one.name} is described differently: {told}"
    for door in at:
        base = least(kind, door.door)
        yield from (f"{kind.__name__}.{one.name} at {door.name}: {wrong}" for wrong in _wrong(one, door, base))


def _shared(told: Any, others: Iterable[Any]) -> Any:
    """Return what is said of fields within a value that can be given at all doors: models are told of fewer."""
    if isinstance(told, list):
        return [_shared(each, [other[place] for other in others]) for place, each in enumerate(told)]
    if not isinstance(told, dict):
        return told
    kept = [name for name in told if all(name in other for other in others)] if told.get(INNER) else list(told)
    return {name: _shared(told[name], [other.get(name) for other in others]) for name in kept}


def _wrong(one: DeclaredField, door: OrderDoor, base: Values) -> Iterator[str]:
    if one.name not in base:
        usual = getattr(door.order(base), one.name)
        if usual != one.default or type(usual) is not type(one.default):
            yield f"is {usual!r} until it is given, not {one.default!r}"
    if isinstance(door, InWords) and (shown := door.shown(one)) != (bounds := _bounds_of_option(one)):
        yield f"shows the bounds {shown!r}, not {bounds!r}"
    if not one.declared.same_as:
        yield from _wrong_values(one, door, base)


def _wrong_values(one: DeclaredField, door: OrderDoor, base: Values) -> Iterator[str]:
    if one.declared.form.value not in ("path", "command") and one.name != "pairs":
        value = example(one)
        if refused(door, {**base, one.name: value}):
            yield f"does not take {value!r}"
        elif (made := getattr(door.order({**base, one.name: value}), one.name)) != value:
            yield f"makes {made!r} of {value!r}"
    for value, within in tries(one, door.door):
        if value == one.default and not within:  # what nothing means; it can always be left out
            continue
        if refused(door, {**base, one.name: value}) is within:
            yield f"{'does not take' if within else 'takes'} {str(value)[:40]!r} of {len(str(value))} characters"
        elif within and (made := getattr(door.order({**base, one.name: value}), one.name)) != value:
            yield f"makes {str(made)[:40]!r} of {str(value)[:40]!r}"


def _bounds_of_option(one: DeclaredField) -> str:
    """Return the bounds of a number as the help of an option shows them."""
    kind, inner = element_of(one.kind)
    bounds: ValueBounds = inner or one.declared
    if bounds.above is not None:
        return f"more than {bounds.above}" + ("" if bounds.max is None else f" and at most {bounds.max}")
    low, high = (None if bound is None or abs(bound) > MAX_SHOWN else bound for bound in (bounds.min, bounds.max))
    if kind not in (int, float) or (low is None and high is None):
        return ""
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


SAID = re.compile(r"\b(at most|up to|at least|from) ([\d,.]*\d)(?: to ([\d,.]*\d))?(?! ?%)")
BOUNDS_BY_WORDS = {"at most": ("max", "max_length"), "up to": ("max", "max_length"), "at least": ("min", "min_length")}


def bounds_said(one: DeclaredField) -> Iterator[str]:
    """Yield the bounds in the words of a field that it does not have; what an operator may raise is no bound."""
    for words in (one.declared.help, one.declared.option_help, one.declared.tool, one.declared.shown):
        for match in SAID.finditer(words):
            said = {"from": match[2], "to": match[3]} if match[1] == "from" else {match[1]: match[2]}
            names = BOUNDS_BY_WORDS | {"from": ("min",), "to": ("max",)}
            for which, number in said.items():
                own = [getattr(one.declared, name) for name in names[which]]
                if number and float(number.replace(",", "")) not in own and ", unless " not in words:
                    yield f"{one.name}: {match[0]!r} of {words!r}"


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_a_field_is_the_same_at_every_door(kind: Any) -> None:
    assert list(differences(kind, doors_of(kind))) == []


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_no_words_of_a_field_say_another_bound(kind: Any) -> None:
    assert [wrong for one in order_fields(kind) for wrong in bounds_said(one)] == []


def test_words_that_say_another_bound_are_noticed() -> None:
    declared = OrderField(help="Rounds, from 1 to 20.", min=1, max=50)
    said = DeclaredField(name="rounds", kind=int, declared=declared, default=3)
    assert list(bounds_said(said)) == ["rounds: 'from 1 to 20' of 'Rounds, from 1 to 20.'"]


# Where what starts a kind of work has no door of its own, as KINDS says; and orders that are no kind's.
NO_DOOR = {
    ("ScaleOrder", Door.TOOL),
    ("VerificationOrder", Door.TOOL),
    ("FanOutOrder", Door.REQUEST),
    ("FanOutOrder", Door.JOB),
}
FURTHER = {"TaskOrder": {"muster task run"}, "RejudgeOrder": {"muster runs rejudge"}}


@pytest.mark.parametrize("known", [known for known in KINDS if known.kind.order], ids=lambda known: known.kind.word)
def test_every_door_of_a_kind_is_compared(known: AppKind) -> None:
    order: Any = known.order
    declared = {door for door in Door if any(one.at(door) for one in order_fields(order))}
    local = {Door.PYTHON, Door.COMMAND} if _needs_this_machine(order) else declared
    expected = {door for door in declared & local if (order.__name__, door) not in NO_DOOR}
    assert {door.door for door in doors_of(order)} == expected
    assert all(door in known.doors.own for name, door in NO_DOOR if name == order.__name__)
    assert known.kind.command in {door.name for door in doors_of(order)}


FOREIGN = re.compile(r"[Ii]nput should|should (?:have|match|be)|after validation|greater than|less than or|valid ")
ODD_VALUES: tuple[Any, ...] = (5, -1.5, "", "\x00", [], [5], [""], {}, {"": []}, True)


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_what_is_wrong_with_a_field_is_said_in_words_of_our_own(kind: Any) -> None:
    for door in (each for each in doors_of(kind) if isinstance(each, InJson)):
        for one in order_fields(kind):
            for value in ODD_VALUES if one.at(door.door) else ():
                try:
                    door.model.model_validate({door.model.names()[one.name]: value})
                except ValidationError as error:
                    told = [flaw.message for flaw in request_flaws(error.errors(), door.model.names())]
                    assert not any(map(FOREIGN.search, told)), told
                    assert "is not valid" not in told


def _needs_this_machine(order: Any) -> bool:
    return any(one.default is MISSING and not one.declared.doors & REMOTE for one in order_fields(order))


@pytest.mark.parametrize(("order", "names"), FURTHER.items())
def test_further_commands_of_an_order_are_compared(order: str, names: set[str]) -> None:
    kind = next(one for one in ORDERS if one.__name__ == order)
    assert names <= {door.name for door in doors_of(kind)}


@pytest.mark.parametrize("one", order_fields(BattlesOrder), ids=lambda one: one.name)
def test_the_tool_of_battles_bounds_what_it_takes_as_a_scale_test_does(one: DeclaredField) -> None:
    known = {field.name: field for field in order_fields(ScaleOrder)}
    shared = ("min", "max", "above", "min_length", "max_length", "pattern", "max_json")
    assert [getattr(one.declared, name) for name in shared] == [
        getattr(known[one.name].declared, name) for name in shared
    ]


def _elsewhere(base: Any, field: str, hint: Any, default: Any) -> InJson:
    """Return a door whose code has a declaration of its own for one field."""
    body = {"__annotations__": {field: hint}, field: default, "__module__": __name__}
    made: Any = dataclass(frozen=True, kw_only=True)(type("Other", (base,), body))
    return InJson("elsewhere", Door.REQUEST, order_model(made, Door.REQUEST, name="Other", camel=True))


@pytest.mark.parametrize(
    ("base", "field", "hint", "default"),
    [
        (BattleOrder, "message_limit", Annotated[int, OrderField(help="Replies.", min=1, max=24)], 25),
        (BattleOrder, "id", Annotated[str | None, OrderField(help="The id.", pattern="[a-z]{3}")], None),
        (BattleOrder, "validators", Annotated[tuple[Any, ...], OrderField(help="Checks.", max_length=19)], ()),
        (
            ScaleOrder,
            "agents",
            Annotated[tuple[Name, ...], OrderField(help="Who.", alias="agentIds", min_length=2)],
            (),
        ),
        (BattleOrder, "goal", Annotated[str, OrderField(help="The goal.", shown="none", min_length=2)], ""),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_door_with_another_bound_is_noticed(base: Any, field: str, hint: Any, default: Any) -> None:
    known = next(one for one in order_fields(base) if one.name == field)
    found = list(_differences_of(known, base, (*doors_of(base), _elsewhere(base, field, hint, default))))
    assert f"{base.__name__}.{field} is described differently" in {one.partition(":")[0] for one in found}
    assert field == "id" or any(f".{field} at elsewhere" in one for one in found)  # what is tried fits that pattern too


def test_a_door_that_loses_a_field_is_noticed() -> None:
    known = next(one for one in order_fields(BattleOrder) if one.name == "goal")
    less = order_model(RunOrder, Door.REQUEST, name="Less", camel=True)
    found = list(_differences_of(known, BattleOrder, (*doors_of(BattleOrder), InJson("elsewhere", Door.REQUEST, less))))
    assert found == ["BattleOrder.goal is not taken at elsewhere"]


if __name__ == "__main__":
    for order in ORDERS:
        print(order.__name__, ", ".join(door.name for door in doors_of(order)))
        print("".join(f"  {difference}\n" for difference in differences(order, doors_of(order))), end="")
