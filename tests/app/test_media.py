"""Images and documents from the question to the wire: stored once, sent by digest, bounded, refused where unseen."""

import gzip
import json
import sqlite3
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import muster
from muster.app import Muster, open_muster
from muster.app.base.costs import listed_price
from muster.app.views.media import media_view
from muster.councils.rules.values import CouncilMember
from muster.domain.call import Message, Request, Role, message
from muster.domain.errors import BadArgument, BadConfiguration, BadFile, NotFound, RunFailed
from muster.domain.money import Lane
from muster.domain.patience import Patience
from muster.engine.calls.retry import RetryPolicy
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings
from muster.sim.options import Options
from muster.sim.server import Server, serve
from muster.text.media_files import media_in
from tests.pictures import pdf, png

MODELS = ("anthropic/claude-haiku-5-5", "openai/gpt-5-mini")
QUICK = RetryPolicy(attempts=1, first_delay=0.001, longest_delay=0.01)
PATIENCE = Patience(settle=0.01, poll_first=0.01, poll_longest=0.05)
IMAGE = muster.image(png(640, 480))


@asynccontextmanager
async def rehearsal(folder: Path, text: str = "") -> AsyncIterator[tuple[Muster, Server]]:
    (folder / "muster.toml").write_text(text, encoding="utf-8")
    async with serve(Options(price_of=listed_price, batch_ms=1.0)) as server:
        environment = {
            "OPENAI_API_KEY": "sk-1",
            "OPENAI_BASE_URL": server.openai,
            "ANTHROPIC_API_KEY": "sk-2",
            "ANTHROPIC_BASE_URL": server.anthropic,
        }
        settings = load_settings(folder=folder, environment=environment)
        async with open_muster(settings=settings, policy=QUICK, patience=PATIENCE) as opened:
            yield opened, server


def stored(folder: Path, query: str, *values: object) -> Sequence[Any]:
    with closing(sqlite3.connect(folder / ".muster" / "muster.db")) as database:
        found = database.execute(query, values).fetchall()
        database.commit()
        return found


@pytest.mark.parametrize("dispatch", ["live", "batch"])
@pytest.mark.parametrize("model", MODELS)
async def test_a_question_shows_images_and_documents(tmp_path: Path, model: str, dispatch: str) -> None:
    async with rehearsal(tmp_path) as (m, server):
        shown: list[str | muster.Media] = ["What are these?", IMAGE, muster.document(pdf(2), name="b.pdf")]
        reply = await m.ask(model, shown, dispatch=dispatch)
        plain = await m.ask(model, "What are these?", dispatch=dispatch)
        assert reply.text == "What are these?"
        assert reply.lane is Lane.BILLED
        assert reply.usage.input > plain.usage.input + 2 * 1_500  # the server counts pixels and pages
        assert server.audit.cost == reply.cost + plain.cost
        [run] = [run for run in await m.runs.list() if "content" in run.spec]
        assert run.spent.billed == reply.cost
    assert stored(tmp_path, "SELECT type, size FROM media ORDER BY type") == [
        ("application/pdf", len(pdf(2))),
        ("image/png", IMAGE.size),
    ]
    texts = [text for (text,) in stored(tmp_path, "SELECT request FROM requests")]
    assert not any("iVBOR" in text for text in texts)


@pytest.mark.parametrize("dispatch", ["live", "batch"])
async def test_an_agent_that_sees_nothing_is_refused_before_anything_is_stored(tmp_path: Path, dispatch: str) -> None:
    async with rehearsal(tmp_path) as (m, server):
        for agent in ("sim/echo", "openai/o3-mini"):
            with pytest.raises(BadConfiguration, match=f"'{agent}' cannot be shown images") as caught:
                await m.ask(agent, ["What?", IMAGE], dispatch=dispatch)
            assert any("media" in way for way in caught.value.suggestions)
        assert not await m.runs.list()
        assert server.audit.calls == 0
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == [(0,)]


async def test_a_section_says_what_an_agent_can_be_shown(tmp_path: Path) -> None:
    text = '[agents.blind]\nkind = "openai"\nmodel = "gpt-5-mini"\nmedia = []\n'
    text += '[agents.seeing]\nkind = "scripted"\nmodel = "echo"\nmedia = ["image"]\n'
    async with rehearsal(tmp_path, text) as (m, _):
        assert (await m.ask("seeing", [IMAGE, "What?"])).text == "What?"
        for agent, shown in (("blind", IMAGE), ("seeing", muster.document(pdf()))):
            with pytest.raises(BadConfiguration, match="cannot be shown"):
                await m.ask(agent, ["What?", shown])


