"""Commands of the user's own, run as agents: owned, journaled, without a shell."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from muster.app import open_muster
from muster.domain.agent import Command, Timeouts
from muster.domain.errors import BadExit, BadOutput, CallFailed
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings

SCORER = """
import json, os, sys
asked = json.load(sys.stdin)
if asked.get("bad"):
    sys.exit("no such case")
print(json.dumps({"here": os.path.basename(os.getcwd()), "argument": sys.argv[1], "mode": os.environ.get("MODE")}))
"""


@REGISTRY.workload("test-command")
async def command(ctx: Context, spec: Any) -> Any:
    made = Command(argv=(sys.executable, "score.py", "$HOME; `id`"), folder="scoring", environment={"MODE": "strict"})
    try:
        return json.loads((await ctx.call(made, json.dumps(spec), key="score", timeout=120)).text)
    except BadExit as error:
        return error.record()["message"]


@REGISTRY.workload("test-checker")
async def checker(ctx: Context, spec: Any) -> Any:
    said = f"import sys; print({spec['said']!r}, end=''); sys.exit({spec['exit']})"
    made = Command(argv=(sys.executable, "-c", said), exits=tuple(spec["exits"]) if spec["exits"] else None)
    try:
        reply = await ctx.call(made, "", key="check", timeout=120)
    except (BadExit, BadOutput) as error:
        return error.record()["message"]
    return [reply.text, None if reply.trace is None else reply.trace.exit]


async def test_a_command_may_end_with_other_codes_and_say_nothing_when_that_is_an_answer(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / ".muster", environment={"PATH": os.environ["PATH"]}, folder=tmp_path)

    async def check(said: str, code: int, exits: list[int]) -> Any:
        return await (await muster.start("test-checker", {"said": said, "exit": code, "exits": exits})).result()

    async with open_muster(settings=settings) as muster:
        assert await check("a.py:1: wrong", 1, [0, 1]) == ["a.py:1: wrong", 1]
        assert await check("", 0, [0, 1]) == ["", 0]
        assert "exited with code 2" in await check("usage", 2, [0, 1])
        assert "exited with code 1" in await check("a.py:1: wrong", 1, [])
        assert "no output" in await check("", 0, [])


@REGISTRY.workload("test-silence")
async def silence(ctx: Context, spec: Any) -> Any:
    made = Command(argv=("sleep", str(spec["seconds"])), exits=(0,))
    try:
        return (await ctx.call(made, "", key="sleep", timeout=spec["timeout"])).text
    except CallFailed as error:
        return error.code


async def test_a_command_may_be_silent_as_long_as_it_may_run(tmp_path: Path) -> None:
    settings = load_settings(tmp_path / ".muster", environment={"PATH": os.environ["PATH"]}, folder=tmp_path)
    async with open_muster(settings=settings, timeouts=Timeouts(idle=0.05)) as muster:
        patient = await muster.start("test-silence", {"seconds": 0.3, "timeout": 120})
        assert await patient.result() == ""
        hasty = await muster.start("test-silence", {"seconds": 60, "timeout": 0.2})
        assert await hasty.result() == "timed_out"


async def test_a_command_runs_in_its_folder_with_its_arguments_and_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "scoring").mkdir()
    (tmp_path / "scoring" / "score.py").write_text(SCORER)
    settings = load_settings(tmp_path / ".muster", environment={"PATH": os.environ["PATH"]}, folder=tmp_path)
    async with open_muster(settings=settings) as muster:
        run = await muster.start("test-command", {"case": 1})
        assert await run.result() == {"here": "scoring", "argument": "$HOME; `id`", "mode": "strict"}
        assert (await run.run()).spent.settled == 0
        failed = await muster.start("test-command", {"bad": True})
        assert "no such case" in str(await failed.result())
