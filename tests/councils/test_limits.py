"""What ends a council besides conviction, what it costs, and what can be done with its run afterwards."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from muster.councils.rules.outcome import Synthesis
from muster.councils.rules.stopping import StopReason
from muster.domain.errors import BadArgument
from muster.domain.run import RunState
from tests.councils.home import council_home, declared, program, spec_of

PAID = {name: program("paid", answer=answer) for name, answer in (("ada", "42"), ("bob", "42 too"), ("cyd", "41"))}
PRICED = declared(PAID, each="budget_usd = 0.01\n")
ALWAYS: dict[str, Any] = {"rounds": 3, "min_rounds": 3}


async def test_a_round_that_cannot_be_paid_is_not_begun(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=PRICED) as home:
        run = await home.hold(spec_of(*PAID, **ALWAYS), budget_usd="0.10")
        found = await home.muster.councils.result(run.id)
        assert found.result.stop.reason is StopReason.BUDGET
        assert found.result.stop.detail == "$0.0400 are left; the last round cost $0.0600"
        assert len(found.result.rounds) == 1
        assert (found.spent, found.result.open_round) == (60_000, None)
        await home.require_retold(run, has_budget=True)
        with pytest.raises(BadArgument, match="it ended by its budget, and has none"):
            await home.require_retold(run)


async def test_the_cost_of_each_agent_is_told(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=PRICED) as home:
        run = await home.hold(spec_of(*PAID, rounds=1))
        costs = (await home.muster.councils.trace(run.id)).costs
        assert [(one.agent, one.calls, one.cost) for one in costs] == [(name, 2, 20_000) for name in PAID]


async def test_the_cost_of_calls_that_failed_is_told_with_their_agent(tmp_path: Path) -> None:
    agents = PAID | {"odd": program("fails")}
    async with council_home(tmp_path, toml=declared(agents, each="budget_usd = 0.01\n")) as home:
        run = await home.hold(spec_of(*agents, rounds=1))
        costs = {one.agent: one for one in (await home.muster.councils.trace(run.id)).costs}
        assert (costs["odd"].calls, costs["odd"].cost) == (2, 20_000)  # what it cost is uncertain
        spent = run.spent.billed + run.spent.imputed + run.spent.uncertain
        assert sum(one.cost for one in costs.values()) == spent


async def test_a_member_s_own_budget_ends_its_part_and_not_the_council(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=PRICED) as home:
        poor, *others = spec_of(*PAID).members
        spec = spec_of(*others, type(poor)(name="ada", budget_usd=0.03), **ALWAYS)
        found = (await home.outcome(spec)).result
        parts = [{one.agent for one in each.abstentions} for each in found.rounds]
        assert parts == [set(), {"ada"}, {"ada"}]


async def test_a_council_ends_in_time_with_the_best_so_far(tmp_path: Path) -> None:
    tired = {name: program("tired") for name in ("ada", "bob")}  # which answer in no other round than the first
    async with council_home(tmp_path, toml=declared(tired)) as home:
        run = await home.hold(spec_of(*tired, rounds=2, min_rounds=2, timeout_secs=20))
        found = (await home.muster.councils.result(run.id)).result
        assert found.stop.reason is StopReason.TIME
        assert "round 2, phase propose: 0 of 2 members answered" in found.stop.detail
        assert (len(found.rounds), found.open_round) == (1, 2)
        assert found.winner is not None
        await home.require_retold(run)


async def test_the_baseline_spends_no_more_than_the_council_did(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=PRICED) as home:
        found = await home.outcome(spec_of(*PAID, rounds=1, baseline="cyd"))
        assert found.baseline is not None
        assert len(found.baseline.samples) == 6
        assert found.baseline.spent == found.spent == 60_000
        assert found.baseline.best is not None
        assert found.baseline.score is not None
        assert found.baseline.score.winner == "the council"  # the samples say 41


async def test_a_synthesis_that_loses_dissent_is_repaired_once_and_then_named(tmp_path: Path) -> None:
    careless = json.dumps({"text": "It is 42.", "dissent": [{"number": 1, "passage": "Nobody objects."}]})
    (tmp_path / "mod.yaml").write_text(json.dumps({"otherwise": careless}), encoding="utf-8")
    moderator = '[agents.mod]\nkind = "scripted"\nscript = "mod.yaml"\n'
    agents = {"ada": program(), "bob": program(answer="42 too"), "cyd": program(answer="41", word="41")}
    async with council_home(tmp_path, toml=declared(agents, moderator)) as home:
        run = await home.hold(spec_of(*agents, rounds=1, synthesis="mod"))
        found = (await home.muster.councils.result(run.id)).synthesis
        assert found == Synthesis(agent="mod", text="It is 42.", kept=(), lost=("cyd",))
        assert "synthesis/repair" in {entry.key for entry in await home.calls(run)}
        asked = next(entry for entry in await home.calls(run) if entry.key == "synthesis")
        assert "it does not say 41" in str(asked.request)


async def test_a_council_is_replayed_without_asking_anybody(tmp_path: Path) -> None:
    agents = {"ada": program(), "bob": program(answer="42 too"), "odd": program("garbage")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=2, min_rounds=2))
    async with council_home(tmp_path, toml=declared(dict.fromkeys(agents, program("fails")))) as home:
        again = await home.muster.runs.drive(await home.muster.runs.replay(run.id)).wait()
        assert again.state is RunState.COMPLETED, again.error
        assert again.result["result"] == run.result["result"]


async def test_a_council_that_is_canceled_keeps_what_was_said(tmp_path: Path) -> None:
    agents = {"ada": program(), "bob": program(), "dan": program("late")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        handle = await home.muster.councils.start(spec_of(*agents))
        async for event in handle.events():
            if event.kind == "council.proposed" and event.data["agent"] in ("ada", "bob"):
                break
        await asyncio.wait_for(handle.cancel(), 60)
        run = await handle.run()
        assert run.state is RunState.CANCELED
        assert run.calls.done >= 1
        assert "canceled" in (await home.muster.councils.trace(run.id)).verdict


async def test_what_a_person_tells_all_members_has_a_maximum(tmp_path: Path) -> None:
    agents = {"ada": program(), "bob": program()}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        handle = await home.muster.councils.submit(spec_of(*agents))
        with pytest.raises(BadArgument, match="100,001 characters, and the maximum is 100,000; nothing was sent"):
            await home.muster.councils.inject(handle.id, "x" * 100_001)
        await home.muster.councils.inject(handle.id, "x" * 100_000)
