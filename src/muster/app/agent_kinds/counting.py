"""The tokens of a request, counted by the provider of a model that has a free endpoint for it."""

from muster.agents.anthropic import answer as anthropic
from muster.agents.anthropic import wire
from muster.agents.anthropic.live import VERSION
from muster.agents.faults import Account
from muster.agents.http.client import Http
from muster.agents.http.request import join, lowered, with_query
from muster.agents.model import with_media
from muster.agents.openai import answer as openai
from muster.agents.openai import responses_wire
from muster.agents.token_count import counted_tokens
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.call import Request
from muster.domain.provider import OPENAI


async def counted(entry: ModelEntry, key: str, http: Http, request: Request) -> int:
    """Return how many tokens go in with a request; raises what the provider answers instead."""
    headers = {**entry.known.key_style.headers(key), **lowered(entry.headers)}
    account = Account(place=entry.profile.name, variable=entry.variable or "", key=key)
    if entry.api == OPENAI:
        path, body, fault = "/responses/input_tokens", responses_wire.encode_count(request, entry.model), openai.fault
    else:
        path, body, fault = "/v1/messages/count_tokens", wire.encode_count(request, entry.model), anthropic.fault
        headers = {"anthropic-version": VERSION, **headers}
    url = with_query(join(entry.base_url, path), entry.query)
    return await counted_tokens(http, url, headers, with_media(body, request), account, fault)
