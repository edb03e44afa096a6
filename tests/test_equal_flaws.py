"""What is wrong with a field is the same flaw at every door: its path, its code, its message and its suggestion."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click
import pytest
from pydantic import ValidationError

from muster.app.serving.request_flaws import request_flaws
from muster.cli.line.parameters import shown_name
from muster.cli.main import usage_flaws
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.domain.order import DeclaredField, FieldForm, field_flaws, order_fields
from muster.text.declared_values import plain_flaws
from tests.orders import ORDERS
from tests.test_equal_doors import (
    ODD_VALUES,
    InJson,
    InPython,
    InWords,
    OrderDoor,
    Values,
    doors_of,
    least,
    tries,
)

LOCAL_FORMS = (FieldForm.PATH, FieldForm.COMMAND)


def wrong_values(one: DeclaredField) -> Iterator[Any]:
    """Yield values beyond the bounds of a field."""
    for door in one.declared.doors:
        yield from (value for value, within in tries(one, door) if not within and value != one.default)


def told(door: OrderDoor, given: Values) -> Sequence[FieldFlaw]:
    """Return the flaws that a door tells."""
    try:
        door.order(given)
    except ValidationError as error:
        assert isinstance(door, InJson)
        return request_flaws(error.errors(include_url=False), door.model.names())
    except click.UsageError as error:
        return usage_flaws(error)
    except Exception as error:
        return list(getattr(error, "flaws", ()))
    return []


def expected(door: OrderDoor, flaw: FieldFlaw, one: DeclaredField) -> FieldFlaw:
    """Return a flaw of the declaration by the names of a door."""
    if isinstance(door, InJson):
        return flaw.named(door.model.names())
    if isinstance(door, InWords):
        option = next(each for each in door.command.params if each.name == one.name)
        return replace(flaw, path=shown_name(option))
    return flaw


def differences(kind: Any, one: DeclaredField) -> Iterator[str]:
    for value in wrong_values(one):
        doors = [door for door in doors_of(kind) if one.at(door.door)]
        if not doors:
            return
        flaws = told(InPython(kind), {**least(kind, doors[0].door), one.name: value})
        for door in doors:
            if value == "" and isinstance(door, InWords) and one.declared.joined:
                continue  # between commas nothing stands
            found = told(door, {**least(kind, door.door), one.name: value})
            wanted = [expected(door, flaw, one) for flaw in flaws]
            if list(found) != wanted:
                yield f"{door.name}, {one.name} = {str(value)[:60]!r}: {found} is not {wanted}"


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_what_is_beyond_a_bound_is_the_same_flaw_at_every_door(kind: Any) -> None:
    fields = [one for one in order_fields(kind) if not one.declared.same_as and one.declared.form not in LOCAL_FORMS]
    assert [wrong for one in fields for wrong in differences(kind, one)] == []


@pytest.mark.parametrize("kind", ORDERS, ids=lambda kind: kind.__name__)
def test_what_is_of_another_type_is_the_same_flaw_at_every_door_that_takes_json(kind: Any) -> None:
    for door in (each for each in doors_of(kind) if isinstance(each, InJson)):
        names = door.model.names()
        for one in (each for each in order_fields(kind) if each.at(door.door) and each.name != "pairs"):
            for value in (each for each in ODD_VALUES if each not in (one.default, _listed(one.default))):
                given = {**least(kind, door.door), one.name: value}
                flaws = [flaw for flaw in plain_flaws(given, kind) if flaw.path.startswith(one.name)]
                sent = {names[one.name]: value}
                try:
                    door.model.model_validate(sent)
                    found = []
                except ValidationError as error:
                    all_ = request_flaws(error.errors(include_url=False), names)
                    found = [flaw for flaw in all_ if flaw.path.startswith(names[one.name])]
                assert found == [flaw.named(names) for flaw in flaws], (door.name, one.name, value)


def test_a_field_that_there_is_not_is_the_same_flaw_at_every_door() -> None:
    kind = next(one for one in ORDERS if one.__name__ == "CouncilOrder")
    for door in doors_of(kind):
        if isinstance(door, InJson):
            with pytest.raises(ValidationError) as caught:
                door.model.model_validate({"agents": ["a"], "question": "x", "roundz": 3})
            flaws: Sequence[FieldFlaw] = request_flaws(caught.value.errors(), door.model.names())
        elif isinstance(door, InWords):
            with pytest.raises(click.UsageError) as refused:
                door.command.make_context("muster", ["--roundz", "3", "x"])
            flaws = [
                replace(flaw, path=flaw.path[2:], suggestion=flaw.suggestion.replace("--", ""))
                for flaw in usage_flaws(refused.value)
            ]
        else:
            flaws = list(plain_flaws({"agents": ["a"], "question": "x", "roundz": 3}, kind))
        way = "did you mean rounds?"
        assert flaws == [FieldFlaw(path="roundz", message="is unknown", code=FlawCode.UNKNOWN, suggestion=way)], door


def test_what_a_program_makes_is_checked_whatever_its_annotations_promised() -> None:
    kind: Any = next(one for one in ORDERS if one.__name__ == "CouncilOrder")
    made = kind(question="x", agents="ada", files=None, run_tags=(3,), name=5, cache=None, dispatch="bach")
    assert {str(flaw) for flaw in field_flaws(made)} == {
        "agents must be a list, not 'ada'",
        "files must be a list, not None",
        "run_tags[0] must be a string, not 3",
        "name must be a string, not 5",
        "cache must be true or false, not None",
        "dispatch must be one of live, flex, batch, not 'bach'",
    }


def _listed(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default
