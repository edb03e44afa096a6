"""Every field of every order is the same at every door: its type, its bounds, and what it is until it is given."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from inspect import signature
from typing import Annotated, Any, Protocol, Union, get_args, get_origin

import click
import pytest
from pydantic import ValidationError

from muster.api.app import ROUTERS
from muster.app.serving.jobs import KINDS as JOBS
from muster.app.serving.order_models import OrderModel, order_model
from muster.battles.order import BattleOrder
from muster.cli.commands import app
from muster.cli.line import Bundle
from muster.cli.line.commands import SETTINGS, CliCommand, CliGroup, load_place
from muster.domain.errors import BadArgument
from muster.domain.order import (
    DeclaredField,
    Door,
    OrderField,
    ValueBounds,
    choices_of,
    element_of,
    is_many,
    order_fields,
    require_bounds,
)
from muster.mcp.server import TOOLS
from tests.orders import ORDERS

Values = Mapping[str, Any]
MAX_LENGTH = 2_000_000  # characters of a text that is tried
INNER = "$fields"  # marks what is said of the fields within a value
REFUSALS = (ValidationError, BadArgument, click.UsageError)
EXAMPLES: dict[Any, Any] = {str: "one", int: 1, float: 0.5, bool: True}


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


@dataclass(frozen=True)
class InPython:
    """A program that makes the order itself."""

    kind: Any
    name = "Python"
    door = Door.PYTHON

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
        schema = self.model.model_json_schema(by_alias=True)
        return _plain(schema["properties"][self.model.names()[field]], schema.get("$defs", {}))


@dataclass(frozen=True)
class InWords:
    """A command."""

    name: str
    command: CliCommand
    kind: Any
    door = Door.COMMAND

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
        if "plan" not in path and (order := _ordered_by(command)) is not None
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


def tries(one: DeclaredField) -> Iterator[tuple[Any, bool]]:
    """Yield values at and beyond the bounds of a field, and whether they are within."""
    kind, inner = element_of(one.kind)
    bounds: ValueBounds = inner or one.declared
    if kind in (int, float):
        step = 1 if kind is int else 0.001
        for bound, away in ((bounds.min, -step), (bounds.max, step)):
            if bound is not None:
                yield _many(one, kind(bound)), True
                yield _many(one, kind(bound) + away), False
        if bounds.above is not None:
            yield _many(one, kind(bounds.above)), False
    elif kind is str and not choices_of(one.kind):
        longest = bounds.max_length if inner or not is_many(one.kind) else None
        if longest is not None and longest <= MAX_LENGTH:
            yield _many(one, "a" * longest), True
            yield _many(one, "a" * (longest + 1)), False
        if (bounds.min_length if inner or not is_many(one.kind) else 0) and one.default != "":
            yield _many(one, ""), False
    elif choices_of(one.kind):
        yield from ((_many(one, choice), True) for choice in choices_of(one.kind))
        yield _many(one, "nothing known"), False
    if is_many(one.kind) and one.declared.max_length is not None:
        yield (_example(one),) * one.declared.max_length, True
        yield (_example(one),) * (one.declared.max_length + 1), False


def refused(door: OrderDoor, given: Values) -> bool:
    try:
        door.order(given)
    except REFUSALS:
        return True
    return False


def differences(kind: Any, doors: "tuple[OrderDoor, ...]") -> Iterator[str]:
    """Yield in which field which door differs from the declaration."""
    for one in order_fields(kind):
        at = [door for door in doors if one.at(door.door)]
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
    if one.declared.same_as:
        return
    if one.declared.form.value not in ("path", "command") and one.name != "pairs":
        value = example(one)
        if refused(door, {**base, one.name: value}):
            yield f"does not take {value!r}"
        elif (made := getattr(door.order({**base, one.name: value}), one.name)) != value:
            yield f"makes {made!r} of {value!r}"
    for value, within in tries(one):
        if value == one.default and not within:  # what nothing means; it can always be left out
            continue
        if refused(door, {**base, one.name: value}) is within:
            yield f"{'does not take' if within else 'takes'} {str(value)[:40]!r} of {len(str(value))} characters"


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_a_field_is_the_same_at_every_door(kind: Any) -> None:
    assert list(differences(kind, doors_of(kind))) == []


def test_every_door_of_a_battle_is_compared() -> None:
    found = [door.name for door in doors_of(BattleOrder)]
    assert found == ["Python", "job of a battle", "start_battle", "POST /api/battles/start", "muster battle"]


@dataclass(frozen=True, kw_only=True)
class OtherBattleOrder(BattleOrder):
    """A battle as a door would take it whose code has a bound of its own."""

    message_limit: Annotated[int, OrderField(help="Replies.", tool="Replies.", min=1, max=24)] = 25


def test_a_door_with_another_bound_is_noticed() -> None:
    other = InJson("elsewhere", Door.TOOL, order_model(OtherBattleOrder, Door.TOOL, name="Other"))
    found = list(differences(BattleOrder, (*doors_of(BattleOrder), other)))
    assert [one.partition(":")[0] for one in found] == [
        "BattleOrder.message_limit is described differently",
        "BattleOrder.message_limit at elsewhere",
    ]


if __name__ == "__main__":
    for order in ORDERS:
        print(order.__name__, ", ".join(door.name for door in doors_of(order)))
        print("".join(f"  {difference}\n" for difference in differences(order, doors_of(order))), end="")
