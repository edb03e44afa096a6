"""Models behind OpenAI's API, at OpenAI and elsewhere, live and in batches."""

import re
from collections.abc import Callable

from muster.agents.base import Agent, BatchAgent
from muster.agents.batch_client import quoter
from muster.agents.faults import fingerprint
from muster.agents.http.client import BatchHttp, Http
from muster.agents.openai.batch import OpenAIBatches, scope_of
from muster.agents.openai.live import OpenAIAgent
from muster.agents.openai.wire import MaxTokens, encode
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.call import Request

__all__ = ["encoder_of", "fingerprint", "make_batches", "make_model", "quoter", "scope_of"]

# OpenAI's own models refuse the old name of the limit; other servers may ignore the new one and write without bound.
_OPENAI_MODELS = re.compile(r"(gpt-|chatgpt-|o\d)")


def make_model(entry: ModelEntry, key: str, http: Http, *, unpriced_ok: bool) -> Agent:
    """Make the agent of a model."""
    price = entry.price()
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
        near=entry.near() if price is None else (),
    )


def encoder_of(entry: ModelEntry) -> Callable[[Request, bool], bytes]:
    """Return the function that encodes a request for a batch."""
    # Nothing is marked for the cache here: these servers find shared prefixes by themselves.
    return lambda request, _: encode(request, entry.model, max_tokens=_max_tokens(entry.model))


def make_batches(key: str, variable: str, base_url: str, scope: str, http: BatchHttp) -> BatchAgent:
    """Make the agent that hands batches in."""
    return OpenAIBatches(key=key, variable=variable, base_url=base_url, scope=scope, http=http)


def _max_tokens(model: str) -> MaxTokens:
    return MaxTokens.NEW if _OPENAI_MODELS.match(model) else MaxTokens.OLD
