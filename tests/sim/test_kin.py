"""The kin of the two providers, with the official SDKs as clients: same answers, and refusals of their own."""

import anthropic
import openai
import pytest

from muster.domain.provider import PROVIDERS
from muster.sim.kin import KIN
from muster.sim.server import serve
from tests.sdk import openai_client

HELLO = [{"role": "user", "content": "hello"}]


def test_every_provider_is_played() -> None:
    assert {*KIN, "anthropic", "openai", "bedrock-claude", "vertex-claude"} == {*PROVIDERS}


@pytest.mark.parametrize("provider", KIN)
async def test_the_sdk_of_openai_is_answered(provider: str) -> None:
    model = "google/m" if provider == "vertex" else "m"
    async with (
        serve() as server,
        openai_client(server.address(provider), key="sk-test") as client,
    ):
        said = await client.chat.completions.create(model=model, messages=HELLO)  # type: ignore[arg-type]
        assert said.choices[0].message.content == "hello"
        assert [one async for one in client.models.list()]


@pytest.mark.parametrize(
    ("provider", "field"),
    [
        ("mistral", {"seed": 1}), ("mistral", {"stream_options": {"include_usage": True}}),
        ("azure", {"max_tokens": 9}),
        ("groq", {"service_tier": "default"}), ("llamacpp", {"max_completion_tokens": 9}), ("vertex", {}),
    ],
)  # fmt: skip
async def test_what_a_provider_does_not_take_is_refused(provider: str, field: dict[str, object]) -> None:
    async with (
        serve() as server,
        openai_client(server.address(provider), key="sk-test", strict=False) as client,
    ):
        with pytest.raises(openai.APIStatusError) as refused:
            await client.chat.completions.create(model="m", messages=HELLO, extra_body=field)  # type: ignore[arg-type]
    assert refused.value.status_code in (400, 422)


async def test_the_sdk_of_anthropic_is_answered_at_bedrock_and_at_vertex() -> None:
    async with serve() as server:
        clients = (
            anthropic.AsyncAnthropicBedrockMantle(
                api_key="sk-test", aws_region="us-east-1", base_url=server.address("bedrock-claude")
            ),
            anthropic.AsyncAnthropicVertex(
                access_token="sk-test",
                project_id="sim",
                region="global",
                base_url=server.address("vertex-claude").partition("/projects/")[0],
            ),
        )
        for client in clients:
            async with client:
                said = await client.messages.create(model="claude-m", max_tokens=50, messages=HELLO)  # type: ignore[arg-type]
                assert said.model == "claude-m"
                async with client.messages.stream(model="claude-m", max_tokens=50, messages=HELLO) as stream:  # type: ignore[arg-type]
                    assert await stream.get_final_text() == "hello"
