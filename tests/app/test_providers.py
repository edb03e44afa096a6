"""Providers that speak OpenAI's API are known by name; a section says what else its server wants."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app.agent_kinds.providers import PROVIDERS
from muster.domain.call import ask
from muster.domain.errors import BadConfiguration
from tests.app.test_directory import directory

MODELS = {
    "gemini": "gemini-2.5-flash", "groq": "llama-3.1-8b-instant", "mistral": "mistral-small-latest",
    "deepseek": "deepseek-chat", "xai": "grok-4", "openrouter": "anthropic/claude-haiku-5.5",
}  # fmt: skip
LOCAL = ("ollama", "lmstudio", "vllm", "llamacpp")
SECRET = "a-key-of-a-gateway"
ANSWER = {
    "id": "x",
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1},
}


@pytest.mark.parametrize("provider", MODELS)
def test_a_provider_has_an_address_a_key_and_prices(tmp_path: Path, provider: str) -> None:
    name = f"{provider}/{MODELS[provider]}"
    with pytest.raises(BadConfiguration, match=f"{provider.upper()}_API_KEY is not set"):
        directory(tmp_path).find(name).quote(ask("hi"))
    keys: dict[str, Any] = {f"{provider.upper()}_API_KEY": "sk-test"}
    assert directory(tmp_path, **keys).find(name).quote(ask("hi")).most > 0
    declared = f'[agents.mine]\nkind = "{provider}"\nmodel = "{MODELS[provider]}"\n'
    assert directory(tmp_path, declared, **keys).find("mine").quote(ask("hi")).most > 0


@pytest.mark.parametrize("provider", LOCAL)
def test_a_server_of_this_machine_costs_nothing_and_wants_no_key(tmp_path: Path, provider: str) -> None:
    assert directory(tmp_path).find(f"{provider}/qwen3").quote(ask("hi")).most == 0


def test_batches_that_nobody_here_speaks_are_refused_and_live_calls_are_not(tmp_path: Path) -> None:
    for name, provider in PROVIDERS.items():
        keys: dict[str, Any] = {f"{name.upper()}_API_KEY": "sk-test"}
        found = directory(tmp_path, **keys)
        if provider.batches:
            assert found.batching(f"{name}/m") is not None
            continue
        assert found.find(f"{name}/m").profile.provider == name
        with pytest.raises(BadConfiguration, match=f"nothing here speaks those of {name}"):
            found.batching(f"{name}/m")


def test_a_deployment_costs_what_the_model_costs_that_it_is_priced_as(tmp_path: Path) -> None:
    text = '[agents.mine]\nkind = "openai"\nmodel = "our-gpt"\nbase_url = "https://x.example/openai/v1"\n'
    keys: dict[str, Any] = {"OPENAI_API_KEY": "sk-test"}
    priced = directory(tmp_path, text + 'priced_as = "openai/gpt-5-mini"\n').find("mine").quote(ask("hi")).most
    known = directory(tmp_path, **keys).find("openai/gpt-5-mini").quote(ask("hi")).most
    assert priced == pytest.approx(known, rel=0.01)
    with pytest.raises(BadConfiguration, match="does not know priced_as"):
        directory(tmp_path, text + 'priced_as = "openai/gpt-nonsense"\n').find("mine")


@pytest.mark.parametrize(("key", "told"), [("n", "more than is reserved"), ("max_tokens", "use max_tokens")])
def test_what_muster_says_itself_cannot_be_set_beside_it(tmp_path: Path, key: str, told: str) -> None:
    with pytest.raises(BadConfiguration, match=f"'{key}' cannot be set there: .*{told}"):
        directory(tmp_path, f'[agents.mine]\nkind = "openai"\nmodel = "m"\nextra = {{ {key} = 2 }}\n')


@asynccontextmanager
async def recorded(seen: list[tuple[str, dict[str, str], Any]]) -> AsyncIterator[str]:
    """Answer every request, and keep its path, its headers and its body."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        seen.append((head[0].split()[1], headers, json.loads(await reader.readexactly(int(headers["content-length"])))))
        body = json.dumps({**ANSWER, "model": f"m {SECRET}"}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/openai/v1"


async def test_headers_query_and_extra_arrive_and_only_the_last_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", SECRET)
    seen: list[tuple[str, dict[str, str], Any]] = []
    async with recorded(seen) as address:
        agent = {
            "kind": "vllm", "model": "m", "base_url": address, "headers": {"Api-Key": "$GATEWAY_KEY", "X-Team": "blue"},
            "query": {"tenant": "$GATEWAY_KEY"}, "extra": {"top_k": 5},
        }  # fmt: skip
        async with muster.open(tmp_path, agents={"mine": agent}) as m:
            assert (await m.ask("mine", "is it so?")).text == "yes"
            [run] = await m.runs.page()
            [call] = await m.runs.calls(run.id)
            assert call.request is not None
            assert call.request["settings"] == {"extra": {"top_k": 5}}
            with pytest.raises(muster.BadConfiguration, match="cannot be asked in batches"):
                await m.ask("mine", "is it so?", dispatch="batch")
    [(path, headers, body)] = seen
    assert path == f"/openai/v1/chat/completions?tenant={SECRET}"
    assert (headers["api-key"], headers["x-team"], body["top_k"]) == (SECRET, "blue", 5)
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_variable_of_a_header_that_is_not_set_is_told(tmp_path: Path) -> None:
    text = '[agents.mine]\nkind = "vllm"\nmodel = "m"\nheaders = { api-key = "$GATEWAY_KEY" }\n'
    with pytest.raises(BadConfiguration, match="needs GATEWAY_KEY, which is not set"):
        directory(tmp_path, text).find("mine").quote(ask("hi"))
