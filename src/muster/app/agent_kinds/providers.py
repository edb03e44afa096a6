"""The providers that are known by name, and what the settings say of each model of theirs."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from muster.agents.base import Agent, BatchAgent, Batching
from muster.agents.prices import near_models, price_from_toml, price_of
from muster.domain.agent import Profile, Quote
from muster.domain.batch import BatchEndpoint, Tariff
from muster.domain.call import Request
from muster.domain.errors import BadConfiguration
from muster.domain.price import PRICED_TIERS, Price, Pricing, ServiceTier
from muster.domain.wire import WireChoice, WireName
from muster.settings.sections import ModelSection, PriceSection

if TYPE_CHECKING:
    from muster.agents.http.client import BatchHttp, Http


ANTHROPIC = "anthropic"  # the APIs that are spoken
OPENAI = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A known provider: its API, where its address and key come from, and whose prices are its."""

    name: str
    base_url: str
    api: str = OPENAI
    has_key: bool = True
    prices: str = ""  # what the price list calls it, where that is not its name
    free: bool = False  # it runs on the user's own machine
    batches: bool = True

    @property
    def base_variable(self) -> str:
        """The variable that names another address."""
        return f"{self.name.upper()}_BASE_URL"

    @property
    def key_variable(self) -> str | None:
        """The variable that holds the key."""
        return f"{self.name.upper()}_API_KEY" if self.has_key else None


def _hosted(name: str, base_url: str, *, prices: str = "", batches: bool = False) -> Provider:
    """Describe a provider that speaks OpenAI's API at an address of its own."""
    return Provider(name=name, base_url=base_url, prices=prices, batches=batches)


def _local(name: str, port: int, *, batches: bool = False) -> Provider:
    """Describe a server on this machine that wants no key and costs nothing."""
    return Provider(name=name, base_url=f"http://127.0.0.1:{port}/v1", has_key=False, free=True, batches=batches)


_KNOWN = (
    Provider(name="anthropic", api=ANTHROPIC, base_url="https://api.anthropic.com"),
    Provider(name="openai", base_url="https://api.openai.com/v1"),
    _hosted("openrouter", "https://openrouter.ai/api/v1", batches=True),
    _hosted("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", prices="google"),
    _hosted("groq", "https://api.groq.com/openai/v1", batches=True),
    _hosted("mistral", "https://api.mistral.ai/v1"),
    _hosted("deepseek", "https://api.deepseek.com/v1"),
    _hosted("xai", "https://api.x.ai/v1", prices="x-ai"),
    _hosted("together", "https://api.together.xyz/v1"),
    _hosted("fireworks", "https://api.fireworks.ai/inference/v1"),
    _hosted("cerebras", "https://api.cerebras.ai/v1"),
    _local("ollama", 11434, batches=True),
    _local("lmstudio", 1234),
    _local("vllm", 8000),
    _local("llamacpp", 8080),
)
PROVIDERS = {provider.name: provider for provider in _KNOWN}


OPENAI_HOST = "api.openai.com"  # and those below it, which are its regions
_CHAT_ONLY = ("*-search-*", "*audio*")  # models of OpenAI that Responses does not have


def wires_of(provider: str, model: str, base_url: str, section: ModelSection | None) -> WireChoice | None:
    """Return in which form of OpenAI's API a model is asked; None where it is behind another API.

    What the address is decides, not how it was set: a gateway or a rehearsal server in OPENAI_BASE_URL is asked in the
    form that all of them have, unless a section says more.
    """
    if PROVIDERS[provider].api != OPENAI:
        return None
    if section is not None and section.wire is not None:
        return WireChoice(name=WireName(section.wire), is_set=True)
    says_chat = section is not None and section.max_tokens_field is not None
    only_chat = says_chat or any(fnmatchcase(model, glob) for glob in _CHAT_ONLY)
    if provider == OPENAI and _is_openai(base_url) and not only_chat:
        return WireChoice()
    return WireChoice(name=WireName.CHAT, is_set=True)


