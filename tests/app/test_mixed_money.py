"""Requests that mix thinking, the prompt cache, tiers of service and images: what is booked is what was paid."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.app import open_muster
from muster.app.base.costs import listed_price
from muster.domain.call import Request, message
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.effort import EFFORT
from muster.domain.money import Lane
from muster.domain.patience import Patience
from muster.domain.price import Rates, ServiceTier
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import Settings, load_settings
from muster.sim.options import Options
from muster.sim.protocols.ask import GEOS, PROJECT_TIERS
from muster.sim.server import Server, serve
from muster.text.media_files import media_in
from tests.pictures import pdf, png

TIERS = ("auto", "default", "flex", "priority")
FORMS = ("chat", "responses")
SHARED = "words that many requests begin with " * 200
CLAUDE = ("unset", "auto", "default")  # of which the first two may be served by the tier priority
NAMES = (*(f"claude-{tier}" for tier in CLAUDE), *(f"{form}-{tier}" for form in FORMS for tier in TIERS))
PATIENCE = Patience(settle=0.01, poll_first=0.01, poll_longest=0.05)

ASKED = st.fixed_dictionaries(
    {
        "agent": st.sampled_from(NAMES),
        "text": st.text(st.characters(codec="utf-8"), max_size=40),
        "effort": st.sampled_from([None, "low", "high"]),
        "max_tokens": st.sampled_from([40, 4_000, 20_000]),  # cut while it thinks, whole, and streamed
        "cache": st.sampled_from([None, "5m", "1h"]),
        "images": st.lists(st.tuples(st.integers(1, 3_000), st.integers(1, 3_000)), max_size=2),
        "pages": st.integers(0, 2),
    }
)


def claude(tier: str) -> str:
    """Write the section of a model whose account has a priority tier, which costs twice the price."""
    section = f'[agents.claude-{tier}]\nkind = "anthropic"\nmodel = "claude-haiku-5-5"\n'
    if tier != "unset":
        section += f'service_tier = "{tier}"\n'
    price = listed_price("claude-haiku-5-5")
    assert price is not None
    rates = ", ".join(f"{rate.name} = {2 * getattr(price.base, rate.name)}" for rate in fields(Rates))
    return section if tier == "default" else f"{section}tier_price = {{ {rates} }}\n"


SECTIONS = "".join(map(claude, CLAUDE)) + "".join(
    f'[agents.{form}-{tier}]\nkind = "openai"\nmodel = "gpt-5-mini"\nwire = "{form}"\nservice_tier = "{tier}"\n'
    for form in FORMS
    for tier in TIERS
)


def settings_of(folder: Path, server: Server) -> Settings:
    (folder / "muster.toml").write_text(SECTIONS, encoding="utf-8")
    keys = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}
    addresses = {"OPENAI_BASE_URL": server.openai, "ANTHROPIC_BASE_URL": server.anthropic}
    return load_settings(folder=folder, environment=keys | addresses)


def request_of(asked: dict[str, Any]) -> Request:
    shown = [media_in(png(*size)) for size in asked["images"]]
    shown += [media_in(pdf(asked["pages"]), "a.pdf")] if asked["pages"] else []
    return Request(
        messages=(message(SHARED + asked["text"], *shown),),
        max_tokens=asked["max_tokens"],
        cache=asked["cache"],
        shared=len(SHARED),
        settings=None if asked["effort"] is None else {EFFORT: asked["effort"]},
    )


@REGISTRY.workload("test-mixed-money")
async def mixed(ctx: Context, spec: Any) -> None:
    async def twice(_: int, n: int) -> None:
        asked = spec[n]
        for turn in range(2):  # the second finds what the first has put into the cache
            reply = await ctx.call(asked["agent"], request_of(asked), key=f"q/{n}/{turn}")
            assert min(reply.usage.input, reply.usage.output, reply.usage.thinking, reply.cost) >= 0

    async for _ in ctx.map(twice, range(len(spec)), limit=4):
        pass


@settings(max_examples=settings().max_examples // 3)
@given(
    st.lists(ASKED, min_size=1, max_size=3),
    st.sampled_from(PROJECT_TIERS),
    st.sampled_from(GEOS),
    st.sampled_from(Mode),
)
async def test_what_is_paid_is_booked_and_was_reserved(
    tmp_path_factory: pytest.TempPathFactory, spec: list[dict[str, Any]], project: str, geo: str, mode: Mode
) -> None:
    folder = tmp_path_factory.mktemp("money")
    async with serve(Options(price_of=listed_price, thinking=True, tier=project, geo=geo, batch_ms=1.0)) as server:
        async with open_muster(settings=settings_of(folder, server), patience=PATIENCE) as m:
            run = await (await m.start("test-mixed-money", spec, dispatch=Dispatch(mode=mode))).wait()
            attempts = await m._backend.store.archive.attempts(run.id)
            saving = (await m.runs.details(run.id)).batches.saving
        paid = server.audit
    assert run.error is None
    assert len(attempts) == 2 * len(spec)
    assert all(0 < one.cost <= one.reserved and one.lane is Lane.BILLED for one in attempts)
    assert sum(one.cost for one in attempts) == run.spent.billed == paid.cost
    assert (run.spent.reserved, run.spent.uncertain, run.overdraft) == (0, 0, None)
    assert saving.flex_cost == paid.cost_by_tier.get(ServiceTier.FLEX, 0) <= saving.flex_live_cost