async def test_a_conversation_with_an_image_goes_on(tmp_path: Path) -> None:
    async with rehearsal(tmp_path) as (m, _):
        said = [message("What?", IMAGE), Message(role=Role.ASSISTANT, text="A picture.")]
        first = await m.ask(MODELS[0], "And now?", messages=said)
        again = await m.ask(MODELS[0], "And now?", messages=[*said[:1], said[1]], dispatch="batch")
        assert first.usage.input == again.usage.input > 410


@REGISTRY.workload("test-shows")
async def shows(ctx: Context, spec: Mapping[str, Any]) -> Any:
    pictures = [media_in(png(text=str(n).encode())) for n in range(spec["pictures"])]

    async def one(_: int, n: int) -> int:
        asked = Request(messages=(message(f"picture {n}", pictures[n % len(pictures)]),), max_tokens=64)
        return (await ctx.call(spec["model"], asked, key=f"q/{n}")).usage.input

    return [tokens async for tokens in ctx.map(one, range(spec["calls"]), limit=spec["calls"])]


async def test_a_store_has_every_picture_once_and_a_batch_has_none(tmp_path: Path) -> None:
    async with rehearsal(tmp_path) as (m, _):
        for dispatch in ("live", "batch"):
            spec = {"model": MODELS[0], "pictures": 3, "calls": 12}
            run = await (await m.start("test-shows", spec, dispatch=dispatch)).wait()
            assert len(run.result) == 12
        [batch] = await m.batches.list()
        sent = b"".join([piece async for piece in m._backend.store.batches.bodies(batch.id)])
        assert b"iVBOR" not in sent
        assert len(sent) < batch.bytes
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == [(3,)]
    assert stored(tmp_path, "SELECT COUNT(*) FROM run_media") == [(6,)]


async def test_a_resumed_or_forked_run_shows_what_is_stored(tmp_path: Path) -> None:
    async with rehearsal(tmp_path) as (m, server):
        await m.ask(MODELS[0], ["What?", IMAGE], name="first")
        fork = await m.runs.drive(await m.runs.fork("first", "ask")).wait()
        assert fork.spent.billed > 0
        assert server.audit.calls == 2
        first = fork.origin.run if fork.origin is not None else None
        await m.runs.delete([str(first)])
        assert stored(tmp_path, "SELECT COUNT(*) FROM media") == [(1,)]
        await m.runs.delete([fork.id])
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == [(0,)]


@pytest.mark.parametrize("dispatch", ["live", "batch"])
@pytest.mark.parametrize("change", ["DELETE FROM media", "UPDATE media SET data = x'00'"])
async def test_what_is_missing_or_damaged_is_an_error_of_its_call(tmp_path: Path, change: str, dispatch: str) -> None:
    async with rehearsal(tmp_path) as (m, server):
        await m.ask(MODELS[0], ["What?", IMAGE])
        stored(tmp_path, change)
        async with open_muster(settings=m.settings, policy=QUICK, patience=PATIENCE) as other:
            handle = await other.start("test-refers", {"digest": IMAGE.digest, "size": IMAGE.size}, dispatch=dispatch)
            with pytest.raises(RunFailed, match="in the store"):
                await handle.result()
            assert (await other.runs.find(handle.id)).spent.billed == 0
        assert server.audit.calls == 1


@REGISTRY.workload("test-refers")
async def refers(ctx: Context, spec: Mapping[str, Any]) -> Any:
    shown = muster.Media(kind=IMAGE.kind, type=IMAGE.type, digest=spec["digest"], size=spec["size"])
    return (await ctx.call(MODELS[0], ["What?", shown], key="ask")).text


