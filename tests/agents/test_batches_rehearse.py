"""Our batch agents against the rehearsal server: two implementations of the same protocols, written apart."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from muster.agents.anthropic.batch import AnthropicBatches
from muster.agents.anthropic.batch import encode as encode_anthropic
from muster.agents.base import BatchAgent, BatchUpload
from muster.agents.http.client import HttpClient
from muster.agents.openai.batch import OpenAIBatches
from muster.agents.openai.batch_format import scope_of
from muster.agents.openai.responses_wire import encode as encode_responses
from muster.agents.openai.wire import encode as encode_openai
from muster.agents.prices import price_from_toml
from muster.domain.agent import Timeouts
from muster.domain.batch import Answered, BatchProgress, Dropped, Errored, MemberResult, Phase, Shortfall, Tariff
from muster.domain.call import Request, Timings, ask
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    Paid,
    ProviderFault,
    RateLimited,
    TryLater,
    UnknownModel,
    WireError,
)
from muster.domain.ids import BatchId
from muster.domain.wire import WireName
from muster.sim.faults import Fault, FaultKind, Faults, Op, ScriptedFault
from muster.sim.options import Options
from muster.sim.server import Server, serve
from muster.testing.clock import FakeClock

SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
BRIEF = replace(SOON, idle=2.0, call=2.0)  # for what hangs
TARIFF = Tariff(model="m", batch=price_from_toml(1.5, 7.5), live=price_from_toml(3, 15))
TEN_SECONDS = Options(batch_ms=10_000)


@pytest.fixture(params=["anthropic", "openai", pytest.param("responses", marks=pytest.mark.chaos)])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class House:
    """A rehearsal server, a batch agent, and a clock that stands still."""

    server: Server
    clock: FakeClock
    agent: BatchAgent
    files: list[str] = field(default_factory=list)
    timeouts: Timeouts = SOON

    def encode(self, request: Request) -> bytes:
        if self.agent.endpoint.kind == "anthropic":
            return encode_anthropic(request, "m", cache=True)
        if self.agent.endpoint.scope == scope_of("m", WireName.RESPONSES):
            return encode_responses(request, "m")
        return encode_openai(request, "m")

    def upload(self, count: int, *, file: str | None = None, name: str = "b1") -> BatchUpload:
        batch_format = self.agent.format
        members = [batch_format.member(f"n_b_{n}", self.encode(ask(f"number {n}"))) for n in range(count)]
        body = batch_format.head + batch_format.separator.join(members) + batch_format.tail

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 1000):
                yield body[start : start + 1000]

        async def remember(file: str) -> None:
            self.files.append(file)

        return BatchUpload(id=BatchId(name), requests=count, size=len(body), pieces=pieces, file=file, on_file=remember)

    async def submit(self, count: int) -> str:
        return await self.agent.submit(self.upload(count), self.timeouts)

    async def poll(self, name: str) -> BatchProgress:
        return await self.agent.poll(name, self.timeouts)

    async def collect(self, progress: BatchProgress) -> dict[str, MemberResult]:
        body = b""
        for source in progress.sources:
            async for chunk in self.agent.results(source, self.timeouts):
                body += chunk
        found = [self.agent.format.read(line) for line in body.splitlines()]
        assert None not in found
        return dict(result for result in found if result is not None)

    async def found(self, since: float = 0.0) -> list[str]:
        return [found.id async for found in self.agent.find(since, self.timeouts)]

    def play(self, kind: FaultKind, op: Op, looks: int = 1) -> None:
        if kind in (FaultKind.TIMEOUT, FaultKind.STALLED_STREAM):
            self.timeouts = BRIEF
        self.server.play(Faults(script=(ScriptedFault(fault=Fault(kind=kind, op=op, looks=looks)),)))


def agent_of(kind: str, server: Server, http: HttpClient, key: str = "k") -> BatchAgent:
    if kind == "anthropic":
        return AnthropicBatches(key=key, variable="K", base_url=server.anthropic, http=http)
    scope = scope_of("m", WireName.RESPONSES if kind == "responses" else WireName.CHAT)
    return OpenAIBatches(key=key, variable="K", base_url=server.openai, scope=scope, http=http)


@pytest.fixture
async def house(kind: str, http: HttpClient) -> AsyncIterator[House]:
    clock = FakeClock()
    async with serve(TEN_SECONDS, clock.now) as server:
        yield House(server, clock, agent_of(kind, server, http))


async def test_a_batch_lives_from_its_bytes_to_its_replies(house: House) -> None:
    name = await house.submit(20)
    running = await house.poll(name)
    assert (running.phase, running.sources) == (Phase.RUNNING, ())
    house.clock.advance(10)
    ended = await house.poll(name)
    assert (ended.phase, ended.total, ended.done, ended.shortfall) == (Phase.ENDED, 20, 20, Shortfall.NONE)
    results = await house.collect(ended)
    assert len(results) == 20
    for place in range(20):
        result = results[f"n_b_{place}"]
        assert isinstance(result, Answered)
        reply = house.agent.format.decode(result.answer, TARIFF, 1000, 2048, Timings())
        assert reply.text == f"number {place}"
        assert reply.cost == TARIFF.batch.cost(reply.usage) if TARIFF.batch else 0
    assert house.server.audit.calls == 20


async def test_counts_are_given_only_where_they_are_true(house: House, kind: str) -> None:
    name = await house.submit(10)
    house.clock.advance(5)
    progress = await house.poll(name)
    assert (progress.phase, progress.word, progress.total) == (Phase.RUNNING, "in_progress", 10)
    assert progress.done == (None if kind == "anthropic" else 5)


def shortfall(kind: str, why: Shortfall) -> Shortfall:
    """Anthropic has a line for every member, so that none is missing."""
    return Shortfall.NONE if kind == "anthropic" else why


async def test_a_canceled_batch_keeps_what_was_done(house: House, kind: str) -> None:
    name = await house.submit(10)
    house.clock.advance(4)
    await house.agent.cancel(name, house.timeouts)
    ended = await house.poll(name)
    assert (ended.phase, ended.shortfall) == (Phase.ENDED, shortfall(kind, Shortfall.CANCELED))
    results = (await house.collect(ended)).values()
    assert sum(isinstance(result, Answered) for result in results) == 4
    assert [result for result in results if not isinstance(result, Answered)] == [Dropped(Shortfall.CANCELED)] * 6


async def test_a_batch_that_has_ended_is_not_canceled_and_that_is_fine(house: House) -> None:
    name = await house.submit(1)
    house.clock.advance(10)
    await house.agent.cancel(name, house.timeouts)
    assert (await house.poll(name)).shortfall is Shortfall.NONE


async def test_an_expired_batch_keeps_what_was_done(house: House, kind: str) -> None:
    house.play(FaultKind.EXPIRY, Op.BATCH)
    name = await house.submit(10)
    house.clock.advance(24 * 60 * 60)
    ended = await house.poll(name)
    assert (ended.phase, ended.shortfall) == (Phase.ENDED, shortfall(kind, Shortfall.EXPIRED))
    results = list((await house.collect(ended)).values())
    assert results.count(Dropped(Shortfall.EXPIRED)) == 5
    assert sum(isinstance(result, Answered) for result in results) == 5


MEMBERS = {
    FaultKind.BAD_REQUEST: InvalidRequest,
    FaultKind.UNAUTHORIZED: AuthRefused,
    FaultKind.MISSING: UnknownModel,
    FaultKind.RATE_LIMITED: RateLimited,
    FaultKind.BROKEN: ProviderFault,
    FaultKind.OVERLOADED: Overloaded,
}


@pytest.mark.parametrize("fault", MEMBERS)
async def test_a_failed_member_is_told_for_what_it_is_and_was_not_paid(house: House, fault: FaultKind) -> None:
    house.play(fault, Op.MEMBER)
    name = await house.submit(3)
    house.clock.advance(10)
    results = (await house.collect(await house.poll(name))).values()
    [failed] = [result for result in results if isinstance(result, Errored)]
    assert (type(failed.error), failed.error.paid) == (MEMBERS[fault], Paid.NO)
    assert (len(results), house.server.audit.calls) == (3, 2)


async def test_batches_are_found_newest_first_since_a_time(house: House) -> None:
    names = []
    for _ in range(3):
        names.append(await house.submit(2))
        house.clock.advance(100)
    assert await house.found() == names[::-1]
    assert await house.found(house.clock.now() - 150) == names[:0:-1][:1]
    assert await house.found(house.clock.now()) == []


async def test_more_batches_are_found_than_a_page_holds(house: House) -> None:
    file = None
    if house.agent.endpoint.kind == "openai":
        await house.submit(1)
        [file] = house.files
    for _ in range(105 - bool(file)):
        await house.agent.submit(house.upload(1, file=file), SOON)
    found = await house.found()
    assert (len(found), len(set(found))) == (105, 105)


async def test_a_found_batch_is_known_by_what_the_provider_keeps(house: House, kind: str) -> None:
    name = await house.submit(7)
    house.clock.advance(10)
    [found] = [found async for found in house.agent.find(0, SOON)]
    assert (found.id, found.requests, found.ended) == (name, 7, True)
    assert abs(found.created_at - (house.clock.now() - 10)) <= 1
    assert (found.file, found.label) == ((None, None) if kind == "anthropic" else (house.files[0], "b1"))


async def test_one_account_does_not_see_the_batches_of_another(house: House, kind: str, http: HttpClient) -> None:
    name = await house.submit(1)
    other = agent_of(kind, house.server, http, "other")
    assert [found async for found in other.find(0, SOON)] == []
    with pytest.raises(UnknownModel) as caught:
        await other.poll(name, SOON)
    assert caught.value.status == 404


CREATES = {
    FaultKind.BAD_REQUEST: InvalidRequest,
    FaultKind.UNAUTHORIZED: AuthRefused,
    FaultKind.TOO_LARGE: InvalidRequest,
    FaultKind.RATE_LIMITED: RateLimited,
    FaultKind.BROKEN: ProviderFault,
    FaultKind.OVERLOADED: Overloaded,
    FaultKind.TIMEOUT: OutcomeUnknown,
    FaultKind.CUT_BEFORE: OutcomeUnknown,
    FaultKind.CUT_AFTER: OutcomeUnknown,
    FaultKind.TRUNCATED: OutcomeUnknown,
    FaultKind.GARBAGE: OutcomeUnknown,
}


@pytest.mark.parametrize("fault", CREATES)
async def test_a_create_is_never_called_unpaid_when_it_created(house: House, fault: FaultKind) -> None:
    house.play(fault, Op.BATCH_CREATE)
    with pytest.raises(WireError) as caught:
        await house.submit(2)
    house.timeouts = SOON
    assert isinstance(caught.value, CREATES[fault])
    created = len(await house.found())
    assert created == 0 or caught.value.paid is Paid.UNKNOWN
    assert created == (fault in (FaultKind.TIMEOUT, FaultKind.CUT_AFTER, FaultKind.TRUNCATED, FaultKind.GARBAGE))


@pytest.mark.parametrize("kind", ["openai"])
@pytest.mark.parametrize("fault", CREATES)
async def test_an_upload_that_failed_created_no_batch(house: House, fault: FaultKind) -> None:
    house.play(fault, Op.FILE_UPLOAD)
    with pytest.raises(WireError) as caught:
        await house.submit(2)
    house.timeouts = SOON
    assert type(caught.value) is (TryLater if CREATES[fault] is OutcomeUnknown else CREATES[fault])
    assert (caught.value.paid, house.files, await house.found()) == (Paid.NO, [], [])


@pytest.mark.parametrize("kind", ["openai"])
async def test_a_file_that_was_uploaded_before_is_used_again(house: House) -> None:
    house.play(FaultKind.OVERLOADED, Op.BATCH_CREATE)
    with pytest.raises(Overloaded):
        await house.submit(2)
    [file] = house.files
    name = await house.agent.submit(house.upload(2, file=file), SOON)
    house.clock.advance(10)
    assert len(await house.collect(await house.poll(name))) == 2
    assert house.files == [file]


async def test_a_batch_that_is_not_valid_fails_as_a_whole(house: House, kind: str) -> None:
    house.play(FaultKind.VALIDATION_FAILURE, Op.BATCH)
    if kind == "anthropic":
        with pytest.raises(InvalidRequest):
            await house.submit(2)
        return
    progress = await house.poll(await house.submit(2))
    assert (progress.phase, progress.word) == (Phase.FAILED, "failed")
    assert progress.message


async def test_a_batch_may_be_unknown_just_after_its_creation(house: House) -> None:
    house.play(FaultKind.LATE_404, Op.BATCH)
    name = await house.submit(1)
    with pytest.raises(UnknownModel) as caught:
        await house.poll(name)
    assert (caught.value.status, caught.value.paid) == (404, Paid.NO)
    house.clock.advance(10)
    ended = await house.poll(name)
    with pytest.raises(UnknownModel):
        await house.collect(ended)
    assert len(await house.collect(ended)) == 1


async def test_a_word_that_we_do_not_know_means_that_it_goes_on(house: House) -> None:
    house.play(FaultKind.UNKNOWN_STATUS, Op.BATCH)
    name = await house.submit(1)
    progress = await house.poll(name)
    assert (progress.phase, progress.word) == (Phase.RUNNING, "pondering")


async def test_results_may_come_later_than_the_end(house: House) -> None:
    house.play(FaultKind.NO_RESULTS_URL, Op.BATCH)
    name = await house.submit(1)
    house.clock.advance(10)
    early = await house.poll(name)
    assert (early.phase, early.sources, early.total) == (Phase.ENDED, (), 1)
    assert (await house.poll(name)).sources


@pytest.mark.parametrize("kind", ["anthropic"])
async def test_results_somewhere_else_are_not_fetched(house: House) -> None:
    house.play(FaultKind.FOREIGN_RESULTS_URL, Op.BATCH)
    name = await house.submit(1)
    house.clock.advance(10)
    ended = await house.poll(name)
    with pytest.raises(BadConfiguration, match="the key is not sent there"):
        await house.collect(ended)


@pytest.mark.parametrize(
    "fault", [FaultKind.CUT_STREAM, FaultKind.STALLED_STREAM, FaultKind.BROKEN, FaultKind.CUT_BEFORE]
)
async def test_results_that_break_off_can_be_read_again(house: House, kind: str, fault: FaultKind) -> None:
    name = await house.submit(50)
    house.clock.advance(10)
    ended = await house.poll(name)
    house.play(fault, Op.BATCH_RESULTS if kind == "anthropic" else Op.FILE_CONTENT)
    with pytest.raises(TryLater) as caught:
        await house.collect(ended)
    house.timeouts = SOON
    assert (caught.value.paid, isinstance(caught.value, OutcomeUnknown)) == (Paid.NO, False)
    assert len(await house.collect(ended)) == 50


@pytest.mark.parametrize("op", [Op.BATCH_RETRIEVE, Op.BATCH_CANCEL, Op.BATCH_LIST])
@pytest.mark.parametrize("fault", [FaultKind.BROKEN, FaultKind.TIMEOUT, FaultKind.CUT_AFTER, FaultKind.GARBAGE])
async def test_everything_but_creating_can_be_tried_again(house: House, op: Op, fault: FaultKind) -> None:
    name = await house.submit(1)
    house.play(fault, op)
    if op is Op.BATCH_CANCEL:
        if fault is not FaultKind.GARBAGE:  # what it answers to a cancel says nothing that we need
            with pytest.raises(TryLater):
                await house.agent.cancel(name, house.timeouts)
            house.timeouts = SOON
        await house.agent.cancel(name, house.timeouts)
        return
    with pytest.raises(TryLater) as caught:
        await (house.poll(name) if op is Op.BATCH_RETRIEVE else house.found())
    house.timeouts = SOON
    assert (caught.value.paid, isinstance(caught.value, OutcomeUnknown)) == (Paid.NO, False)
    assert await (house.poll(name) if op is Op.BATCH_RETRIEVE else house.found())


async def test_a_batch_that_is_too_large_is_refused_and_that_is_told(kind: str, http: HttpClient) -> None:
    async with serve(Options(batch_bytes=10_000)) as server:
        house = House(server, FakeClock(), agent_of(kind, server, http))
        with pytest.raises(InvalidRequest) as caught:
            await house.submit(20_000)
        assert (caught.value.status, caught.value.paid) == (413, Paid.NO)
