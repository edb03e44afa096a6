"""Three hundred files and five agents in batches: two batches at each provider, and every cent of it by hand."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from pathlib import Path

from muster.agents.prices import price_of
from muster.domain.call import Usage
from muster.domain.price import Rates
from muster.sim.audit import Tokens
from muster.sim.files import read_script
from muster.sim.options import Options
from muster.verify.arrangement import cut, read_sources
from muster.verify.findings.journal import Ending
from muster.verify.sources.source import Source
from tests.verify.crowd import FILES, OF_WAVES, SCRIPT, UNHURRIED, crowd_spec, write_crowd
from tests.verify.stage import BRISK, stage


def rates_of(agent: str, *, batch: bool) -> Rates:
    provider, _, model = agent.partition("/")
    price = price_of(provider, model, datetime.now(UTC), batch=batch)
    assert price is not None
    return price.base


def by_hand(usage: Usage, rates: Rates) -> int:
    """Compute what a call costs; a part of a millionth of a dollar is a whole one."""
    exact = (
        Decimal(usage.input) * rates.input
        + Decimal(usage.output) * rates.output
        + Decimal(usage.cache_read) * rates.cache_read
        + Decimal(usage.cache_write) * rates.cache_write
        + Decimal(usage.cache_write_1h) * rates.cache_write_1h
    )
    return ceil(exact)


def together(usages: list[Usage]) -> Tokens:
    """Add tokens up as the provider's audit does."""
    return Tokens(
        input=sum(usage.input for usage in usages),
        output=sum(usage.output for usage in usages),
        cache_read=sum(usage.cache_read for usage in usages),
        cache_write=sum(usage.cache_write + usage.cache_write_1h for usage in usages),
    )


async def test_three_hundred_files_in_batches_make_two_at_each_provider_and_cost_what_they_cost_by_hand(
    tmp_path: Path,
) -> None:
    server = Options(script=read_script(SCRIPT))
    async with stage(tmp_path, server, server, files={}, patience=replace(BRISK, settle=UNHURRIED)) as s:
        spec = crowd_spec(s.root, write_crowd(s.root))
        chunks = len(cut([source for source in read_sources(spec) if isinstance(source, Source)], spec.limits))
        assert chunks > 40
        run = await s.drive(spec, dispatch="batch")
        assert (run.result["passed"], run.result["files"], run.result["findings"]) == (True, FILES, 2)
        assert (len(run.result["cleared"]), len(s.markers)) == (FILES // 10, 0)

        agents = await s.agents(run)
        assert {one.ending for one in agents.values()} == {Ending.PASSED}
        assert {(one.chunks, one.answered) for one in agents.values()} == {(chunks, chunks)}
        for server_of, of_waves in ((s.anthropic, (2, 1)), (s.openai, (1, 1))):
            found = server_of.audit
            assert [batch["requests"] for batch in found.batches] == [chunks * number for number in of_waves]
            assert set(found.by_digest.values()) == {1}
        assert run.calls.total == chunks * sum(OF_WAVES.values())

        cost = live = 0
        usages: dict[str, list[Usage]] = {"anthropic": [], "openai": []}
        for entry in await s.calls(run):
            assert entry.reply is not None
            assert entry.agent is not None
            usage = entry.reply.usage
            usages[entry.agent.partition("/")[0]].append(usage)
            cost += by_hand(usage, rates_of(entry.agent, batch=True))
            live += by_hand(usage, rates_of(entry.agent, batch=False))
        assert together(usages["anthropic"]) == s.anthropic.audit.tokens
        assert together(usages["openai"]) == s.openai.audit.tokens
        assert s.anthropic.audit.tokens.cache_write == 0  # where only two share a chunk, an hour of cache is no saving
        told = (await s.report(run)).run.cost
        assert (told.billed, told.batch, told.batch_live) == (cost, cost, live)
        assert (told.known, told.live, told.uncertain, told.batches) == (cost, live, 0, 4)
        assert 0 < cost < live
        assert sum(one.cost for one in agents.values()) == cost
