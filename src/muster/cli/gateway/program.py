"""A program that is run behind a gateway of its own: started with what its clients need, waited for, ended."""

import asyncio
import secrets

from muster.api.gateway_listener import gateway_listener
from muster.app import Muster
from muster.cli.gateway.variables import environment_of
from muster.domain.errors import BadArgument


async def run_behind_gateway(muster: Muster, command: list[str], name: str) -> int:
    """Run a program whose clients of model APIs find the gateway of an open Muster, and return its exit code."""
    async with gateway_listener(muster, secrets.token_urlsafe(24)) as address:
        return await _run(command, environment_of(muster.settings.variables, address, name))


async def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run a program to its end with the streams of this one."""
    try:
        process = await asyncio.create_subprocess_exec(*command, env=environment)
    except OSError as error:
        raise BadArgument(f"{command[0]!r} cannot be started: {error.strerror}") from None
    try:
        code = await process.wait()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    return code if code >= 0 else 128 - code  # as a shell tells a signal
