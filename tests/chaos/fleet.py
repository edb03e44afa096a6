"""`python -m tests.chaos.fleet ORDER`: starts the named run, or goes on with it, and prints what became of it.

Two lines of JSON: one when everything is ready, one at the end. The process ends with its parent.
"""

import asyncio
import ctypes
import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import muster
from muster.app.runs.handle import RunHandle
from muster.app.views.runs import run_view
from muster.domain.agent import Timeouts
from muster.domain.errors import MusterError, NotFound
from muster.domain.run import RunState
from muster.engine.batches.base import Patience
from muster.engine.calls.retry import RetryPolicy
from muster.settings import load_settings
from tests.chaos import work

PR_SET_PTRACER = 0x59616D61


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a driving process is to do."""

    folder: str  # of muster.toml and the store
    calls: int
    name: str = "fleet"
    workload: str = "fleet"
    agent: str = work.ANTHROPIC  # of a workload that asks only one
    topic: str = ""
    dispatch: str = "live"
    resubmit: bool = False  # gives up batches of which nobody knows whether they were created, before it begins
    concurrency: int = 10
    window: int | None = None
    size: int = 0
    max_tokens: int | None = None
    mixed: bool = True
    budget_usd: str | None = None
    timeout: float | None = None  # seconds that the run may take
    given: dict[str, Any] | None = None  # the whole spec, of a workload of our own
    waits: bool = False  # for a line on standard input, after it has said that it is ready
    timeouts: Timeouts
    policy: RetryPolicy
    patience: Patience

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of the run."""
        if self.given is not None:
            return self.given
        return {
            "calls": self.calls,
            "size": self.size,
            "max_tokens": self.max_tokens,
            "mixed": self.mixed,
            "window": self.window,
            "agent": self.agent,
            "topic": self.topic,
        }


async def drive(order: Order) -> dict[str, Any]:
    """Start the run or go on with it; give it as it is at the end."""
    go = asyncio.Event()
    _listen(asyncio.get_running_loop(), go.set)
    settings = load_settings(folder=Path(order.folder))
    async with muster.open(
        settings=settings, policy=order.policy, timeouts=order.timeouts, patience=order.patience
    ) as opened:
        for agent in (work.ANTHROPIC, work.OPENAI):
            opened._backend.directory.find(agent)  # reads the price list, which takes a while
        if order.waits:
            _let_trace()
        _say({"ready": os.getpid()})
        if order.waits:
            await go.wait()
        if order.resubmit:
            await opened.batches.reconcile(resubmit=True)
        handle = await _begin(opened, order)
        run = await handle.wait()
        return {"run": run_view(run).builtins(), "windows": _windows(opened)}


async def _begin(opened: muster.Muster, order: Order) -> RunHandle:
    try:
        run = await opened.runs.find(order.name)
    except NotFound:
        return await opened.start(
            order.workload,
            order.spec,
            name=order.name,
            budget_usd=order.budget_usd,
            timeout=order.timeout,
            concurrency=order.concurrency,
            dispatch=order.dispatch,
        )
    return opened.runs.watch(run) if run.state is RunState.COMPLETED else await opened.resume(run.id)


def _windows(opened: muster.Muster) -> dict[str, float]:
    """Look behind the engine: how many places each provider's model has come to have."""
    return {name: limiter.window.limit for name, limiter in opened._backend.engine._with.limiters._limiters.items()}


def _listen(loop: asyncio.AbstractEventLoop, on_line: Callable[[], None]) -> None:
    def listen() -> None:
        while os.read(0, 4096):
            loop.call_soon_threadsafe(on_line)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()


def _let_trace() -> None:
    """Permit any process of this user to trace this one, where the kernel permits it only to parents (Yama)."""
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Read the order and carry it out."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    try:
        _say(asyncio.run(drive(order)))
    except MusterError as error:
        _say({"error": error.record()})
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
