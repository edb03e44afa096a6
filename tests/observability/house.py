"""Work to be watched: a suite as the child of a run that also makes a live call, before a rehearsal server."""

import json
from pathlib import Path
from typing import Any

from muster import Context, workload
from muster.domain.call import ask
from muster.domain.run import Run
from tests.engine.batches.house import ANTHROPIC, House, batch
from tests.suites.stage import a_case, a_suite

LIMITED = {"fault": "429", "nth": 1, "retry_after": 0.01}


@workload("greeting_and_suite")
async def greeting_and_suite(ctx: Context, spec: Any) -> str:
    """Ask one question live, then run a suite as a child."""
    greeting = await ctx.call(ANTHROPIC, ask(spec["prompt"]), key="greeting", dispatch="live")
    await ctx.child("suite", "suite", {"path": [spec["path"]], "agents": [ANTHROPIC]})
    return greeting.text


def two_cases(folder: Path) -> Path:
    """Write a suite of two cases."""
    return a_suite(folder, a_case("one", "good morning"), a_case("two", "good night"))


async def watched_run(house: House, prompt: str = "hello", **watched: Any) -> Run:
    """Run the work with its suite in a batch; the first request meets a rate limit."""
    house.play(LIMITED)
    spec = {"path": str(two_cases(house.folder)), "prompt": prompt}
    async with house.open(**watched) as muster:
        handle = await muster.start("greeting_and_suite", spec, dispatch=batch())
        run = await handle.wait()
        assert run.error is None, run.error
        return run


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Read log lines, each of which must be JSON."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
