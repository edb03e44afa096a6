"""The tokens of a request, counted by the provider of a model that has a free endpoint for it."""

from muster.agents.anthropic import answer, wire
from muster.agents.anthropic.live import VERSION
from muster.agents.faults import Account
from muster.agents.http.client import Http
from muster.agents.http.request import join, lowered, with_query
from muster.agents.token_count import counted_tokens
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.call import Request


async def counted(entry: ModelEntry, key: str, http: Http, request: Request) -> int:
    """Return how many tokens go in with a request; raises what the provider answers instead."""
    return await counted_tokens(
        http,
        with_query(join(entry.base_url, "/v1/messages/count_tokens"), entry.query),
        {**entry.known.key_style.headers(key), "anthropic-version": VERSION, **lowered(entry.headers)},
        wire.encode_count(request, entry.model),
        Account(place=entry.profile.name, variable=entry.variable or "", key=key),
        answer.fault,
    )
