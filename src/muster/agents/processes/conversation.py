"""A whole conversation with a process: everything in, everything out, under one deadline."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from muster.agents.processes.process import Process
from muster.domain.agent import Timeouts
from muster.domain.errors import AgentFailed, BadOutput, Stalled, TimedOut

MAX_OUTPUT = 32 * 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a process left when it was over."""

    status: int  # its exit code, or the signal that ended it as a negative number
    output: bytes
    log: str
    broken: bool  # it closed its input before it had all of it


async def communicate(
    process: Process, timeouts: Timeouts, on_output: Callable[[bytes], None] | None = None
) -> Finished:
    """Take all output of a process, while it reads its input, until its first process has exited.

    `on_output` is told what is new as it comes; what it raises ends the conversation.
    """
    deadline = asyncio.get_running_loop().time() + timeouts.call
    output = bytearray()
    while process.status is None:
        await wait_for_output(process, deadline, timeouts)
        new = process.take()
        output += new
        if len(output) > MAX_OUTPUT:
            raise too_long(process)
        if on_output is not None and new:
            on_output(new)
    # Others of its group may still hold its output open; what they would write after its exit is not its answer.
    process.drain()
    rest = process.take()
    output += rest
    if on_output is not None and rest:
        on_output(rest)
    return Finished(status=process.status, output=bytes(output), log=process.log.text, broken=process.broken)


async def wait_for_output(process: Process, deadline: float, timeouts: Timeouts, tool: str | None = None) -> None:
    """Wait for something new from a process; raises when its time is over or it was silent for too long, at a tool."""
    # A silence that may last as long as the whole call is no limit of its own: its time is over, it did not stall.
    deadline += process.lost
    until = deadline if timeouts.idle >= timeouts.call else min(deadline, process.seen + timeouts.idle)
    if await process.news(until):
        return
    if until < deadline:
        # It may have written to its log meanwhile, which wakes nobody.
        if process.seen + timeouts.idle <= until:
            raise _stalled(process, timeouts.idle, tool)
        return
    raise _timed_out(process, timeouts.call, tool)


def _timed_out(process: Process, seconds: float, tool: str | None) -> AgentFailed:
    return TimedOut(
        f"agent {process.order.agent!r}: timed out after {_shown(seconds)}s{_at(tool)}; it was stopped",
        log=process.log.text,
        tool=tool,
        suggestions=("raise timeout_secs in muster.toml",),
    )


def _stalled(process: Process, seconds: float, tool: str | None) -> AgentFailed:
    return Stalled(
        f"agent {process.order.agent!r}: wrote nothing for {_shown(seconds)}s{_at(tool)}; it was stopped",
        log=process.log.text,
        tool=tool,
        suggestions=("raise idle_secs in muster.toml",),
    )


def too_long(process: Process) -> AgentFailed:
    """Return the error for a process that wrote too much."""
    return BadOutput(
        f"agent {process.order.agent!r}: wrote more than {MAX_OUTPUT // 1_048_576} MB; it was stopped",
        log=process.log.text,
    )


def _at(tool: str | None) -> str:
    return f" at the tool {tool}" if tool else ""


def _shown(seconds: float) -> str:
    return f"{seconds:g}"
