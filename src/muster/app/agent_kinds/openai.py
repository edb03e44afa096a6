"""Models behind OpenAI's API, at OpenAI and elsewhere, live and in batches."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial

from muster.agents.base import Agent, BatchAgent
from muster.agents.batch_client import quoter
from muster.agents.faults import fingerprint
from muster.agents.http.client import BatchHttp, Http
from muster.agents.http.request import join, lowered
from muster.agents.openai import batch_format
from muster.agents.openai import responses_wire as responses
from muster.agents.openai.batch import OpenAIBatches
from muster.agents.openai.live import ChoosingAgent, OpenAIAgent
from muster.agents.openai.wire import LimitSpelling, encode
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.batch import BatchEndpoint
from muster.domain.call import Request
from muster.domain.provider import MaxTokens
from muster.domain.wire import WireName

__all__ = ["encoder_of", "fingerprint", "list_request", "make_batches", "make_model", "quoter", "scope_of"]

# OpenAI's own models refuse the old name of the limit; other servers may ignore the new one and write without bound.
_OPENAI_MODELS = re.compile(r"(gpt-(?!oss)|chatgpt-|o\d)")


def make_model(entry: ModelEntry, key: str, http: Http, *, unpriced_ok: bool) -> Agent:
    """Make the agent of a model, which may be asked in two forms of the API."""
    wires = entry.profile.wires
    pricing = entry.pricing()
    make = partial(
        OpenAIAgent,
        profile=entry.profile,
        model=entry.model,
        key=key,
        key_variable=entry.variable or "",
        pricing=pricing,
        timed_pricing=entry.timed_pricing(),
        http=http,
        base_url=entry.base_url,
        headers=entry.headers,
        query=entry.query,
        spelling=_spelling(entry),
        provider=entry.known,
        unpriced_ok=unpriced_ok,
        near=entry.near() if pricing.standard is None else (),
    )
    if wires is None or wires.is_set:
        return make(form=entry.form)
    return ChoosingAgent(wires, {form: make(form=form) for form in WireName})


def encoder_of(entry: ModelEntry) -> Callable[[Request, bool], bytes]:
    """Return the function that encodes a request for a batch."""
    # Nothing is marked for the cache here: these servers find shared prefixes by themselves.
    if entry.form is WireName.RESPONSES:
        reasons = entry.profile.traits.reasons
        return lambda request, _: responses.encode(request, entry.model, reasons=reasons)
    field = _field(entry)
    return lambda request, _: encode(request, entry.model, max_tokens=field, provider=entry.known)


def scope_of(entry: ModelEntry) -> str:
    """Return what may stand together in one batch with the requests of a model."""
    return batch_format.scope_of(entry.model, entry.form)


def list_request(entry: ModelEntry, key: str) -> tuple[str, Mapping[str, str]]:
    """Return the address and the headers with which the models are listed."""
    return join(entry.base_url, "/models"), {**entry.known.key_style.headers(key), **lowered(entry.headers)}


def make_batches(endpoint: BatchEndpoint, key: str, http: BatchHttp) -> BatchAgent:
    """Make the agent that hands batches in."""
    return OpenAIBatches(
        key=key,
        variable=endpoint.variable,
        base_url=endpoint.base_url,
        scope=endpoint.scope,
        http=http,
        account=endpoint.account,
    )


def _field(entry: ModelEntry) -> MaxTokens:
    """Return the name of the limit: as it is set, as the provider has it, or as the name of the model suggests."""
    if entry.section is not None and entry.section.max_tokens_field is not None:
        return MaxTokens(entry.section.max_tokens_field)
    if entry.known.limit is not None:
        return entry.known.limit
    return MaxTokens.NEW if _OPENAI_MODELS.match(entry.model) else MaxTokens.OLD


def _spelling(entry: ModelEntry) -> LimitSpelling:
    if entry.section is not None and entry.section.max_tokens_field is not None:
        return LimitSpelling(_field(entry), is_set=True)
    return _guessed(entry.base_url, entry.model, _field(entry))


@cache
def _guessed(base_url: str, model: str, field: MaxTokens) -> LimitSpelling:
    """Return what this process knows of a server's spelling; agents that ask the same model there share it."""
    return LimitSpelling(field)
