"""Runs a rehearsal server as a process: says where it listens, and ends when it is told to."""

import asyncio
import gc
import json
import os
import signal
import sys
import threading

from muster.sim.options import Options
from muster.sim.server import Server, serve


async def run(options: Options, *, until_eof: bool = False) -> None:
    """Serve until SIGTERM or SIGINT; with `until_eof`, also until standard input ends."""
    gc.set_threshold(50_000)  # requests leave no cycles behind; looking for them costs a sixth of the speed
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_eof:
        threading.Thread(target=_watch_input, args=(loop, stop), daemon=True).start()
    async with serve(options) as server:
        sys.stdout.write(json.dumps(addresses(server)) + "\n")
        sys.stdout.flush()
        await stop.wait()


def addresses(server: Server) -> dict[str, str]:
    """Give the addresses that a client needs."""
    return {"anthropic": server.anthropic, "openai": server.openai, "audit": server.audit_url}


def _watch_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # Reads the descriptor itself: sys.stdin would hold a lock that the end of the process waits for.
    try:
        while os.read(0, 4096):
            pass
    except OSError:  # closed counts as ended
        pass
    if not loop.is_closed():
        loop.call_soon_threadsafe(stop.set)
