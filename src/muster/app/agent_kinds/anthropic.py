"""Models behind Anthropic's API, live and in batches."""

from collections.abc import Callable, Mapping

from muster.agents.anthropic.batch import AnthropicBatches, encode
from muster.agents.anthropic.live import VERSION, AnthropicAgent
from muster.agents.base import Agent, BatchAgent
from muster.agents.batch_client import quoter
from muster.agents.faults import fingerprint
from muster.agents.http.client import BatchHttp, Http
from muster.agents.http.request import join, lowered
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.batch import BatchEndpoint
from muster.domain.call import Request

__all__ = ["encoder_of", "fingerprint", "list_request", "make_batches", "make_model", "quoter", "scope_of"]


def make_model(entry: ModelEntry, key: str, http: Http, *, unpriced_ok: bool) -> Agent:
    """Make the agent of a model."""
    pricing = entry.pricing()
    return AnthropicAgent(
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
        unpriced_ok=unpriced_ok,
        near=entry.near() if pricing.standard is None else (),
        provider=entry.known,
    )


def encoder_of(entry: ModelEntry) -> Callable[[Request, bool], bytes]:
    """Return the function that encodes a request for a batch; its second argument: mark for the cache."""
    geo = entry.geo or ""
    return lambda request, cache: encode(request, entry.model, cache=cache, geo=geo)


def list_request(entry: ModelEntry, key: str) -> tuple[str, Mapping[str, str]]:
    """Return the address and the headers with which the models are listed."""
    headers = {**entry.known.key_style.headers(key), "anthropic-version": VERSION, **lowered(entry.headers)}
    return join(entry.base_url, "/v1/models"), headers


def scope_of(entry: ModelEntry) -> str:
    """Return what may stand together in one batch: everything."""
    return ""


def make_batches(endpoint: BatchEndpoint, key: str, http: BatchHttp) -> BatchAgent:
    """Make the agent that hands batches in."""
    return AnthropicBatches(
        key=key, variable=endpoint.variable, base_url=endpoint.base_url, http=http, account=endpoint.account
    )
