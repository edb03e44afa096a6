"""Sort mail. Each letter is read once and paid once, however often this program is killed and started again."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import muster

FOLDER = Path(__file__).parent
MAIL = ("Where is my parcel?", "Your invoice is wrong.", "Good morning!")


@dataclass(frozen=True)
class Label:
    label: Literal["delivery", "billing", "other"]
    urgent: bool


@dataclass(frozen=True)
class TriageSpec:
    mail: tuple[str, ...]


@dataclass(frozen=True)
class Sorted:
    text: str
    label: str
    urgent: bool


@muster.workload("triage")
async def triage(ctx: muster.Context, spec: TriageSpec) -> list[Sorted]:
    async def sort(number: int, text: str) -> Sorted:
        reply = await ctx.call("desk", text, key=f"mail/{number}", schema=Label)
        return Sorted(text, reply.data.label, reply.data.urgent)

    return [letter async for letter in ctx.map(sort, spec.mail, limit=10)]


async def main() -> None:
    async with muster.open(project=FOLDER) as m:
        run = await m.start(triage, TriageSpec(MAIL), name="monday", budget_usd="0.50", resume=True)
        async for event in run.events():
            if event.kind == "call.done":
                print("sorted", event.data["key"])
        for letter in await run.result():
            print(f"{letter.label:10}", "!" if letter.urgent else " ", letter.text)


if __name__ == "__main__":
    asyncio.run(main())
