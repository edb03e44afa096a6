"""The models of known providers, with what the settings say of each, and the modules that speak their APIs."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, cast

from muster.agents.base import Agent, BatchAgent
from muster.agents.capabilities import takes_geo
from muster.agents.prices import changes, near_models, price_from_toml, price_of
from muster.domain.agent import Profile, Quote
from muster.domain.batch import BatchEndpoint, Tariff
from muster.domain.call import Request
from muster.domain.effort import EXTRA
from muster.domain.errors import BadConfiguration
from muster.domain.price import PRICED_TIERS, US_FACTOR, InferenceGeo, Price, Pricing, ServiceTier
from muster.domain.provider import ANTHROPIC, OPENAI, OPENAI_HOST, PROVIDERS, Provider, host_of
from muster.domain.wire import WireChoice, WireName
from muster.settings.sections import ModelSection, PriceSection

if TYPE_CHECKING:
    from muster.agents.http.client import BatchHttp, Http


Period = tuple[datetime, datetime]
BATCH_TIME = timedelta(days=3)  # from a plan to the last answer: longer than a batch may take


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
    if provider == OPENAI and _is_openai_address(base_url) and not only_chat:
        return WireChoice()
    return WireChoice(name=WireName.CHAT, is_set=True)


def _is_openai_address(base_url: str) -> bool:
    host = host_of(base_url)
    return base_url.startswith("https://") and (host == OPENAI_HOST or host.endswith(f".{OPENAI_HOST}"))


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
    def known(self) -> Provider:
        """Return the provider, with the dialect that its server speaks."""
        return PROVIDERS[self.provider]

    @property
    def api(self) -> str:
        """Return the name of the API."""
        return self.known.api

    @property
    def form(self) -> WireName:
        """Return the form of OpenAI's API in which it is asked; it may be another for some requests."""
        wires = self.profile.wires
        return WireName.CHAT if wires is None else wires.name

    @property
    def counts(self) -> bool:
        """Return whether the provider counts the tokens of requests: at OpenAI, of those that go through Responses."""
        if self.api != OPENAI or not self.known.counts:
            return self.known.counts
        wires, extra = self.profile.wires, (self.profile.settings or {}).get(EXTRA)
        return self.form is WireName.RESPONSES and (not extra or (wires is not None and wires.is_set))

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
        own = self.section is not None and self.section.base_url is not None
        return self.provider == OPENAI and (not own or _is_openai_address(self.base_url))

    @property
    def geo(self) -> str | None:
        """Return where inference is asked for, empty where the account decides; None: it costs the same everywhere."""
        if not self.known.geos or not takes_geo(self.model):
            return None
        return "" if self.section is None else self.section.inference_geo or ""

    def pricing(self, between: Period | None = None) -> Pricing:
        """Return the prices of live calls, as far as they are known: now, or in a time."""
        own = self.section.tier_price if self.section else None
        known = {tier: self._tier_price(tier, between) for tier in PRICED_TIERS}
        told = {} if own is None else {self._priced_tier: self._price(own)}
        pricing = Pricing(
            standard=self._price(self.section.price if self.section else None, between=between),
            tiers={str(tier): price for tier, price in (known | told).items() if price is not None},
            asked=self.tier,
            unnamed=ServiceTier.AUTO if self.known.auto_tier else "",
        )
        return pricing if self.geo is None else pricing.with_us(self.geo)

    @property
    def _priced_tier(self) -> str:
        """Return the tier whose price is the `tier_price` of the section."""
        asked = self.section.service_tier if self.section is not None else None
        return asked if asked in PRICED_TIERS else self.known.auto_tier

    def price(self) -> Price | None:
        """Return the standard price of a live call now, if it is known, in the place that is asked for."""
        price = self._price(self.section.price if self.section else None)
        return price.times(US_FACTOR) if price is not None and self.geo == InferenceGeo.US else price

    def timed_pricing(self) -> Callable[[float, float], Pricing] | None:
        """Return the prices by the time in which a call is made; None where they do not depend on it."""
        if self.section is not None and self.section.price is not None:
            return None
        if not changes(*self._listed_name, datetime.now(UTC)):
            return None

        def pricing(begin: float, end: float) -> Pricing:
            return self.pricing((datetime.fromtimestamp(begin, UTC), datetime.fromtimestamp(end, UTC)))

        return pricing

    def near(self) -> tuple[str, ...]:
        """Return the names that may have been meant, if the price list does not know this one."""

        if self.section is not None and self.section.base_url is not None:
            return ()  # whose models are anybody's
        prefix = "" if self.section is not None else f"{self.provider}/"
        return tuple(f"{prefix}{model}" for model in near_models(self.known.price_list, self.model))

    def tariff(self) -> Tariff:
        """Return the prices of a call in a batch and live, if they are known."""
        section = self.section
        # Without a price for batches that of live calls holds: rather too high than unknown.
        own = (section.batch_price or section.price) if section else None
        now = datetime.now(UTC)
        period = (now, now + BATCH_TIME)
        batch = self._price(own, batch=True, between=period)
        batch_us = None if batch is None or self.geo is None else batch.times(US_FACTOR)
        return Tariff(model=self.model, batch=batch, live=self.price(), geo=self.geo or "", batch_us=batch_us)

    def _tier_price(self, tier: str, between: Period | None = None) -> Price | None:
        """Return the price that a price list has for a tier of service; none beside one that the section says."""
        return None if self.section and self.section.price else self._price(None, tier=tier, between=between)

    def _price(
        self,
        own: PriceSection | None,
        *,
        batch: bool = False,
        tier: str = ServiceTier.DEFAULT,
        between: Period | None = None,
    ) -> Price | None:
        """Return a price with the surcharge of the region in which the address is."""
        price = self._global_price(own, batch=batch, tier=tier, between=between)
        factor = self.known.region_factor(self.base_url)
        return price if price is None or factor == 1 else price.times(factor)

    def _global_price(
        self, own: PriceSection | None, *, batch: bool, tier: str, between: Period | None
    ) -> Price | None:
        if own is not None:
            return price_from_toml(**own.dollars())
        provider = self.known
        begin, end = between or (datetime.now(UTC), None)
        if self.section is not None and self.section.priced_as is not None:
            return self._price_like(self.section.priced_as, begin, end, batch=batch, tier=tier)
        if provider.free:
            return price_from_toml(0, 0)
        if provider.deployments or not self._is_listed:
            return None
        return price_of(*self._listed_name, begin, batch=batch, tier=tier, until=end)

    @property
    def _listed_name(self) -> tuple[str, str]:
        """Return the provider and the model whose prices hold, as the price list calls them."""
        if self.section is not None and self.section.priced_as is not None:
            provider, _, model = self.section.priced_as.partition("/")
            return (PROVIDERS[provider].price_list if provider in PROVIDERS else provider), model
        return self.known.price_list, self.model.removeprefix(self.known.publisher)

    @property
    def _is_listed(self) -> bool:
        """Return whether the price list of the provider says anything about this address."""
        if self.known.global_prices:
            return "/locations/global/" in f"{self.base_url}/"
        # A server of the user's own that speaks OpenAI's API has other prices than OpenAI.
        own = self.section is not None and self.section.base_url is not None
        return not own or self.api != OPENAI or self._is_openai

    def _price_like(self, name: str, begin: datetime, end: datetime | None, *, batch: bool, tier: str) -> Price | None:
        """Return the price of another model, as that of a deployment which has a name of its own."""
        is_known = name.partition("/")[0] in PROVIDERS
        price = is_known and price_of(*self._listed_name, begin, batch=batch, tier=tier, until=end)
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

    def make_batches(self, endpoint: BatchEndpoint, key: str, http: "BatchHttp") -> BatchAgent:
        """Make the agent that hands batches in; without a key where the client adds it."""

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

    def open(self, entry: ModelEntry, key: str, http: "BatchHttp", account: str | None = None) -> BatchAgent:
        """Return the batch agent of a model."""
        api = self._api(entry.known.batches)
        endpoint = BatchEndpoint(
            kind=entry.known.batches,
            base_url=entry.base_url,
            account=account or api.fingerprint(entry.base_url, key),
            variable=entry.variable or "",
            scope=api.scope_of(entry),
        )
        agent = api.make_batches(endpoint, key, http)
        return self._open.setdefault(agent.endpoint, agent)

    def reopen(self, endpoint: BatchEndpoint, key: str | None, http: "BatchHttp | None" = None) -> BatchAgent:
        """Come back to where a batch was handed in, with the key of its variable or the client that adds one."""
        if http is None:
            self._require_account(endpoint, key)
        if endpoint not in self._open:
            api = self._api(endpoint.kind)
            self._open[endpoint] = api.make_batches(endpoint, key or "", http or self._http(endpoint.base_url))
        return self._open[endpoint]

    def _require_account(self, endpoint: BatchEndpoint, key: str | None) -> None:
        """Raise BadConfiguration when the key is missing, or is that of another account."""
        api, where = self._api(endpoint.kind), f"a batch was created at {endpoint.base_url}"
        if key is None and endpoint.variable:
            raise BadConfiguration(
                f"{where} with the key in {endpoint.variable}, which is not set",
                suggestions=(f"export {endpoint.variable}=…",),
            )
        if api.fingerprint(endpoint.base_url, key or "") != endpoint.account:
            way = (
                f"set {endpoint.variable} to the key that was used"
                if endpoint.variable
                else "declare an agent with the key_command that was used"
            )
            raise BadConfiguration(
                f"{where} with a different key or account than the one in {endpoint.variable or 'use now'}",
                suggestions=(way,),
            )

    def _api(self, kind: str) -> ProviderApi:
        if kind not in APIS:
            raise BadConfiguration(
                f"a batch was created by {kind!r}, which this version does not support",
                suggestions=("use the version that created it",),
            )
        return api_of(kind)
