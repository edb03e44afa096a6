"""Many summaries side by side, then one report of them. A chapter that cannot be read does not stop the others."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import muster

FOLDER = Path(__file__).parent
CHAPTERS = ("The storm broke the mast.", "", "The price of bread was doubled.")


@dataclass(frozen=True)
class Book:
    chapters: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    text: str
    failed: tuple[int, ...]


@muster.workload("summarize a chapter")
async def summarize(ctx: muster.Context, chapter: str) -> str:
    if not chapter:
        raise ValueError("the chapter is empty")
    return (await ctx.call("writer", f"Summarize in one line: {chapter}", key="summary")).text


@muster.workload("report on a book")
async def report(ctx: muster.Context, book: Book) -> Report:
    async def part(number: int, chapter: str) -> str:
        return await ctx.child(f"chapter/{number}", summarize, chapter, budget_usd="0.10")

    lines: list[str] = []
    failed: list[int] = []
    found = ctx.map(part, book.chapters, limit=4, return_exceptions=True)
    async for line in found:
        if isinstance(line, Exception):
            failed.append(len(lines) + len(failed))
        else:
            lines.append(line)
    reply = await ctx.call("writer", "Write one report:\n" + "\n".join(lines), key="report")
    return Report(reply.text, tuple(failed))


async def main() -> None:
    async with muster.open(project=FOLDER) as m:
        run = await m.start(report, Book(CHAPTERS), name="book", budget_usd="1.00", concurrency=8, resume=True)
        done = await run.result()
        print(done.text, f"(chapters that failed: {list(done.failed)})")


if __name__ == "__main__":
    asyncio.run(main())
