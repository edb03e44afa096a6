"""What the tests of programs share: a real program of a few lines, asked once."""

import asyncio
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any

from muster.agents.processes import system
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.program.agent import Mode, ProgramAgent
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Message, Request, Role
from muster.domain.canonical import Json
from muster.domain.money import NOTHING, Microdollars
from muster.testing.agents import RememberedProcesses

PATIENT = Timeouts(call=120.0, idle=120.0)
PROFILE = Profile(name="critic", limiter="program:critic")
PATH = {"PATH": os.environ["PATH"]}
PROPOSAL = {"thought_process": "reasoning", "content": "solution"}


def program(
    processes: ProcessRegistry,
    *command: str,
    mode: Mode = "exec",
    most: Microdollars = NOTHING,
    env: Mapping[str, str] | None = None,
    exits: tuple[int, ...] | None = None,
) -> ProgramAgent:
    """Make an agent of a command."""
    order = ProcessCommand(agent=PROFILE.name, command=command, environment=PATH | dict(env or {}))
    return ProgramAgent(profile=PROFILE, order=order, mode=mode, processes=processes, most=most, exits=exits)


def bash(processes: ProcessRegistry, script: str, **rest: Any) -> ProgramAgent:
    """Make an agent of some lines of bash."""
    return program(processes, "bash", "-c", script, **rest)


def python(processes: ProcessRegistry, script: str, **rest: Any) -> ProgramAgent:
    """Make an agent of some lines of Python."""
    return program(processes, sys.executable, "-c", script, **rest)


def says(output: str) -> str:
    """Give the bash that reads its input and then writes this, exactly."""
    return f"cat >/dev/null; printf %s {shlex.quote(output)}"


def context(phase: str = "propose", *candidates: str) -> dict[str, Any]:
    """Give a context of the exec protocol."""
    proposals = [{"id": name, "proposal": {"thought_process": "t", "content": "c"}} for name in candidates]
    return {"task_description": "Solve the problem", "round_number": 1, "phase": phase, "candidates": proposals}


def request_for(asked: Mapping[str, Json], **volatile: Json) -> Request:
    """Ask with a context."""
    messages = (Message(role=Role.USER, text="Solve the problem"),)
    return Request(messages=messages, context=asked, volatile=volatile)


PROPOSE = request_for(context())
EVALUATE = request_for(context("evaluate", "A", "B"))


def spelled(value: Any) -> str:
    """Write JSON."""
    return json.dumps(value)


def alive(remembered: RememberedProcesses) -> list[int]:
    """Find every process that carries a token of this house and still runs."""
    house = remembered.seen[0].token
    return [pid for pid, _ in system.with_token(house + ".") if system.started(pid) is not None]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    while not condition():  # noqa: ASYNC110 - a process cannot set an event of ours
        await asyncio.sleep(0.005)
