"""Pages of results in the journal. A page that holds something mendable gets a newer version when it is mended."""

from itertools import count

from muster.domain.suite import MENDABLE, results_key
from muster.domain.verdict import CaseResult
from muster.engine.context import Context
from muster.formats.packing import pack, results_of


async def newest_page(ctx: Context, tag: str, number: int) -> tuple[CaseResult, ...]:
    """Give the last version of a page that this run kept; nothing when there is none.

    An heir has none at first: it looks at every case again, and so takes over the calls that led to the results.
    """
    newest: tuple[CaseResult, ...] = ()
    for version in count(1):
        found = results_of(await ctx.recall(results_key(tag, number, version)))
        if not found:
            break
        newest = found
        if not mendable(newest):
            break
    return newest


async def keep_page(ctx: Context, tag: str, number: int, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
    """Keep the results of a page, and give those that stand from now on.

    What is there already is taken over, version by version, so that an heir has all that its reports need.
    """
    packed = pack(results)
    for version in count(1):
        kept = await ctx.step(results_key(tag, number, version), lambda: packed)
        if kept == packed:
            break
        standing = results_of(kept)
        if not mendable(standing):
            return standing
    return results


def mendable(results: tuple[CaseResult, ...]) -> bool:
    """Whether something in a page may come out otherwise when it is tried again."""
    return any(result.status in MENDABLE for result in results)
