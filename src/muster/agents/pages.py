"""Lists that providers give page by page, the newest first."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from math import floor

from muster.domain.batch import Found

Turn = Callable[[str], Awaitable[tuple[Sequence[Found], bool]]]  # after which id; the page, and whether more follows


async def leaf(turn: Turn, since: float) -> AsyncIterator[Found]:
    """Turn pages until a batch is older than asked for."""
    after, more = "", True
    while more:
        page, more = await turn(after)
        for found in page:
            if found.created_at < floor(since):  # some providers count whole seconds
                return
            yield found
        if not page or page[-1].id == after:
            return  # a list that does not get on would never end
        after = page[-1].id
