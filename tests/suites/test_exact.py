"""`muster plan --exact`: what goes in is counted by the provider, free of charge, and what is not is said."""

from pathlib import Path

import pytest

from muster.app.suites.exact import ExactCount
from muster.sim.options import Options
from muster.suites.spec import read_spec
from tests.pictures import png
from tests.suites.stage import MODEL, Stage, a_case, a_suite, stage

RESPONSES = '[agents.gpt]\nkind = "openai"\nmodel = "gpt-5-mini"\nwire = "responses"\nextra = {top_logprobs = 1}\n'


async def counted(s: Stage, *agents: str, most: int = 10, epochs: int = 1) -> dict[str, ExactCount]:
    spec = read_spec({"path": [str(s.folder / "cases.yaml")], "agents": agents, "epochs": epochs, "seed": 5})
    return {**await s.muster.suites.exact(spec, most=most)}


@pytest.mark.parametrize("agent", [MODEL, "gpt"])
async def test_the_tokens_of_first_requests_are_those_that_are_paid_later(tmp_path: Path, agent: str) -> None:
    (tmp_path / "a.png").write_bytes(png())
    shown = [{"role": "user", "content": [{"type": "text", "text": "and others"}, {"type": "image", "file": "a.png"}]}]
    seen = a_case("two", input={"messages": shown})
    async with stage(tmp_path, judge=Options(), toml=RESPONSES) as s:
        a_suite(tmp_path, a_case("one", "first words"), seen, a_case("later", skip="not yet"))
        found = (await counted(s, agent, epochs=3))[agent]
        assert (found.requests, found.counted, found.uncounted, found.why) == (2, 6, 0, "")
        assert found.cost is not None
        assert found.cost > 0
        audit = (s.agent if agent == MODEL else s.judge).audit
        assert (audit.requests, audit.cost) == (2, 0)
        spec = read_spec({"path": [str(s.folder / "cases.yaml")], "agents": [agent], "epochs": 3})
        await (await s.muster.suites.start(spec)).wait()
        audit = (s.agent if agent == MODEL else s.judge).audit
        assert audit.tokens.input + audit.tokens.cache_read + audit.tokens.cache_write == found.tokens


async def test_what_is_not_counted_is_said_with_its_reason(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, *(a_case(f"case-{number}", f"words {number}") for number in range(4)))
        found = await counted(s, MODEL, "sim/echo", "openai/gpt-5-mini", most=3)
    assert (found[MODEL].counted, found[MODEL].uncounted) == (3, 1)
    assert "as many requests were made as are allowed" in found[MODEL].why
    assert found["sim/echo"] == ExactCount(uncounted=4, why="no provider counts its tokens")
    assert "openai has no free endpoint" in found["openai/gpt-5-mini"].why


async def test_a_provider_that_refuses_is_not_asked_on(tmp_path: Path) -> None:
    async with stage(tmp_path, Options(key="another")) as s:
        a_suite(tmp_path, *(a_case(f"case-{number}", f"words {number}") for number in range(30)))
        found = (await counted(s, MODEL, most=30))[MODEL]
        assert s.agent.audit.requests == found.requests == 8
    assert (found.counted, found.uncounted, found.tokens) == (0, 30, 0)
    assert "answered 401" in found.why