def _is_openai(base_url: str) -> bool:
    try:
        address = urlsplit(base_url)
    except ValueError:
        return False
    host = address.hostname or ""
    return address.scheme == "https" and (host == OPENAI_HOST or host.endswith(f".{OPENAI_HOST}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One model: who it is, where it is asked, and which variable holds the key."""

    profile: Profile
    provider: str
    model: str
    base_url: str
    variable: str | None  # None when the server wants no key
    section: ModelSection | None  # when it is declared in muster.toml
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)  # these and the next may hold secrets
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    ordered: str = ""  # the tier that a run asks for, whatever the section says

    @property
    def api(self) -> str:
        """Return the name of the API."""
        return PROVIDERS[self.provider].api

    @property
    def form(self) -> WireName:
        """Return the form of OpenAI's API in which it is asked; it may be another for some requests."""
        wires = self.profile.wires
        return WireName.CHAT if wires is None else wires.name

    def in_form(self, form: WireName) -> "ModelEntry":
        """Return the same model, asked in one form only."""
        return replace(self, profile=replace(self.profile, wires=WireChoice(name=form, is_set=True)))

    @property
    def tier(self) -> str:
        """Return the tier of service that is asked for; empty: none is named.

        OpenAI's answers name the tier that served only if one was asked for, and a project may be set to a dearer one.
        """
        if self.ordered:
            return self.ordered
        if self.section is not None and self.section.service_tier is not None:
            return self.section.service_tier
        return ServiceTier.DEFAULT if self._is_openai else ""

    @property
    def _is_openai(self) -> bool:
        return self.provider == OPENAI and (self.section is None or self.section.base_url is None)

    def pricing(self) -> Pricing:
        """Return the prices of live calls, as far as they are known."""
        own = self.section.tier_price if self.section else None
        known = {tier: self._tier_price(tier) for tier in PRICED_TIERS}
        own_tier = self.section.service_tier if self.section else None
        told = {} if own is None or own_tier is None else {str(own_tier): price_from_toml(**own.dollars())}
        return Pricing(
            standard=self.price(),
            tiers={str(tier): price for tier, price in known.items() if price is not None} | told,
            asked=self.tier,
        )

    def price(self) -> Price | None:
        """Return the standard price of a live call, if it is known."""
        return self._price(self.section.price if self.section else None)

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

    def _tier_price(self, tier: str) -> Price | None:
        """Return the price that a price list has for a tier of service; none beside one that the section says."""
        return None if self.section and self.section.price else self._price(None, tier=tier)

    def _price(self, own: PriceSection | None, *, batch: bool = False, tier: str = ServiceTier.DEFAULT) -> Price | None:

        if own is not None:
            return price_from_toml(**own.dollars())
        provider = PROVIDERS[self.provider]
        if self.section is not None and self.section.priced_as is not None:
            return self._price_like(self.section.priced_as, batch=batch, tier=tier)
        if provider.free:
            return price_from_toml(0, 0)
        if self.section is not None and self.section.base_url is not None and provider.api == OPENAI:
            return None  # a server of the user's own: the price list of another provider says nothing about it
        return price_of(provider.prices or provider.name, self.model, datetime.now(UTC), batch=batch, tier=tier)

    def _price_like(self, name: str, *, batch: bool, tier: str) -> Price | None:
        """Return the price of another model, as that of a deployment which has a name of its own."""
        provider, _, model = name.partition("/")
        known = PROVIDERS.get(provider)
        price = known and price_of(known.prices or provider, model, datetime.now(UTC), batch=batch, tier=tier)
        if not price and not batch and tier == ServiceTier.DEFAULT:
            raise BadConfiguration(
                f"agent {self.profile.name!r}: the price list does not know priced_as = {name!r}",
                suggestions=("write it as PROVIDER/MODEL, such as openai/gpt-5-mini", "or set its price"),
            )
        return price or None


class ProviderApi(Protocol):
    """What a module of this folder offers that speaks an API; it is loaded when a model behind that API is asked."""

    def make_model(self, entry: ModelEntry, key: str, http: "Http", *, unpriced_ok: bool) -> Agent:
        """Make the agent of a model."""

    def encoder_of(self, entry: ModelEntry) -> Callable[[Request, bool], bytes]:
        """Return the function that encodes a request for a batch; its second argument: mark for the cache."""

    def scope_of(self, entry: ModelEntry) -> str:
        """Return what may stand together in one batch with the requests of a model; empty: everything."""

    def make_batches(self, key: str, variable: str, base_url: str, scope: str, http: "BatchHttp") -> BatchAgent:
        """Make the agent that hands batches in."""

    def quoter(
        self, name: str, tariff: Tariff, *, unpriced_ok: bool, near: Sequence[str]
    ) -> Callable[[Request, int], Quote]:
        """Return the function that says what a call in a batch can cost."""

    def list_request(self, entry: ModelEntry, key: str) -> tuple[str, Mapping[str, str]]:
        """Return the address and the headers with which the models are listed."""

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

    def batching(self, entry: ModelEntry, key: str, *, unpriced_ok: bool) -> Batching:
        """Return how a model is asked in batches: in each form of its API, where a request may need another."""
        wires = entry.profile.wires
        own = self._batching(entry, key, unpriced_ok=unpriced_ok)
        if wires is None or wires.is_set:
            return own
        chat = self._batching(entry.in_form(WireName.CHAT), key, unpriced_ok=unpriced_ok)
        return replace(own, takes=lambda request: wires.of(request) is wires.name, instead=chat)

    def _batching(self, entry: ModelEntry, key: str, *, unpriced_ok: bool) -> Batching:
        tariff, api = entry.tariff(), api_of(entry.api)
        near = entry.near() if tariff.live is None else ()
        return Batching(
            agent=self._open_for(entry, key),
            tariff=tariff,
            encode=api.encoder_of(entry),
            quote=api.quoter(entry.profile.name, tariff, unpriced_ok=unpriced_ok, near=near),
        )

    def _open_for(self, entry: ModelEntry, key: str) -> BatchAgent:
        scope = api_of(entry.api).scope_of(entry)
        agent = self._agent(entry.api, key, entry.variable or "", entry.base_url, scope)
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
