"""Models behind APIs, made from their entries; only the API that is spoken is loaded."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from muster.agents.base import Agent
from muster.app.providers import ANTHROPIC, Entry
from muster.domain.call import Request

if TYPE_CHECKING:
    from muster.agents.http import Http
    from muster.agents.openai.wire import MaxTokens

# OpenAI's own models refuse the old name of the limit; other servers may ignore the new one and write without bound.
_OPENAI_MODELS = re.compile(r"(gpt-|chatgpt-|o\d)")


def make_model(entry: Entry, key: str, http: "Http", *, unpriced_ok: bool) -> Agent:
    """Make the agent of a model."""
    price = entry.price()
    near = entry.near() if price is None else ()
    if entry.api == ANTHROPIC:
        from muster.agents.anthropic.live import AnthropicAgent

        return AnthropicAgent(
            profile=entry.profile,
            model=entry.model,
            key=key,
            price=price,
            http=http,
            base_url=entry.base_url,
            unpriced_ok=unpriced_ok,
            near=near,
        )
    from muster.agents.openai.live import OpenAIAgent

    return OpenAIAgent(
        profile=entry.profile,
        model=entry.model,
        key=key,
        key_variable=entry.variable or "",
        price=price,
        http=http,
        base_url=entry.base_url,
        max_tokens=_max_tokens(entry.model),
        unpriced_ok=unpriced_ok,
        near=near,
    )


def encoder_of(entry: Entry) -> Callable[[Request, bool], bytes]:
    """Give the function that spells a request for a batch; its second argument says whether to mark for the cache."""
    if entry.api == ANTHROPIC:
        from muster.agents.anthropic import batch as anthropic

        return lambda request, cache: anthropic.encode(request, entry.model, cache=cache)
    from muster.agents.openai import wire as openai

    # Nothing is marked for the cache here: these servers find shared prefixes by themselves.
    return lambda request, _: openai.encode(request, entry.model, max_tokens=_max_tokens(entry.model))


def _max_tokens(model: str) -> "MaxTokens":
    from muster.agents.openai.wire import MaxTokens

    return MaxTokens.NEW if _OPENAI_MODELS.match(model) else MaxTokens.OLD
