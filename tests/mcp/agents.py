"""Agents of the tests: `function = "tests.mcp.agents:paid"`."""

from collections.abc import Mapping
from typing import Any

from muster.domain.call import Request


async def paid(request: Request) -> Mapping[str, Any]:
    """Answer for ten cents."""
    return {"text": f"you said: {request.prompt}", "cost_usd": 0.10}
