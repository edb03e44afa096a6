"""A server that answers and reports that it used nothing: the money is uncertain, and budgets fill."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.domain.call import ask
from muster.domain.run import RunState
from muster.engine.batches.base import Patience
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings
from muster.sim.faults import Fault, FaultKind, Faults, Op, ScriptedFault
from muster.sim.options import Options
from muster.sim.server import serve

AGENTS = ["anthropic/claude-haiku-5-5", "openai/gpt-5-mini"]
HASTY = Patience(settle=0.02, poll_first=0.02, poll_longest=0.1)
LIES = Faults(
    script=tuple(
        ScriptedFault(fault=Fault(kind=FaultKind.ZERO_USAGE, op=op), times=None) for op in (Op.LIVE, Op.MEMBER)
    )
)


@REGISTRY.workload("test-lied-to")
async def one_after_the_other(ctx: Context, spec: Any) -> Any:
    for number in range(20):
        request = replace(ask(f"question {number}"), max_tokens=2048)
        await ctx.call(spec["agent"], request, key=f"q/{number}", stream=spec["stream"])


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(("dispatch", "stream"), [("live", False), ("live", True), ("batch", False)])
async def test_a_server_that_reports_no_tokens_fills_the_budget(
    tmp_path: Path, agent: str, dispatch: str, stream: bool
) -> None:
    async with serve(Options(faults=LIES)) as server:
        environment = {"ANTHROPIC_API_KEY": "sk-test-1", "ANTHROPIC_BASE_URL": server.anthropic}
        environment |= {"OPENAI_API_KEY": "sk-test-2", "OPENAI_BASE_URL": server.openai}
        settings = load_settings(folder=tmp_path, environment=environment)
        async with open_muster(settings=settings, patience=HASTY) as muster:
            spec = {"agent": agent, "stream": stream}
            run = await (await muster.start("test-lied-to", spec, budget_usd="0.006", dispatch=dispatch)).wait()
        paid = server.audit.calls
    assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
    assert 0 < paid < 20
    assert run.spent.billed == 0
    assert run.spent.uncertain > 2_500
    assert server.audit.calls == run.calls.done
