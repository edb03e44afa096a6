"""A key that is refused: the advice names the variable that holds it."""

from pathlib import Path

import pytest

from muster.app import open_muster
from muster.domain.errors import RunFailed
from muster.settings import load_settings
from muster.sim.options import Options
from muster.sim.server import serve

MODELS = {"anthropic": "claude-haiku-5-5", "openai": "gpt-5-mini"}
PRICE = "price = { input = 1, output = 2 }\n"


@pytest.mark.parametrize("kind", MODELS)
async def test_the_variable_of_the_section_is_named(tmp_path: Path, kind: str) -> None:
    async with serve(Options(key="sk-of-the-server")) as server:
        address = server.anthropic if kind == "anthropic" else server.openai
        section = f'[agents.a]\nkind = "{kind}"\nmodel = "{MODELS[kind]}"\nkey_env = "MY_KEY"\n{PRICE}'
        (tmp_path / "muster.toml").write_text(f'{section}base_url = "{address}"\n', encoding="utf-8")
        settings = load_settings(folder=tmp_path, environment={"MY_KEY": "sk-of-somebody-else"})
        async with open_muster(settings=settings) as muster:
            with pytest.raises(RunFailed) as refused:
                await muster.ask("a", "hello")
    assert "MY_KEY" in str(refused.value.record())
    assert "API_KEY" not in str(refused.value.record())
    assert "sk-of" not in str(refused.value.record())
