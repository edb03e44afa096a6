"""A program keeps the contract of every agent, in all modes."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from muster.agents.processes.registry import ProcessRegistry
from muster.domain.call import ask
from muster.domain.money import Microdollars
from muster.testing.agents import CHECKS, Candidate
from tests.agents.program.stage import PATIENT, PROPOSAL, bash, spelled, until

ANSWERS = {"exec": spelled(PROPOSAL), "plain": "one\ntwo  🎉", "chat": spelled({"text": "one two", "cost_usd": 0.001})}


@pytest.fixture(params=list(ANSWERS))
def candidate(request: pytest.FixtureRequest, processes: ProcessRegistry, tmp_path: Path) -> Candidate:
    hang, reached = tmp_path / "hang", tmp_path / "reached"
    script = f"cat >/dev/null; if rm {hang} 2>/dev/null; then touch {reached}; sleep 999; fi; printf %s '{{}}'"
    agent = bash(processes, script.replace("{}", ANSWERS[request.param]), mode=request.param, most=Microdollars(10_000))
    return Candidate(
        agent=agent,
        request=ask("Say these words, please", system="Be brief."),
        hang=hang.touch,
        reached=lambda: until(reached.exists),
        timeouts=PATIENT,
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
async def test_a_program_keeps_its_contract(
    candidate: Candidate, check: Callable[[Candidate], Awaitable[None]]
) -> None:
    await check(candidate)
