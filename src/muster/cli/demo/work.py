"""The work of the demo: twenty letters to a help desk, each labelled three times, the majority wins."""

from collections import Counter
from typing import Any

import muster
from muster.domain.canonical import JsonObject

AGENT = "anthropic/claude-sonnet-5-5"  # a name with a price; who answers is the rehearsal server
MAX_TOKENS = 64
SAMPLES = 3
NAME = "demo"
BUDGET = "0.50"
CONCURRENCY = 6

LETTERS = (
    "I was charged twice for my order in March.",
    "The app closes itself whenever I open the settings.",
    "Where is my parcel? It should have come on Monday.",
    "Please send the invoice to my new address.",
    "I cannot log in since the last update.",
    "The box arrived empty and open at one side.",
    "How do I get my money back for the broken lamp?",
    "The search shows nothing, whatever I type.",
    "My delivery went to the neighbour of my neighbour.",
    "Why does the receipt show another amount than my card?",
    "A crash deleted the list that I wrote all morning.",
    "The courier says that my street does not exist.",
    "I would like a refund of the second ticket.",
    "The error says 500 and nothing else.",
    "Can the parcel go to my office instead?",
    "Your voucher was not taken off the bill.",
    "The screen stays white after I log in.",
    "Thank you, everything was lovely!",
    "The tracking number of my shipment is not known to anybody.",
    "I paid by card and was asked to pay again.",
)

SCRIPT = {
    "rules": [
        {"text": "(?i)charged|invoice|money|refund|amount|voucher|bill|paid", "answer": "payment"},
        {"text": "(?i)parcel|box|delivery|courier|shipment", "answer": "delivery"},
        {"text": "(?i)app|log in|search|crash|error|screen", "answer": "software"},
    ],
    "otherwise": "praise",
}


def prompt(letter: str) -> str:
    """Write what the agent is asked."""
    return f"Label this letter with one word.\n\n{letter}"


def spec() -> JsonObject:
    """Return the whole piece of work as data."""
    return {"agent": AGENT, "letters": list(LETTERS), "samples": SAMPLES}


@muster.workload("demo")
async def demo(ctx: muster.Context, spec: Any) -> Any:
    """Label every letter several times and count the labels that won."""
    asked = [(number, sample) for number in range(len(spec["letters"])) for sample in range(spec["samples"])]

    async def label(_: int, which: tuple[int, int]) -> tuple[int, str]:
        number, sample = which
        message = muster.Message(role=muster.Role.USER, text=prompt(spec["letters"][number]))
        request = muster.Request(messages=(message,), max_tokens=MAX_TOKENS)
        reply = await ctx.call(spec["agent"], request, key=f"letter/{number + 1:02}/{sample + 1}")
        return number, reply.text

    votes: dict[int, Counter[str]] = {}
    async for number, text in ctx.map(label, asked):
        votes.setdefault(number, Counter())[text] += 1
    return {"labels": dict(Counter(vote.most_common(1)[0][0] for vote in votes.values()))}
