"""What agents share is paid for once: the first writes it to the provider's cache, and the others read it there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.dispatch import Dispatch, Mode
from muster.sim.options import Options
from muster.verify.declaration.verification import Limits
from tests.verify.stage import ANTHROPIC, CODE, GOOD_REVIEW, OPENAI, WavesStage, a_model, a_reviewer, replying, stage

LONG = {"a.py": CODE * 200, "b.py": CODE * 200}
TWO_CHUNKS = Limits(chunk_bytes=15_000)
SLOW = replace(replying(reviewer=GOOD_REVIEW), latency_ms=1500)
NAMES = ("one", "two", "three")
OWN: dict[str, Any] = {"type": "object", "properties": {"mood": {"type": ["string", "null"]}}}


async def cost(folder: Path, *, server: Options = SLOW, **rest: Any) -> tuple[WavesStage, int]:
    """Verify two long files with three agents; gives the stage as it was left, and what was paid."""
    folder.mkdir()
    async with stage(folder, server, files=LONG) as s:
        run = await s.verify(*(a_model(name) for name in NAMES), limits=TWO_CHUNKS, **rest)
        assert run.result["passed"]
        assert s.anthropic.audit.calls == 6
        return s, run.spent.billed


async def test_the_first_agent_is_asked_alone_and_the_others_read_the_cache(tmp_path: Path) -> None:
    cached, cheap = await cost(tmp_path / "cached")
    plain, dear = await cost(tmp_path / "plain", cache=False)
    tokens, whole = cached.anthropic.audit.tokens, plain.anthropic.audit.tokens
    assert (whole.cache_read, whole.cache_write) == (0, 0)
    assert tokens.cache_read == 2 * tokens.cache_write > 0
    assert tokens.input + tokens.cache_read + tokens.cache_write == pytest.approx(whole.input, rel=0.001)
    assert cheap < 0.6 * dear
    assert cached.anthropic.audit.cost < plain.anthropic.audit.cost
    # Of two chunks both first ones are asked at once, then all four others; without a cache everybody at once.
    assert (cached.anthropic.audit.max_in_flight, plain.anthropic.audit.max_in_flight) == (4, 6)


async def test_in_a_batch_what_is_shared_is_marked_unless_nothing_is_to_be_cached(tmp_path: Path) -> None:
    cached, cheap = await cost(tmp_path / "cached", how="batch")
    tokens = cached.anthropic.audit.tokens
    assert tokens.cache_read == 2 * tokens.cache_write > 0
    silent = Dispatch(mode=Mode.BATCH, cache=False)
    ways: dict[str, dict[str, Any]] = {"spec": {"how": "batch", "cache": False}, "run": {"how": silent}}
    for name, rest in ways.items():
        plain, dear = await cost(tmp_path / name, **rest)
        assert plain.anthropic.audit.tokens.cache_write == 0
        assert len(plain.anthropic.audit.batches) == 1
        assert cheap < dear


async def test_a_short_chunk_is_not_marked_and_nobody_waits_for_another(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW) as s:
        await s.verify(*(a_model(name) for name in NAMES))
        assert (s.anthropic.audit.tokens.cache_write, s.anthropic.audit.max_in_flight) == (0, 3)


async def test_who_is_alone_with_a_model_or_a_shape_marks_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, SLOW, SLOW, files=LONG) as s:
        others = [a_model("other", model=OPENAI), a_model("own", schema=OWN), a_reviewer(wave=1)]
        run = await s.verify(a_model("one"), *others)
        assert run.result["passed"]
        assert s.anthropic.audit.tokens.cache_write == 0
        assert (s.anthropic.audit.max_in_flight, s.openai.audit.calls) == (3, 1)


async def test_agents_of_two_providers_share_with_their_own(tmp_path: Path) -> None:
    """OpenAI's servers find shared prefixes by themselves, so nothing is marked there; but one is asked first."""
    async with stage(tmp_path, SLOW, SLOW, files=LONG) as s:
        agents = [
            a_model(f"{name}-{number}", model=model)
            for number, model in enumerate([ANTHROPIC, OPENAI])
            for name in NAMES
        ]
        run = await s.verify(*agents, limits=TWO_CHUNKS)
        assert run.result["passed"]
        tokens = s.anthropic.audit.tokens
        assert tokens.cache_read == 2 * tokens.cache_write > 0
        assert (s.openai.audit.calls, s.openai.audit.max_in_flight) == (6, 4)


async def test_agents_of_a_batch_run_that_are_asked_live_share_the_cache_too(tmp_path: Path) -> None:
    async with stage(tmp_path, files=LONG) as s:
        agents = [a_model(name, dispatch="live") for name in NAMES]
        run = await s.verify(*agents, a_model("four"), limits=TWO_CHUNKS, how="batch")
        assert run.result["passed"]
        assert [batch["requests"] for batch in s.anthropic.audit.batches] == [2]
        assert s.anthropic.audit.tokens.cache_read > 0


async def test_a_repair_reads_the_cache_too(tmp_path: Path) -> None:
    async with stage(tmp_path, replying(one="Fine!"), files=LONG) as s:
        run = await s.verify(a_model("one"), a_model("two"))
        assert (run.result["passed"], (await s.agents(run))["one"].repaired) == (True, 1)
        audit = s.anthropic.audit
        assert (audit.calls, audit.tokens.cache_read) == (3, 2 * audit.tokens.cache_write)
        assert audit.tokens.cache_read > 0
