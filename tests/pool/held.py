"""An agent whose calls stay open until the test lets them end: `function = "tests.pool.held:held"`."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.domain.call import Request

TOML = """
[agents.held]
kind = "python"
function = "tests.pool.held:held"
"""


@dataclass
class HeldCalls:
    """The calls of this process, by the first word of their prompts."""

    begun: list[str] = field(default_factory=list)
    open: dict[str, asyncio.Future[Mapping[str, Any]]] = field(default_factory=dict)
    ends_late: set[str] = field(default_factory=set)  # answer although they are canceled
    awaited: dict[str, asyncio.Event] = field(default_factory=dict)

    def reset(self) -> None:
        """Forget the calls of another test."""
        self.begun.clear()
        self.open.clear()
        self.ends_late.clear()
        self.awaited.clear()

    async def until_open(self, word: str) -> None:
        """Wait until a call is at work."""
        if word not in self.open:
            await self.awaited.setdefault(word, asyncio.Event()).wait()

    def answer(self, word: str, *, fails: bool = False, cost_usd: float | None = None) -> None:
        """Let a call end, unless it was just canceled."""
        call = self.open.pop(word)
        if call.done():
            return
        if fails:
            call.set_exception(RuntimeError("it could not be done"))
        else:
            call.set_result({"text": f"{word} is done", **({} if cost_usd is None else {"cost_usd": cost_usd})})

    async def call(self, request: Request) -> Mapping[str, Any]:
        """Stay until the test says how it ends."""
        word = request.prompt.split()[0]
        assert word not in self.open, f"{word} is at work twice"
        self.begun.append(word)
        end: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self.open[word] = end
        if waiting := self.awaited.pop(word, None):
            waiting.set()
        try:
            return await end
        except asyncio.CancelledError:
            if word not in self.ends_late:
                raise
            return {"text": f"{word} is done in spite of all"}
        finally:
            self.open.pop(word, None)


calls = HeldCalls()


async def held(request: Request) -> Mapping[str, Any]:
    """Answer when the test says so."""
    return await calls.call(request)
