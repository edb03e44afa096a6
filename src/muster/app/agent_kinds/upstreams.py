"""Upstreams of the gateway: a provider or a declared model, asked for foreign programs, whatever model they name."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from muster.agents.anthropic.live import VERSION, AnthropicWire
from muster.agents.faults import Account
from muster.agents.http.client import BatchHttp
from muster.agents.http.request import lowered
from muster.agents.model import DAY, Wire
from muster.agents.openai.live import OpenAIWire
from muster.agents.openai.responses_live import ResponsesWire
from muster.agents.openai.wire import LimitSpelling
from muster.agents.upstream.agent import Upstream, UpstreamLimits
from muster.agents.upstream.dialects import AnswerForm, dialect_of
from muster.agents.upstream.embeddings import EmbeddingsWire
from muster.app.agent_kinds.providers import ModelEntry
from muster.domain.agent import Timeouts
from muster.domain.errors import BadConfiguration
from muster.domain.exchange import WireRequest
from muster.domain.price import Pricing, ServiceTier
from muster.domain.provider import ANTHROPIC, MaxTokens
from muster.settings.gateway import GatewaySection
from muster.text import typed

# An answer may take any time, but not without a byte: the client knows best how long it waits.
TIMEOUTS = Timeouts(idle=900.0, call=86_400.0)
OPENAI_ROOT = "/v1"  # which the address of such a server has in it, and that of Anthropic has not


def make_upstream(
    entry: ModelEntry, model: str, key: str, http: BatchHttp, gateway: GatewaySection, *, unpriced_ok: bool
) -> Upstream:
    """Return what asks one model of an upstream; without a model, what can be asked for nothing."""
    entry = _of_model(entry, model)
    known = entry.known
    if known.raw_predict:
        raise BadConfiguration(
            f"{entry.provider} cannot be an upstream of the gateway: its models stand in the address",
            suggestions=("name another agent in upstreams of [gateway]",),
        )
    account = Account(place=entry.profile.name, variable=entry.variable or "", key=key)
    version = {"anthropic-version": VERSION} if known.api == ANTHROPIC else {}
    return Upstream(
        profile=entry.profile,
        price_list=known.price_list,
        base_url=entry.base_url if known.api == ANTHROPIC else entry.base_url.removesuffix("/"),
        path=partial(_path, known.api),
        defaults=version,
        headers={**known.key_style.headers(key), **lowered(entry.headers)},
        query=entry.query,
        http=http,
        wire=_wires(entry, account),
        pricing=_pricing(entry),
        dialect=partial(dialect_of, known.api),
        limits=UpstreamLimits(output=gateway.max_output, context=gateway.context),
        tells_usage=known.stream_options,
        unpriced_ok=unpriced_ok,
    )


def _path(api: str, request: WireRequest) -> str:
    return request.path if api == ANTHROPIC else request.path.removeprefix(OPENAI_ROOT)


def _of_model(entry: ModelEntry, model: str) -> ModelEntry:
    """Return an entry for the model that a client names; the prices of a section are those of its own model."""
    section = entry.section
    if section is not None and section.model != model:
        section = typed.replace(section, price=None, tier_price=None, batch_price=None, priced_as=None)
    place = f"{entry.provider}/{model}" if section is None else f"{entry.profile.name}/{model}"
    profile = replace(
        entry.profile,
        name=place.removesuffix("/"),
        model=model,
        limiter=f"{entry.provider}:{model}",
        wires=None,
        timeouts=TIMEOUTS,
    )
    return replace(entry, section=section, model=model, profile=profile)


def _pricing(entry: ModelEntry) -> Callable[[str], Pricing]:
    """Return the prices by the tier that a request asks for; without one, that of the section or the standard one."""
    timed, usual = entry.timed_pricing(), entry.tier if entry.tier != ServiceTier.DEFAULT else ""
    standing = entry.pricing()

    def pricing(tier: str) -> Pricing:
        now = time.time()
        found = standing if timed is None else timed(now, now + DAY)  # the dearest of a day
        asked = tier or usual
        us = None if found.us is None else replace(found.us, asked=asked)
        return replace(found, asked=asked, geo="", us=us)  # where inference takes place is for the request to say

    return pricing


def _wires(entry: ModelEntry, account: Account) -> Callable[[AnswerForm, Pricing], Wire]:
    model, known = entry.model, entry.known

    def wire(form: AnswerForm, pricing: Pricing) -> Wire:
        if entry.api == ANTHROPIC:
            return AnthropicWire(model=model, pricing=pricing, account=account, provider=known)
        if form is AnswerForm.RESPONSES:
            return ResponsesWire(model=model, pricing=pricing, account=account, provider=known)
        if form is AnswerForm.EMBEDDINGS:
            return EmbeddingsWire(model=model, pricing=pricing, account=account, provider=known)
        spelling = LimitSpelling(MaxTokens.NEW, is_set=True)
        return OpenAIWire(model=model, pricing=pricing, account=account, provider=known, spelling=spelling)

    return wire
