"""What a resumed run had stored and did not use is told wherever the run is shown."""

import asyncio
import json
from io import StringIO
from typing import Any
from uuid import uuid4

from rich.console import Console

import muster
from muster.app.views.runs import details_view
from muster.cli.runs.display import print_details
from muster.testing import FakeAgent, MusterTest
from muster.text.views import json_bytes


async def test_a_resumed_run_whose_keys_differ_says_so(muster_test: MusterTest) -> None:
    reached, stopped = asyncio.Event(), True

    @muster.workload("unstable keys of a test")
    async def unstable(ctx: muster.Context, spec: Any) -> str:
        text = (await ctx.call("desk", "hello", key=f"mail/{uuid4()}")).text
        reached.set()
        await (asyncio.Event().wait() if stopped else asyncio.sleep(0))
        return text

    muster_test.agents["desk"] = agent = FakeAgent("hello")
    async with muster_test.open() as m:
        run = await m.start(unstable, None)
        await reached.wait()
    stopped = False
    async with muster_test.open() as m:
        await (await m.resume(run.id)).result()
        details = await m.runs.details(run.id)
    assert len(agent.asked) == 2
    assert details.unused is not None
    view = json.loads(json_bytes(details_view(details)))
    assert view["unused"] == {"keys": list(details.unused.keys), "total": 1, "repeated": 1}
    print_details(Console(file=(shown := StringIO()), width=400), details)
    assert f"1 stored result was not used when the run was resumed: {details.unused.keys[0]!r}" in shown.getvalue()
