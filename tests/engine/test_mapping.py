"""A map loses no item, however many of them come back from a batch in the same moment."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.engine.base.mapping import item_under_way, ordered_map

MOST = 60


async def mapped(pauses: list[tuple[int, int]], window: int) -> list[int]:
    """Map items that are at work and parked for so many moments each."""

    async def work(number: int, item: int) -> int:
        at_work, parked = pauses[item]
        for _ in range(at_work):
            await asyncio.sleep(0)
        place = item_under_way()
        assert place is not None
        if parked:
            place.park()
            for _ in range(parked):
                await asyncio.sleep(0)
            place.unpark()
        return item

    return [item async for item in ordered_map(work, range(len(pauses)), window)]


@pytest.mark.parametrize("window", [1, 2, 7, 40])
@pytest.mark.parametrize("parked", [0, 1, 2, 5])
async def test_items_that_come_back_together_all_count(window: int, parked: int) -> None:
    assert await mapped([(0, parked)] * 500, window) == list(range(500))


@given(
    st.lists(st.tuples(st.integers(min_value=0, max_value=3), st.integers(min_value=0, max_value=3)), max_size=MOST),
    st.integers(min_value=1, max_value=10),
)
def test_no_item_is_lost_whenever_it_comes_back(pauses: list[tuple[int, int]], window: int) -> None:
    assert asyncio.run(mapped(pauses, window)) == list(range(len(pauses)))
