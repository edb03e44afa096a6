"""A limit that a model is known to be unable to write is refused before anything is sent, with its maximum."""

from pathlib import Path

import pytest

from muster.agents.capabilities import max_output_of
from muster.app import open_muster
from muster.domain.errors import BadConfiguration
from muster.settings import load_settings
from muster.sim.options import Options
from muster.sim.server import serve


@pytest.mark.parametrize(
    ("provider", "model", "most"),
    [
        ("anthropic", "claude-opus-5-5", 128_000),
        ("bedrock-claude", "anthropic.claude-opus-4-1-20250805-v1:0", 32_000),
        ("openai", "gpt-5-mini", 128_000),
        ("openai", "gpt-5-pro", 272_000),
        ("anthropic", "claude-of-tomorrow", None),
        ("openrouter", "openai/gpt-5-mini", None),  # others may serve it with another limit
        ("vllm", "gpt-5-mini", None),
    ],
)
def test_the_maximum_is_that_of_the_maker(provider: str, model: str, most: int | None) -> None:
    assert max_output_of(provider, model) == most


async def test_a_limit_above_the_maximum_is_refused_and_the_maximum_itself_is_sent(tmp_path: Path) -> None:
    tmp_path.joinpath("muster.toml").write_text(
        '[agents.section]\nkind = "anthropic"\nmodel = "claude-opus-5-5"\nmax_tokens = 128001\n'
        "price = { input = 1, output = 1 }\n"
    )
    async with serve(Options(thinking=True)) as server:
        environment = {"ANTHROPIC_API_KEY": "sk-1", "ANTHROPIC_BASE_URL": server.anthropic}
        async with open_muster(settings=load_settings(folder=tmp_path, environment=environment)) as m:
            for agent, limit in (("anthropic/claude-opus-5-5", 500_000), ("section", 1)):
                with pytest.raises(BadConfiguration, match="its model writes 128,000 at most") as refused:
                    await m.ask(agent, "hello", max_tokens=limit)
                assert refused.value.exit_code == 3
                assert any("max_tokens to 128000" in way for way in refused.value.suggestions)
            assert server.audit.requests == 0
            whole = await m.ask("anthropic/claude-opus-5-5", "hello", max_tokens=128_000)
        assert (whole.text, server.audit.calls) == ("hello", 1)
