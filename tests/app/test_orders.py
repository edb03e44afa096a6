"""Orders: every door takes the same fields with the same types, bounds and defaults, and no path over a network."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from muster.app.serving.order_models import order_body, order_model
from muster.battles.order import BattleOrder, ScaleOrder
from muster.cli.line.parameters import Bundle, bundled
from muster.domain.doors import LOCAL, REMOTE, Door
from muster.domain.order import DeclaredField, FieldForm, OrderField, field_flaws, order_fields
from tests.orders import ORDERS

WIRE_DOORS = (Door.REQUEST, Door.TOOL, Door.JOB)
Described = dict[str, Any]


def fields() -> Iterator[tuple[type, DeclaredField]]:
    return ((order, field) for order in ORDERS for field in order_fields(order))


def test_no_path_and_no_command_arrives_over_a_network() -> None:
    private = [
        (order, field) for order, field in fields() if field.declared.form in (FieldForm.PATH, FieldForm.COMMAND)
    ]
    assert {field.name for _, field in private} == {
        "validator_texts",
        "validators_file",
        "goals_file",
        "prompt_files",
        "files",
        "policy_file",
        "rows_file",
        "schema_file",
        "cwd",
        "agents_file",
        "paths",
        "prompts",
        "file",
        "extend",
        "output",
    }
    for order, field in private:
        for door in WIRE_DOORS:
            with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
                order_model(order, door, name="Checked").model_validate({"agent": "a", field.name: ["x"]})


@pytest.mark.parametrize("form", [FieldForm.PATH, FieldForm.COMMAND])
def test_a_path_or_a_command_cannot_be_declared_for_a_network(form: FieldForm) -> None:
    with pytest.raises(TypeError, match="never arrives over a network"):
        OrderField(help="A file.", form=form, doors=LOCAL | {Door.TOOL})
    assert not OrderField(help="A file.", form=form, doors=LOCAL).doors & REMOTE


@dataclass(frozen=True, kw_only=True)
class Survey:
    """An order of these tests."""

    count: Annotated[int, OrderField(help="How many.", min=1, max=5)] = 1
    share: Annotated[float | None, OrderField(help="How much.", above=0, max=1)] = None
    words: Annotated[tuple[str, ...], OrderField(help="Which.", max_length=2)] = ()


@given(st.integers(-3, 9), st.none() | st.floats(allow_nan=False, width=16), st.lists(st.text(max_size=3), max_size=4))
def test_python_refuses_exactly_what_the_model_refuses(count: int, share: float | None, words: list[str]) -> None:
    model = order_model(Survey, Door.REQUEST, name="Survey")
    flaws = [flaw.path for flaw in field_flaws(Survey(count=count, share=share, words=tuple(words)))]
    assert flaws == refused(model, {"count": count, "share": share, "words": words})


def refused(model: Any, sent: Described) -> list[str]:
    """Return the fields that a model does not take."""
    try:
        model.model_validate(sent)
    except ValidationError as error:
        return [str(one["loc"][0]) for one in error.errors()]
    return []


def test_all_flaws_are_named_at_once_with_their_places() -> None:
    found = list(field_flaws(Survey(count=9, share=2.0, words=("a", "b", "c"))))
    assert [str(flaw) for flaw in found] == [
        "count must be at most 5, not 9",
        "share must be at most 1, not 2.0",
        "words must have at most 2 entries, not 3",
    ]


class Colour(StrEnum):
    """What may be chosen, in this order."""

    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Painting:
    """An order with choices."""

    colour: Annotated[Colour, OrderField(help="Which.")] = Colour.RED
    size: Annotated[Literal["small", "big"] | None, OrderField(help="How big.")] = None


def test_choices_have_the_order_of_their_declaration_whoever_has_made_such_a_type_before() -> None:
    before = (Literal["blue", "red"] | None, Optional[Literal["big", "small"]])  # noqa: UP045 - as typing keeps them
    shown = order_model(Painting, Door.REQUEST, name="Painting").model_json_schema()["properties"]
    assert before
    assert [one["anyOf"][0]["enum"] for one in shown.values()] == [["red", "blue"], ["small", "big"]]


def test_equal_requests_ask_for_the_same_whatever_they_leave_out() -> None:
    model = order_model(BattleOrder, Door.REQUEST, name="BattleBody", camel=True)
    said = [
        {"agentId": "a", "jobId": "b1"},
        {"agentId": "a", "id": "b1", "goal": None, "dispatch": "live", "validators": [], "cache": None},
        {"agentId": "a", "id": "b1", "runId": "b1"},
    ]
    asked = [order_body(model.model_validate(one)) for one in said]
    assert [(one.asked(), one.earlier()) for one in asked] == [({"agentId": "a", "id": "b1"}, ())] * 3
    with pytest.raises(ValidationError, match="must be the same as id"):
        model.model_validate({"agentId": "a", "id": "b1", "runId": "b2"})


def test_a_default_that_is_written_out_asks_for_nothing_more_and_its_older_spelling_is_known() -> None:
    model = order_model(ScaleOrder, Door.REQUEST, name="ScaleBody", camel=True)
    said: list[dict[str, Any]] = [{"messageLimit": 25}, {"agentIds": [], "messageLimit": 25}, {"systemPrompt": ""}]
    asked = [order_body(model.model_validate({"agentId": "a", **one})) for one in said]
    assert [one.asked() for one in asked] == [{"agentId": "a"}] * 3
    assert [one.earlier() for one in asked] == [({"agentId": "a", "messageLimit": 25},)] * 2 + [()]
    assert order_body(model.model_validate({"agentId": "a", "messageLimit": 24})).asked()["messageLimit"] == 24


def test_an_order_that_was_sent_is_the_order_that_a_program_makes() -> None:
    model = order_model(ScaleOrder, Door.REQUEST, name="ScaleBody", camel=True)
    sent = {
        "agentIds": ["a", "b"],
        "runCount": 4,
        "goals": [{"goal": "A table", "userMessage": "Hi"}],
        "messageLimit": 3,
    }
    order = model.model_validate(json.loads(json.dumps(sent))).order()
    assert (order.agents, order.runs, order.message_limit) == (("a", "b"), 4, 3)
    assert (order.goals[0].goal, order.goals[0].user_message, order.goals[0].persona) == ("A table", "Hi", "")
    assert order == ScaleOrder(agents=("a", "b"), runs=4, goals=order.goals, message_limit=3)


def test_options_make_the_same_order() -> None:
    taken = bundled("order", Bundle(ScaleOrder))
    command = click.Command("scale", params=list(taken.parameters))
    words = ["--agent", "a", "-a", "b", "--runs", "4", "--message-limit", "3", "--no-revision", "--goals", "g.yaml"]
    order = taken.make(command.make_context("scale", words).params)
    wanted = ScaleOrder(agents=("a", "b"), runs=4, message_limit=3, revision=False, goals_file=Path("g.yaml"))
    assert order == wanted


@dataclass(frozen=True, kw_only=True)
class Errand:
    """An order whose fields stand on the command line in every other way."""

    what: Annotated[str, OrderField(help="What.", argument=True, metavar="WHAT", when_more="quote it")]
    since: Annotated[str | None, OrderField(help="Since when.", metavar="[REF]", bare="")] = None
    words: Annotated[tuple[str, ...], OrderField(help="Which.", metavar="A,B", joined=True)] = ()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["run"], Errand(what="run")),
        (["run", "--since"], Errand(what="run", since="")),
        (["--since", "main", "run"], Errand(what="run", since="main")),
        (["run", "--words", "a, b,"], Errand(what="run", words=("a", "b"))),
        (["run", "--words", ","], Errand(what="run", words=("",))),
    ],
)
def test_a_field_may_be_an_argument_stand_bare_or_have_several_words(words: list[str], wanted: Errand) -> None:
    taken = bundled("order", Bundle(Errand))
    command = click.Command("errand", params=list(taken.parameters))
    assert taken.make(command.make_context("errand", words).params) == wanted
