"""Which cases are meant."""

from dataclasses import replace

import pytest

from muster.domain.call import Message, Role
from muster.suites.spec import CaseSelection
from muster.suites.values.case import Case

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
        (CaseSelection(), True),
        (CaseSelection(filter="greeter/*"), True),
        (CaseSelection(filter="kind/*"), True),
        (CaseSelection(filter="*one"), True),
        (CaseSelection(filter="one"), False),
        (CaseSelection(filter="Greeter/*"), False),
        (CaseSelection(filter="greeter/[a-k]ind/?ne"), True),
        (CaseSelection(tags=("nightly",)), True),
        (CaseSelection(tags=("other", "smoke")), True),
        (CaseSelection(tags=("other",)), False),
        (CaseSelection(tags=(" Nightly",)), True),
        (CaseSelection(only=frozenset({"greeter/kind/one"})), True),
        (CaseSelection(only=frozenset({"greeter/kind"})), False),
        (CaseSelection(only=frozenset()), False),
        (CaseSelection(filter="*", tags=("smoke",), only=frozenset({"other"})), False),
        (CaseSelection(filter="no*", tags=("smoke",)), False),
    ],
)
def test_everything_that_is_said_must_hold(selection: CaseSelection, taken: bool) -> None:
    assert selection.takes(CASE) is taken
    assert selection.takes(replace(CASE, flaw="tagz: unknown field"))
