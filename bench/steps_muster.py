"""A triage of letters with Muster: `python -m bench.steps_muster LETTERS FOLDER` starts it, or goes on with it."""

import asyncio
import json
import sys
from pathlib import Path

import muster
from bench.steps import Letters, finished


@muster.workload("triage")
async def triage(ctx: muster.Context, count: int) -> int:
    async def label(number: int, letter: str) -> str:
        return (await ctx.call("model", letter, key=f"letter/{number}")).text

    return len([json.loads(text) async for text in ctx.map(label, (f"letter {one}" for one in range(count)))])


async def main(count: int, folder: Path) -> None:
    letters = Letters(folder)

    async def model(request: muster.Request) -> str:
        return letters.answer(request.messages[-1].text)

    async with muster.open(folder / "store", agents={"model": model}) as m:
        await m.store.sweep()
        begun = await m.runs.page(name="monday", limit=1)
        with finished(letters):
            run = await m.resume("monday") if begun else await m.start(triage, count, name="monday", concurrency=100)
            assert await run.result() == count


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
