"""Views: frozen values, their JSON, and the parts that are left out of it."""

import json

import pytest

from muster.text import typed
from muster.text.views import UNSET, UnsetType, View, asdict, json_bytes, plain, replace


class Priced(View, kw_only=True):
    """Something with a price."""

    usd: float


class Item(Priced):
    """A thing, with its owner where that is told."""

    name: str
    tags: tuple[str, ...] = ()
    owner: str | UnsetType | None = UNSET


def test_a_part_that_is_unset_is_left_out_and_null_is_told() -> None:
    item = Item(name="a", usd=1.5)
    assert json_bytes(item) == b'{"name":"a","tags":[],"usd":1.5}'
    assert json_bytes(replace(item, owner=None)) == b'{"name":"a","tags":[],"owner":null,"usd":1.5}'
    assert "owner" not in item.builtins()


def test_the_schema_requires_what_every_answer_has() -> None:
    _, components = typed.schema_components([Item], ref_template="#/{name}")
    assert components["Item"]["required"] == ["name", "usd"]
    assert "owner" in components["Item"]["properties"]


def test_a_view_cannot_be_changed_and_builds_on_another() -> None:
    item = Item(**asdict(Priced(usd=2.0)), name="b")
    with pytest.raises(AttributeError):
        item.name = "c"  # type: ignore[misc]
    with pytest.raises(TypeError, match="usd"):
        Item(name="b")  # type: ignore[call-arg]
    assert plain(item) == {"name": "b", "tags": [], "usd": 2.0}


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert json.loads(json_bytes(Item(name="\ud83d", usd=1))) == {"name": "\ud83d", "tags": [], "usd": 1}
