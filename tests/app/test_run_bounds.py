"""What Python says of a run has the bounds that every other door has."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest

import muster
from muster.domain.doors import LOCAL
from muster.domain.order import OrderField, order_fields
from muster.domain.run_order import MAX_SECONDS, MAX_TAGS, LimitedRunOrder


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"timeout": MAX_SECONDS + 1}, "timeout must be at most 2592000"),
        ({"name": "n" * 300}, "name must have at most"),
        ({"tags": ["t"] * (MAX_TAGS + 1)}, f"tags must have at most {MAX_TAGS}"),
        ({"tags": ["good", ""]}, r"tags\[1\] is empty"),
    ],
)
async def test_an_option_beyond_the_bounds_of_other_doors_is_refused(
    tmp_path: Path, option: dict[str, Any], said: str
) -> None:
    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.BadArgument, match=said):
            m.runs.options(**option)
        assert await m.runs.list() == []


async def test_the_bounds_themselves_are_taken(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        options = m.runs.options(timeout=MAX_SECONDS, tags=["t"] * MAX_TAGS)
    assert (options.timeout, len(options.tags)) == (MAX_SECONDS, MAX_TAGS)


def test_a_path_is_declared_for_doors_of_this_machine_only() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Leaky(LimitedRunOrder):
        script: Annotated[tuple[Path, ...], OrderField(help="A script.")] = ()

    @dataclass(frozen=True, kw_only=True)
    class Sound(LimitedRunOrder):
        script: Annotated[Path | None, OrderField(help="A script.", doors=LOCAL)] = None

    with pytest.raises(TypeError, match="script is a path, which never arrives over a network"):
        order_fields(Leaky)
    assert "script" in {field.name for field in order_fields(Sound)}
