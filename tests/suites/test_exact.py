"""`muster plan --exact`: what goes in is counted by the provider, free of charge, and what is not is said."""

from pathlib import Path

from muster.app.suites.exact import ExactCount
from muster.sim.options import Options
from muster.suites.spec import read_spec
from tests.suites.stage import MODEL, Stage, a_case, a_suite, stage


async def counted(s: Stage, *agents: str, most: int = 10, epochs: int = 1) -> dict[str, ExactCount]:
    spec = read_spec({"path": [str(s.folder / "cases.yaml")], "agents": agents, "epochs": epochs, "seed": 5})
    return {**await s.muster.suites.exact(spec, most=most)}


async def test_the_tokens_of_first_requests_are_those_that_are_paid_later(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one", "first words"), a_case("two", "and others"), a_case("later", skip="not yet"))
        found = (await counted(s, MODEL, epochs=3))[MODEL]
        assert (found.requests, found.counted, found.uncounted, found.why) == (2, 6, 0, "")
        assert found.cost is not None
        assert found.cost > 0
        assert (s.agent.audit.requests, s.agent.audit.cost) == (2, 0)
        spec = read_spec({"path": [str(s.folder / "cases.yaml")], "agents": [MODEL], "epochs": 3})
        await (await s.muster.suites.start(spec)).wait()
        assert s.agent.audit.tokens.input == found.tokens


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
