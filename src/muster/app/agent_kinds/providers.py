"""The providers that are known by name, and what the settings say of each model of theirs."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

from muster.agents.base import Agent, BatchAgent
from muster.agents.prices import near_models, price_from_toml, price_of
from muster.domain.agent import Profile, Quote
from muster.domain.batch import BatchEndpoint, Tariff
from muster.domain.call import Request
from muster.domain.errors import BadConfiguration
from muster.domain.price import Price
from muster.settings.sections import ModelSection, PriceSection

if TYPE_CHECKING:
    from muster.agents.http.client import BatchHttp, Http


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A known provider: its API, where its address and key come from."""

    api: str
    base_url: str
    base_variable: str
    key_variable: str | None


ANTHROPIC = "anthropic"  # the APIs that are spoken
OPENAI = "openai"

PROVIDERS = {
    "anthropic": Provider(
        api=ANTHROPIC,
        base_url="https://api.anthropic.com",
        base_variable="ANTHROPIC_BASE_URL",
        key_variable="ANTHROPIC_API_KEY",
    ),
    "openai": Provider(
        api=OPENAI,
        base_url="https://api.openai.com/v1",
        base_variable="OPENAI_BASE_URL",
        key_variable="OPENAI_API_KEY",
    ),
    "openrouter": Provider(
        api=OPENAI,
        base_url="https://openrouter.ai/api/v1",
        base_variable="OPENROUTER_BASE_URL",
        key_variable="OPENROUTER_API_KEY",
    ),
    "ollama": Provider(
        api=OPENAI, base_url="http://127.0.0.1:11434/v1", base_variable="OLLAMA_BASE_URL", key_variable=None
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model: who it is, where it is asked, and which variable holds the key."""

    profile: Profile
    provider: str
    model: str
    base_url: str
    variable: str | None  # None when the server wants no key
    section: ModelSection | None  # when it is declared in muster.toml

    @property
    def api(self) -> str:
        """Return the name of the API."""
        return PROVIDERS[self.provider].api

    def price(self) -> Price | None:
        """Return the price of a live call, if it is known."""
        return self._price(self.section.price if self.section else None, batch=False)

    def near(self) -> tuple[str, ...]:
        """Return the names that may have been meant, if the price list does not know this one."""

        if self.section is not None and self.section.base_url is not None:
            return ()  # whose models are anybody's
        prefix = "" if self.section is not None else f"{self.provider}/"
        return tuple(f"{prefix}{model}" for model in near_models(self.provider, self.model))

    def tariff(self) -> Tariff:
        """Return the prices of a call in a batch and live, if they are known."""
        section = self.section
        # Without a price for batches that of live calls holds: rather too high than unknown.
        own = (section.batch_price or section.price) if section else None
        return Tariff(model=self.model, batch=self._price(own, batch=True), live=self.price())

    def _price(self, own: PriceSection | None, *, batch: bool) -> Price | None:

        if own is not None:
            return price_from_toml(**own.dollars())
        if self.section is not None and self.section.base_url is not None and self.provider == "openai":
            return None  # a server of the user's own: the price list of another provider says nothing about it
        if self.provider == "ollama":
            return price_from_toml(0, 0)  # it runs on the user's own machine
        return price_of(self.provider, self.model, datetime.now(UTC), batch=batch)


class ProviderApi(Protocol):
    """What a module of this folder offers that speaks an API; it is loaded when a model behind that API is asked."""

    def make_model(self, entry: ModelEntry, key: str, http: "Http", *, unpriced_ok: bool) -> Agent:
        """Make the agent of a model."""

    def encoder_of(self, entry: ModelEntry) -> Callable[[Request, bool], bytes]:
        """Return the function that encodes a request for a batch; its second argument: mark for the cache."""

    def scope_of(self, model: str) -> str:
        """Return what may stand together in one batch; the same for all: everything."""

    def make_batches(self, key: str, variable: str, base_url: str, scope: str, http: "BatchHttp") -> BatchAgent:
        """Make the agent that hands batches in."""

    def quoter(
        self, name: str, tariff: Tariff, *, unpriced_ok: bool, near: Sequence[str]
    ) -> Callable[[Request, int], Quote]:
        """Return the function that says what a call in a batch can cost."""

    def fingerprint(self, base_url: str, key: str) -> str:
        """Return what an account is known by without its key."""


APIS = {ANTHROPIC: "muster.app.agent_kinds.anthropic", OPENAI: "muster.app.agent_kinds.openai"}


def api_of(name: str) -> ProviderApi:
    """Load the module that speaks an API."""
    found: Any = importlib.import_module(APIS[name])
    return cast(ProviderApi, found)


class BatchAgents:
    """Gives the same batch agent for the same endpoint."""

    def __init__(self, http: "Callable[[str], BatchHttp]") -> None:
        self._http = http
        self._open: dict[BatchEndpoint, BatchAgent] = {}

    def open(self, entry: ModelEntry, key: str) -> BatchAgent:
        """Return the batch agent of a model."""
        agent = self._agent(
            entry.api, key, entry.variable or "", entry.base_url, api_of(entry.api).scope_of(entry.model)
        )
        return self._open.setdefault(agent.endpoint, agent)

    def reopen(self, endpoint: BatchEndpoint, key: str | None) -> BatchAgent:
        """Come back to where a batch was handed in, with the key that its variable holds now."""
        api, where = self._api(endpoint.kind), f"a batch was created at {endpoint.base_url}"
        if key is None and endpoint.variable:
            raise BadConfiguration(
                f"{where} with the key in {endpoint.variable}, which is not set",
                suggestions=(f"export {endpoint.variable}=…",),
            )
        if api.fingerprint(endpoint.base_url, key or "") != endpoint.account:
            raise BadConfiguration(
                f"{where} with a different key or account than the one in {endpoint.variable or 'use now'}",
                suggestions=(f"set {endpoint.variable} to the key that was used",) if endpoint.variable else (),
            )
        if endpoint not in self._open:
            self._open[endpoint] = self._agent(
                endpoint.kind, key or "", endpoint.variable, endpoint.base_url, endpoint.scope
            )
        return self._open[endpoint]

    def _agent(self, kind: str, key: str, variable: str, base_url: str, scope: str) -> BatchAgent:
        return self._api(kind).make_batches(key, variable, base_url, scope, self._http(base_url))

    def _api(self, kind: str) -> ProviderApi:
        if kind not in APIS:
            raise BadConfiguration(
                f"a batch was created by {kind!r}, which this version does not support",
                suggestions=("use the version that created it",),
            )
        return api_of(kind)