async def test_an_export_has_the_bytes_and_an_import_checks_them(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    file = tmp_path / "run.jsonl.gz"
    async with rehearsal(here) as (m, _):
        await m.ask(MODELS[0], ["What?", IMAGE], name="first")
        await m.runs.export("first", file)
    async with rehearsal(there) as (m, _):
        run = await m.runs.import_(file)
        assert (await m.answer_of(run.id)).text == "What?"
    assert stored(there, "SELECT digest, data FROM media") == [(IMAGE.digest, IMAGE.data)]
    assert stored(there, "SELECT COUNT(*) FROM run_media") == [(1,)]
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith('{"media"'))
    lines[at] = json.dumps({"media": {"digest": IMAGE.digest, "type": "image/png", "data": "AAAA"}})
    (tmp_path / "changed.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    async with rehearsal(there) as (m, _):
        with pytest.raises(BadFile, match="damaged"):
            await m.runs.import_(tmp_path / "changed.jsonl")


SIZES = st.integers(1, 4_000)


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=3), st.integers(0, 2), st.sampled_from(MODELS))
async def test_no_reservation_is_passed_whatever_is_shown(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]], pages: int, model: str
) -> None:
    async with rehearsal(tmp_path_factory.mktemp("money")) as (m, server):
        shown = [media_in(png(*size)) for size in sizes] + ([media_in(pdf(pages), "b.pdf")] if pages else [])
        asked = Request(messages=(message("What?", *shown),), max_tokens=64)
        agent = m._backend.directory.find(model)
        most = agent.quote(agent.profile.complete(asked)).most
        for dispatch in ("live", "batch"):
            reply = await m.ask(model, ["What?", *shown], max_tokens=64, dispatch=dispatch, budget_usd=most / 1_000_000)
            assert 0 < reply.cost <= most
            assert reply.lane is Lane.BILLED
        runs = await m.runs.list()
        assert [run.overdraft for run in runs] == [None, None]
        assert server.audit.cost == sum(run.spent.billed for run in runs)


async def test_a_picture_is_reserved_by_its_pixels_and_not_by_its_bytes(tmp_path: Path) -> None:
    async with rehearsal(tmp_path) as (m, _):
        for model in MODELS:
            agent = m._backend.directory.find(model)
            most = [
                agent.quote(agent.profile.complete(Request(messages=(message("?", media_in(png(64, 64, text))),)))).most
                for text in (b"", bytes(3_000_000))
            ]
            assert most[1] - most[0] < most[0] / 1_000  # but for the digits of its size


@pytest.mark.parametrize("source", [b"text", "nowhere.png", 3])
async def test_what_is_no_image_is_refused_with_what_is_one(source: Any) -> None:
    with pytest.raises(BadArgument) as caught:
        muster.image(source)
    assert "PNG" in " ".join([caught.value.message, *caught.value.suggestions])


async def test_an_image_that_is_too_large_for_its_provider_is_refused_with_the_limit(tmp_path: Path) -> None:
    async with rehearsal(tmp_path) as (m, server):
        with pytest.raises(BadArgument, match="5,242,880"):
            await m.ask(MODELS[0], ["What?", muster.image(png(text=bytes(4_000_000)))])
        assert server.audit.calls == 0
        assert not await m.runs.list()


@pytest.mark.parametrize("dispatch", ["live", "batch"])
async def test_a_document_that_is_too_long_is_refused_before_anything_is_stored(tmp_path: Path, dispatch: str) -> None:
    async with rehearsal(tmp_path) as (m, server):
        for model in MODELS:
            with pytest.raises(BadArgument, match="5,000 pages"):
                await m.ask(model, ["What?", muster.document(pdf(5_000))], dispatch=dispatch)
        assert server.audit.calls == 0
        assert not await m.runs.list()
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == [(0,)]


async def test_what_a_run_shows_is_given_to_whoever_may_see_the_run(tmp_path: Path) -> None:
    async with rehearsal(tmp_path) as (m, _):
        await m.ask(MODELS[0], ["What?", IMAGE], name="first")
        await m.ask(MODELS[0], "What?", name="second")
        shown = media_view(await m.runs.media("first", IMAGE.digest))
        assert (shown.type, b64decode(shown.data)) == ("image/png", IMAGE.data)
        for run, digest in (("second", IMAGE.digest), ("first", "0" * 64), ("first", "../x")):
            with pytest.raises(NotFound):
                await m.runs.media(run, digest)


async def test_members_of_a_council_are_shown_what_belongs_to_the_question(tmp_path: Path) -> None:
    for name, data in (("a.png", IMAGE.data), ("b.txt", b"some text")):
        (tmp_path / name).write_bytes(data)
    async with rehearsal(tmp_path) as (m, server):
        files = [tmp_path / "a.png", tmp_path / "b.txt"]
        spec = m.councils.spec("Which?", [*MODELS], files=files, rounds=1)
        assert "some text" in spec.question
        run = await (await m.councils.start(spec, m.runs.options(budget_usd=1))).wait()
        calls = await m.runs.calls(run.id)
        assert {IMAGE.digest in json.dumps((await m.runs.call(run.id, one.key)).entry.request) for one in calls} == {
            True
        }
        assert server.audit.calls >= 2
        with pytest.raises(BadConfiguration, match="cannot be shown images"):
            await m.councils.start(replace(spec, members=(spec.members[0], CouncilMember(name="sim/echo"))))
    assert stored(tmp_path, "SELECT COUNT(*) FROM media") == [(1,)]
