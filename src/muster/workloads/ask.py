"""The smallest workload: one question to one agent."""

from typing import Any

from muster.domain.call import Message, Request, Role
from muster.domain.canonical import Json
from muster.engine.context import Context
from muster.engine.workload import workload


@workload("ask")
async def ask(ctx: Context, spec: Any) -> Json:
    """Ask, and give the text with how it ended."""
    request = Request(
        messages=(Message(role=Role.USER, text=spec["prompt"]),),
        system=spec.get("system") or "",
        max_tokens=spec.get("max_tokens"),
        temperature=spec.get("temperature"),
        seed=spec.get("seed"),
        schema=spec.get("schema"),
    )
    reply = await ctx.call(spec["agent"], request, key="ask", stream=bool(spec.get("stream")))
    return {"text": reply.text, "quality": str(reply.quality_given(())), "stop": str(reply.stop), "model": reply.model}
