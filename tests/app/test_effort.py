"""A model is asked with an effort: by its name, its section or a call, and never with one that it does not take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.agents.capabilities import capabilities_of
from muster.sim.protocols.models import ADAPTIVE, ANTHROPIC_MODELS, BETWEEN_TOOLS, DISABLED, ENABLED, OPENAI_MODELS
from muster.testing.sim import RehearsalProcess

SCRIPT = {"rules": [{"text": ".", "answer": "It is so."}]}
THINKING = {ADAPTIVE: "adaptive", BETWEEN_TOOLS: "between_tools", DISABLED: "off", ENABLED: "budget"}


@pytest.fixture(scope="module")
def sim() -> Iterator[RehearsalProcess]:
    with RehearsalProcess(script=SCRIPT, thinking=True, batch_ms=10) as server:
        yield server


@pytest.fixture
def agents(sim: RehearsalProcess, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    sim.reset()
    monkeypatch.setenv("REHEARSAL_KEY", "anything")
    both: dict[str, Any] = {"key_env": "REHEARSAL_KEY", "max_tokens": 8_000, "price": {"input": 1, "output": 10}}
    return {
        "claude": {"kind": "anthropic", "model": "claude-sonnet-5-5", "base_url": sim.anthropic, **both},
        "gpt": {"kind": "openai", "model": "gpt-5-mini", "base_url": sim.openai, **both},
    }


@muster.workload("asks with efforts")
async def ask_all(ctx: muster.Context, spec: list[str]) -> dict[str, int]:
    replies = {name: await ctx.call(name, "is it so?", key=f"ask/{name}") for name in spec}
    return {name: reply.usage.thinking for name, reply in replies.items()}


@pytest.mark.parametrize("dispatch", ["live", "batch"])
@pytest.mark.parametrize("agent", ["claude", "gpt"])
async def test_a_name_with_an_effort_is_asked_with_it(
    tmp_path: Path, agents: dict[str, Any], agent: str, dispatch: str
) -> None:
    brisk = muster.Patience(settle=0.05, poll_first=0.05, poll_longest=0.1)
    async with muster.open(tmp_path, agents=agents, patience=brisk) as m:
        names = [f"{agent}+low", f"{agent}+high", agent]
        thought = await (await m.start(ask_all, names, dispatch=dispatch)).result()
        assert 0 < thought[f"{agent}+low"] < thought[f"{agent}+high"]
        assert sorted(m.agents.list()) == ["claude", "gpt"]


async def test_a_section_says_how_its_model_thinks(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any]
) -> None:
    agents["claude"] |= {"effort": "low", "thinking": "between_tools"}
    agents["gpt"] |= {"effort": "minimal"}
    async with muster.open(tmp_path, agents=agents) as m:
        thought = await (await m.start(ask_all, ["gpt", "gpt+high"])).result()
        assert thought["gpt"] < thought["gpt+high"]
        run = await m.start(ask_all, ["claude"])
        await run.result()
        [call] = await m.runs.calls(run.id)
        assert call.request is not None
        assert call.request["settings"] == {"effort": "low", "thinking": "between_tools"}


@pytest.mark.parametrize(
    ("name", "more", "told"),
    [
        ("claude+minimal", {}, "it takes effort low, medium, high, xhigh, max"),
        ("gpt+max", {}, "it takes effort minimal, low, medium, high"),
        ("claude", {"thinking": "off"}, "it takes thinking adaptive, between_tools"),
        ("claude", {"thinking": 4096}, "it takes thinking adaptive, between_tools"),
        ("claude+max", {"thinking": "between_tools"}, "it takes an effort of low, medium, high"),
        ("gpt", {"thinking": "adaptive"}, "its model takes no thinking"),
    ],
)
async def test_what_a_model_does_not_take_is_refused_before_anything_is_spent(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any], name: str, more: dict[str, Any], told: str
) -> None:
    agents[name.partition("+")[0]] |= more
    async with muster.open(tmp_path, agents=agents) as m:
        with pytest.raises(muster.BadConfiguration) as refused:
            await m.ask(name, "is it so?")
        assert told in " ".join((refused.value.message, *map(str, refused.value.suggestions)))
        assert await m.runs.page() == []
    assert sim.audit().requests == 0


async def test_what_a_section_says_of_a_model_counts(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any]
) -> None:
    agents["gpt"] |= {"model": "a-model-of-ours", "capabilities": {"effort": ["low"]}}
    async with muster.open(tmp_path, agents=agents) as m:
        with pytest.raises(muster.BadConfiguration, match="cannot be asked with effort 'high'"):
            await m.ask("gpt+high", "is it so?")
        assert (await m.ask("gpt+low", "is it so?")).text == "It is so."
    assert sim.audit().requests == 1


async def test_agents_that_are_no_models_have_no_effort(tmp_path: Path) -> None:
    async def own(request: muster.Request) -> str:
        return "yes"

    async with muster.open(tmp_path, agents={"own": own, "tool": {"kind": "program", "command": ["cat"]}}) as m:
        for name in ("sim/echo+high", "tool+low", "own+low"):
            with pytest.raises(muster.BadConfiguration):
                await m.ask(name, "is it so?")


def test_the_table_says_what_the_rehearsal_server_takes() -> None:
    for model in ANTHROPIC_MODELS:
        known = capabilities_of("anthropic", model.name)
        assert known is not None
        assert (known.efforts, set(known.thinking)) == (model.efforts, {THINKING[kind] for kind in model.thinking}), (
            model.name
        )
        if model.efforts and known.thinking != ("adaptive",):
            assert {effort for effort in model.efforts if effort in known.off_at} == model.off_at & set(model.efforts)
    for model in OPENAI_MODELS:
        if not model.name.startswith("text-"):
            known = capabilities_of("openai", model.name)
            assert known is not None
            assert set(known.efforts) == set(model.efforts), model.name
