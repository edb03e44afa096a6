"""Claude Code passes the checks that every agent passes."""

from collections.abc import Awaitable, Callable

import pytest

from muster.domain.call import ask
from muster.sim.faults import Fault, FaultKind, Faults, ScriptedFault
from muster.testing.agents import CHECKS, Candidate
from tests.claude.conftest import House


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
async def test_the_agent_keeps_its_contract(house: House, check: Callable[[Candidate], Awaitable[None]]) -> None:
    def hang() -> None:
        house.script.reached.clear()
        house.server.play(Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.TIMEOUT)),)))

    request = ask("say words", system="Be brief.")
    await check(Candidate(agent=house.agent(), request=request, hang=hang, reached=house.script.reached.wait))
    assert house.alive() == []
