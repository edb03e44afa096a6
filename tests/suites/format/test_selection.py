"""Which cases are meant."""

import pytest

from muster.domain.call import Message, Role
from muster.suites.case import Case
from muster.suites.spec import Selection

CASE = Case(
    id="greeter/kind/one",
    suite="greeter",
    file="f",
    line=1,
    messages=(Message(role=Role.USER, text="x"),),
    tags=("smoke", "nightly"),
)


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), True),
        (Selection(filter="greeter/*"), True),
        (Selection(filter="kind/*"), True),
        (Selection(filter="*one"), True),
        (Selection(filter="one"), False),
        (Selection(filter="Greeter/*"), False),
        (Selection(filter="greeter/[a-k]ind/?ne"), True),
        (Selection(tags=("nightly",)), True),
        (Selection(tags=("other", "smoke")), True),
        (Selection(tags=("other",)), False),
        (Selection(only=frozenset({"greeter/kind/one"})), True),
        (Selection(only=frozenset({"greeter/kind"})), False),
        (Selection(only=frozenset()), False),
        (Selection(filter="*", tags=("smoke",), only=frozenset({"other"})), False),
        (Selection(filter="no*", tags=("smoke",)), False),
    ],
)
def test_everything_that_is_said_must_hold(selection: Selection, taken: bool) -> None:
    assert selection.takes(CASE) is taken
