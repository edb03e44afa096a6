"""An agent with three tools. Each call of the model and each use of a tool is done once, also through a crash."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

import muster

FOLDER = Path(__file__).parent
QUESTION = "Answer this customer: Where is my parcel 4711?"


@dataclass(frozen=True)
class Order:
    number: str
    days_late: int


ORDERS = {"4711": Order("4711", days_late=3)}


def find_order(number: str) -> Order:
    """Look up an order by its number."""
    if number not in ORDERS:
        raise muster.ToolError(f"there is no order {number}")  # the agent is told, and may try another
    return ORDERS[number]


async def refund(number: str, percent: int) -> str:
    """Refund a part of the postage of an order, at most 50 percent."""
    if not 0 < percent <= 50:
        raise muster.ToolError("percent must be between 1 and 50")
    return f"refunded {percent} % of {number}"


def remember(note: str) -> str:
    """Keep a note for colleagues."""
    return f"noted: {note}"


@muster.workload("answer a customer")
async def answer(ctx: muster.Context, question: str) -> str:
    reply = await ctx.tools("desk", question, tools=[find_order, refund, remember], key="answer", max_turns=8)
    return reply.text


async def main() -> None:
    async with muster.open(project=FOLDER) as m:
        # Started again, it goes on with the run of this name, and pays for nothing twice.
        run = await m.start(answer, QUESTION, name="parcel-4711", budget_usd="0.50", resume=True)
        print(await run.result())
        for call in await m.runs.calls(run.id):
            used = call.reply.tool_calls if call.reply else ()
            print(call.key, *(f"{tool.name}({dict(tool.arguments)})" for tool in used))


if __name__ == "__main__":
    asyncio.run(main())
