"""What a request tells a process besides its question."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.agents.local import folder_of, session_of
from muster.domain.call import Request, ask
from muster.domain.canonical import Json


def telling(**volatile: Json) -> Request:
    return replace(ask("x"), volatile=volatile)


def test_a_session_is_named() -> None:
    assert session_of(telling(session="abc")) == "abc"
    assert session_of(ask("x")) is None


@pytest.mark.parametrize("session", [None, "", 7, ["abc"]])
def test_a_session_that_is_no_name_is_none(session: Json) -> None:
    assert session_of(telling(session=session)) is None


@pytest.mark.parametrize(
    ("folder", "found"), [("part", "/work/part"), ("/other", "/other"), (7, "/work"), ("", "/work")]
)
def test_a_folder_is_relative_to_the_usual_one(folder: Json, found: str) -> None:
    assert folder_of(telling(cwd=folder), Path("/work")) == Path(found)
