"""Commands of the user's own, run as agents: owned, journaled, without a shell."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from muster.app import open_muster
from muster.domain.agent import Command
from muster.domain.errors import BadExit
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
        return json.loads((await ctx.call(made, json.dumps(spec), key="score", timeout=20)).text)
    except BadExit as error:
        return error.record()["message"]


async def test_a_command_runs_in_its_folder_with_its_arguments_and_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "scoring").mkdir()
    (tmp_path / "scoring" / "score.py").write_text(SCORER)
    settings = load_settings(tmp_path / ".muster", environment={"PATH": os.environ["PATH"]}, folder=tmp_path)
    async with open_muster(settings=settings) as muster:
        run = await muster.start("test-command", {"case": 1})
        assert await run.result() == {"here": "scoring", "argument": "$HOME; `id`", "mode": "strict"}
        assert (await run.run()).spent.settled == 0
        failed = await muster.start("test-command", {"bad": True})
        assert "no such case" in await failed.result()
