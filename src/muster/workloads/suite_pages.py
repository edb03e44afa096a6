"""Pages of results in the journal. A page that holds errors gets a newer version when they are mended on resume."""

from dataclasses import dataclass

from muster.domain.suite import MENDABLE, results_key
from muster.domain.verdict import CaseResult
from muster.engine.context import Context
from muster.formats.packing import pack, results_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPage:
    """Results that are kept together."""

    number: int
    version: int
    results: tuple[CaseResult, ...]

    @property
    def mendable(self) -> bool:
        """Whether something in it may come out otherwise when it is tried again."""
        return any(result.status in MENDABLE for result in self.results)


async def newest_page(ctx: Context, tag: str, number: int) -> ResultPage | None:
    """Give the last version of a page that was kept."""
    newest = None
    while newest is None or newest.mendable:
        version = 1 if newest is None else newest.version + 1
        value = await ctx.recall(results_key(tag, number, version))
        if value is None:
            break
        newest = ResultPage(number=number, version=version, results=results_of(value))
    return newest


async def keep_page(ctx: Context, tag: str, number: int, results: tuple[CaseResult, ...]) -> None:
    """Keep the results of a page; nothing is written when they are known already."""
    newest = await newest_page(ctx, tag, number)
    if newest is not None and newest.results == results:
        return
    version = 1 if newest is None else newest.version + 1
    await ctx.step(results_key(tag, number, version), lambda: pack(results))
