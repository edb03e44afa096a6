"""The workloads of the proofs for batches."""

import asyncio
from typing import Any

import muster
from muster.domain.errors import CallFailed


@muster.workload("survey")
async def survey(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Ask everything at once; gives for every key the text, or the code and the message of the error."""

    async def answer(key: str, text: str) -> dict[str, str]:
        message = muster.Message(role=muster.Role.USER, text=text)
        request = muster.Request(messages=(message,), max_tokens=spec["max_tokens"])
        try:
            reply = await ctx.call(spec["agent"], request, key=key)
        except CallFailed as error:
            return {"error": error.code, "message": error.message}
        return {"text": reply.text}

    questions: dict[str, str] = spec["questions"]
    answers = await ctx.gather(*(answer(key, text) for key, text in questions.items()))
    return dict(zip(questions, answers, strict=True))


@muster.workload("conversations")
async def conversations(ctx: muster.Context, spec: dict[str, Any]) -> dict[str, Any]:
    """Hold many conversations, each turn built from the answer before it; gives the last words."""

    async def talk(number: int, _: int) -> str:
        said = f"{spec['agent']} {number}"
        for turn in range(spec["turns"]):
            said = (await ctx.call(spec["agent"], f"{said}, turn {turn}", key=f"{number:04d}/{turn}")).text
        return said

    return {"last": [text async for text in ctx.map(talk, range(spec["count"]))]}


@muster.workload("nap")
async def nap(ctx: muster.Context, spec: dict[str, Any]) -> None:
    """Do nothing for ever, as a review does that nobody comes to."""
    await asyncio.Event().wait()
