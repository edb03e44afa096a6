"""A model whose price depends on the hour: the dearest of a day is reserved, and booked is that of the attempt."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.agents.http.client import HttpClient
from muster.agents.model import DAY
from muster.agents.openai.live import OpenAIAgent
from muster.agents.prices import price_from_toml
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import ask
from muster.domain.price import Pricing
from muster.sim.server import serve
from tests.app.test_directory import directory


@pytest.mark.parametrize("streams", [False, True])
async def test_an_attempt_costs_what_it_costs_in_its_time(streams: bool) -> None:
    periods: list[float] = []

    def pricing(begin: float, end: float) -> Pricing:
        periods.append(end - begin)
        return Pricing(standard=price_from_toml(100, 100) if end - begin == DAY else price_from_toml(1, 1))

    async with serve() as server:
        agent = OpenAIAgent(
            profile=Profile(name="x", limiter="x"),
            model="m",
            key="sk-test",
            pricing=pricing(0.0, 0.0),
            timed_pricing=pricing,
            http=HttpClient(),
            base_url=server.openai,
        )
        request, timeouts = replace(ask("one two three"), max_tokens=10), Timeouts(call=50.0)
        quote = agent.quote(request)
        reply = await agent.call(request, timeouts, (lambda _: None) if streams else None)
        await agent.close()
    assert quote.most >= 1_000
    assert reply.cost == reply.usage.input + reply.usage.output
    reserved, booked = periods[1:]
    assert reserved == pytest.approx(DAY, rel=1e-6)
    assert booked == pytest.approx(50.0, rel=1e-6) if streams else 0 <= booked < 50.0


def test_the_dearest_of_the_day_is_reserved_for_a_model_of_the_price_list(tmp_path: Path) -> None:
    dearest = "price = { input = 1.32, output = 3.96 }\n"
    declared = f'[agents.mine]\nkind = "deepseek"\nmodel = "deepseek-v4-pro"\n{dearest}'
    found = directory(tmp_path, declared, DEEPSEEK_API_KEY="sk-test")
    assert found.find("deepseek/deepseek-v4-pro").quote(ask("hi")) == found.find("mine").quote(ask("hi"))
