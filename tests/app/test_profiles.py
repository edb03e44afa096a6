"""What muster.toml says of time, through the real agents."""

import os
from pathlib import Path

import pytest

from muster.app import Muster, open_muster
from muster.domain.call import Request, ask
from muster.domain.errors import CallFailed
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings

PROGRAM = """
[agents.slow]
kind = "program"
mode = "plain"
command = ["bash", "-c", "sleep {seconds}; echo answered"]
{more}
"""


@REGISTRY.workload("test-timed")
async def timed(ctx: Context, spec: dict[str, float]) -> str:
    left = spec.get("left")
    request = ask("hi")
    if left is not None:
        request = Request(messages=request.messages, volatile={"phase_budget_remaining_secs": left})
    try:
        return (await ctx.call("slow", request, key="k", timeout=spec.get("timeout"))).text
    except CallFailed as error:
        return f"{error.code}: {error.message}"


async def outcome(folder: Path, seconds: float, more: str, **spec: float) -> str:
    (folder / "muster.toml").write_text(PROGRAM.format(seconds=seconds, more=more))
    settings = load_settings(folder=folder, environment={"PATH": os.environ["PATH"]})
    async with open_muster(settings=settings) as muster:
        return str(await _result(muster, spec))


async def _result(muster: Muster, spec: dict[str, float]) -> object:
    return await (await muster.start("test-timed", spec)).result()


@pytest.mark.parametrize(
    ("more", "spec", "ends"),
    [
        ("", {}, "answered"),
        ("timeout_secs = 0.2", {}, "timed_out: agent 'slow': timed out after 0.2s"),
        ("timeout_secs = 0.2", {"timeout": 60.0}, "answered"),  # the call names its own time
        ("timeout_secs = 60", {"timeout": 0.2}, "timed_out: agent 'slow': timed out after 0.2s"),
        ("idle_secs = 0.2", {}, "stalled: agent 'slow': wrote nothing for 0.2s"),
        ("idle_secs = 0.2", {"left": 10.0}, "stalled: agent 'slow': wrote nothing for 0.2s"),
        ("", {"left": 60.0}, "answered"),
        ("timeout_secs = 0.2", {"left": 10.0}, "timed_out: agent 'slow': timed out after 0.2s"),
    ],
)
async def test_the_limits_hold_as_they_are_written(
    tmp_path: Path, more: str, spec: dict[str, float], ends: str
) -> None:
    seconds = 0.6 if ends == "answered" else 60.0
    assert (await outcome(tmp_path, seconds, more, **spec)).startswith(ends)
