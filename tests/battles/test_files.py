"""Images and documents in battles: who sees them, who is told of them, and who is refused."""

import json
from pathlib import Path

import pytest

import muster
from muster.battles.order import BattleOrder
from muster.battles.reports.markdown import battle_markdown
from muster.battles.spec import known_spec, stored
from muster.domain.errors import BadConfiguration
from muster.domain.media import references
from muster.domain.run import RunState
from tests.battles.home import GOAL, BattleHome, battle_home
from tests.pictures import pdf, png

MODEL, OTHER = "anthropic/claude-haiku-5-5", "openai/gpt-5-mini"
IMAGE = muster.image(png(640, 480))
TERMS = muster.document(pdf(), name="terms.pdf")
PERSON = '[agents.me]\nkind = "human"\n'


async def asked(home: BattleHome, run: str, key: str) -> str:
    """Return the request of a call as it is stored."""
    return json.dumps((await home.muster.runs.call(run, key)).entry.request)


@pytest.mark.parametrize("counterpart", [OTHER, "guest"])
async def test_both_sides_see_the_files_where_they_can_and_judges_are_told(tmp_path: Path, counterpart: str) -> None:
    async with battle_home(tmp_path) as home:
        spec = home.spec(MODEL, counterpart, files=[IMAGE, TERMS], message_limit=2)
        found = await home.play(spec, budget_usd="1.00")
        assert found.run.state is RunState.COMPLETED
        assert found.turns == 2
        for key in ("turn/01/agent", "turn/02/agent"):
            assert IMAGE.digest in await asked(home, found.run.id, key)
        told = "document terms.pdf, which is not shown here"
        answered = await asked(home, found.run.id, "turn/01/counterpart")
        assert (TERMS.digest in answered, told in answered) == (counterpart == OTHER, counterpart == "guest")
        judged = await asked(home, found.run.id, "turn/01/judge")
        assert told in judged
        assert IMAGE.digest not in judged
        assert (await home.muster.runs.media(found.run.id, IMAGE.digest)).data == IMAGE.data
        assert found.spec.media == references((IMAGE, TERMS))
        assert "document terms.pdf" in battle_markdown(found)


@pytest.mark.parametrize("agent", ["clerk", "me"])
async def test_an_agent_under_test_that_cannot_see_is_refused_before_anything_is_stored(
    tmp_path: Path, agent: str
) -> None:
    async with battle_home(tmp_path, toml=PERSON) as home:
        spec = home.spec(agent, "guest", files=[IMAGE])
        with pytest.raises(BadConfiguration, match=f"'{agent}' cannot be shown images"):
            await home.muster.battles.start(spec)
        with pytest.raises(BadConfiguration, match=f"'{agent}' cannot be shown images"):
            await home.muster.battles.scales.start(home.muster.battles.scales.spec(spec, runs=1))
        assert await home.stored() == 0


async def test_the_battles_of_a_scale_test_show_the_same_files(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        spec = home.spec(MODEL, "guest", files=[IMAGE], message_limit=1)
        found = await home.measure(home.muster.battles.scales.spec(spec, runs=2, reviser=""))
        assert [one.ended_as for one in found.battles] == ["limit", "limit"]
        for one in found.battles:
            assert one.report is not None
            assert IMAGE.digest in await asked(home, one.report.run.id, "turn/01/agent")
            assert (await home.muster.runs.media(one.report.run.id, IMAGE.digest)).data == IMAGE.data


async def test_an_order_names_files_by_their_paths_and_a_spec_without_files_is_as_before(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(IMAGE.data)
    async with battle_home(tmp_path) as home:
        order = BattleOrder(agent=MODEL, counterpart="guest", goal=GOAL, judge="judge", files=(tmp_path / "a.png",))
        spec = home.muster.battles.ordered(order)
        assert (spec.media, spec.blind) == ((IMAGE,), True)
        kept = json.dumps(stored(spec))
        assert str(tmp_path) not in kept
        assert known_spec(json.loads(kept)).media == (IMAGE.reference,)
        assert not {"media", "blind"} & stored(home.spec()).keys()
        with pytest.raises(muster.BadArgument, match=r"none\.png"):
            home.spec(MODEL, files=[tmp_path / "none.png"])
