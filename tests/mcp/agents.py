"""Agents of the tests: `function = "tests.mcp.agents:paid"`."""

import itertools
import re
from collections.abc import Mapping
from typing import Any

from muster.domain.call import Request


async def paid(request: Request) -> Mapping[str, Any]:
    """Answer for ten cents."""
    return {"text": f"you said: {request.prompt}", "cost_usd": 0.10}


async def wordy(request: Request) -> Mapping[str, Any]:
    """Answer with as many characters as the last number in the prompt says, in which no two places look alike."""
    number = int(re.findall(r"\d+", request.prompt)[-1])
    return {"text": long_text(request.prompt[:50], number), "cost_usd": 0.0}


def long_text(name: str, number: int) -> str:
    """Return a text of so many characters, some of which JSON escapes."""
    words = (f'{name} "{place}"\n\x1b[1m\t… 🐝' for place in itertools.count())
    text = ""
    for word in words:
        text += word
        if len(text) >= number:
            return text[:number]
    return text
