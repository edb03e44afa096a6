"""Agents that are async functions: each gets the request and gives a text, or a mapping with more than a text."""

import asyncio


async def reverse(request):
    """Give the question back to front."""
    await asyncio.sleep(0)  # where a real one would await a model, a database or a service
    return {"text": request.prompt[::-1], "input_tokens": len(request.prompt.split()), "output_tokens": 1}
