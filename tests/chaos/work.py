"""The workloads of the crash proofs: many small questions, some to another provider, some streamed, a few twice; and
questions whose answers are judged when all of them are there."""

from typing import Any

import muster
from muster.domain.errors import CallFailed, RetriesExhausted

ANTHROPIC = "anthropic/claude-haiku-5-5"
OPENAI = "openai/gpt-5-mini"
ROUNDS = 4  # of one call: a server that is silent for as long as a call may take is asked anew


def key_of(number: int) -> str:
    """Name a call."""
    return f"item/{number:05d}"


def question(number: int, size: int = 0) -> str:
    """Say what is asked, in at least so many bytes; one in twenty-five repeats the question before it."""
    return f"item {number - (number % 25 == 24):05d} ".ljust(size, ".")


def agent_of(number: int, *, mixed: bool) -> str:
    """Say who is asked: one in five is somebody else."""
    return OPENAI if mixed and number % 5 == 0 else ANTHROPIC


@muster.workload("fleet")
async def fleet(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Ask all questions and give all answers."""

    async def ask(number: int, _: int) -> str:
        text = spec.get("topic", "") + question(number, spec["size"])
        message = muster.Message(role=muster.Role.USER, text=text)
        request = muster.Request(messages=(message,), max_tokens=spec["max_tokens"])
        for _ in range(ROUNDS - 1):
            try:
                return await call(number, request)
            except RetriesExhausted:
                continue
        return await call(number, request)

    async def call(number: int, request: muster.Request) -> str:
        agent = agent_of(number, mixed=spec["mixed"])
        return (await ctx.call(agent, request, key=key_of(number), stream=number % 3 == 0)).text

    return {"texts": [text async for text in ctx.map(ask, range(spec["calls"]), limit=spec["window"])]}


def answer_key(number: int) -> str:
    """Name the call that answers a question."""
    return f"answer/{number:05d}"


def verdict_key(number: int) -> str:
    """Name the call that judges an answer."""
    return f"verdict/{number:05d}"


def answer_to(number: int, topic: str) -> str:
    """Say what is answered: whoever is asked repeats the question."""
    return f"{topic}{question(number)}"


def verdict_on(number: int, topic: str) -> str:
    """Say what is said of the answer to a question."""
    return f"judge this: {answer_to(number, topic)}"


@muster.workload("judged")
async def judged(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Ask all questions, and when all answers are there, have each of them judged."""
    numbers, topic = range(spec["calls"]), spec["topic"]

    async def answer(number: int, _: int) -> str:
        return (await ctx.call(spec["agent"], answer_to(number, topic), key=answer_key(number))).text

    async def verdict(number: int, answered: str) -> str:
        return (await ctx.call(spec["agent"], f"judge this: {answered}", key=verdict_key(number))).text

    answers = [text async for text in ctx.map(answer, numbers)]
    return {"texts": [text async for text in ctx.map(verdict, answers)]}


@muster.workload("parent")
async def parent(ctx: muster.Context, spec: dict[str, Any]) -> Any:
    """Leave everything to a child."""
    return await ctx.child("child", "judged", spec)


@muster.workload("both")
async def both(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Ask half of the questions live and half in a batch."""

    async def ask(number: int, _: int) -> str:
        agent = agent_of(number, mixed=spec["mixed"])
        dispatch = "batch" if number % 2 else "live"
        return (await ctx.call(agent, question(number), key=key_of(number), dispatch=dispatch)).text

    return {"texts": [text async for text in ctx.map(ask, range(spec["calls"]))]}


# What each mood of the scripted CLI agent comes to: "done", or the code of the failure.
MOODS = {
    "ok": "done",
    "tools": "done",
    "edit": "done",
    "children": "done",
    "escape": "done",
    "noise": "done",
    "no-exit": "done",
    "slow": "done",
    "permission": "permission",
    "hang": "stalled",
    "stall-in-tool": "stalled",
    "ignore-term": "stalled",
    "crash": "bad_exit",
    "crash-late": "bad_exit",
    "error": "agent_failed",
    "expensive": "agent_failed",
}


def mood_of(number: int) -> str:
    """Say in which mood an agent is asked."""
    return list(MOODS)[number % len(MOODS)]


def errand(number: int) -> str:
    """Say what a CLI agent is asked to do."""
    return f"errand {number:05d} MOOD:{mood_of(number)}"


@muster.workload("crew")
async def crew(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Send a CLI agent on many errands, in all its moods, and tell what came of each."""

    async def send(number: int, _: int) -> str:
        try:
            reply = await ctx.call(spec["agent"], errand(number), key=key_of(number), stream=number % 3 == 0)
        except CallFailed as error:
            return error.code
        return "done" if reply.text else "empty"

    return {"ends": [end async for end in ctx.map(send, range(spec["calls"]))]}


@muster.workload("relay")
async def relay(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Ask, wait to be told what to ask next, and ask that: as often as there are calls."""
    heard = []
    for number in range(spec["calls"]):
        signal = await ctx.receive(f"told/{number:05d}", "told")
        assert signal is not None
        heard.append(signal.payload)
        await ctx.call(ANTHROPIC, str(signal.payload), key=key_of(number))
    return {"heard": heard}


@muster.workload("consult")
async def consult(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Ask a model for a draft and a person what they think of it, as often as there are calls."""
    said = []
    for number in range(spec["calls"]):
        drafted = await ctx.call(ANTHROPIC, question(number), key=key_of(number))
        said.append((await ctx.call("me", f"what of {drafted.text}?", key=f"me/{number:05d}")).text)
    return {"said": said}
