"""The models that a provider offers, with the prices that are known of them."""

from collections.abc import Sequence
from dataclasses import replace

from muster.agents.faults import Account
from muster.agents.http.client import BatchHttp
from muster.agents.model_list import OfferedModel, offered_models
from muster.app.agent_kinds.providers import ModelEntry, api_of
from muster.domain.errors import BadConfiguration


async def offered(entry: ModelEntry, key: str, http: BatchHttp) -> Sequence[OfferedModel]:
    """Return the models that the server of a model lists; raises what it answers, BadConfiguration if it lists none."""
    if not entry.known.lists:
        raise BadConfiguration(
            f"{entry.provider} has no list of its models",
            suggestions=("name a model as the documentation of the provider does", "or list those of anthropic"),
        )
    url, headers = api_of(entry.api).list_request(entry, key)
    account = Account(place=entry.profile.name, variable=entry.variable or "", key=key)
    found = await offered_models(http, url, headers, account, entry.query)
    return [replace(one, price=replace(entry, model=one.id).price()) for one in found]
