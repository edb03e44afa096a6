"""Both batch agents against a server whose every byte a test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from muster.agents.anthropic.batch import AnthropicBatches
from muster.agents.base import BatchAgent, BatchUpload
from muster.agents.faults import fingerprint
from muster.agents.http.client import HttpClient
from muster.agents.openai.batch import OpenAIBatches
from muster.agents.openai.batch_format import scope_of
from muster.domain.agent import Timeouts
from muster.domain.batch import ListedBatch, Phase
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    InvalidRequest,
    MusterError,
    OutcomeUnknown,
    Paid,
    ProviderFault,
    RateLimited,
    TryLater,
    UnknownModel,
    Unreachable,
    WireError,
)
from muster.domain.ids import BatchId

if TYPE_CHECKING:
    from tests.agents.conftest import Host

KEY = "sk-very-secret-0123456789"
SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
BRIEF = replace(SOON, idle=1.0, call=2.0)  # for what hangs
BODY = [b"one\n", b"two\n" * 1000, b"three\n"]
RUNNING = {"id": "x", "processing_status": "in_progress", "status": "in_progress"}
OVER = {"id": "x", "processing_status": "ended", "status": "completed"}


@dataclass
class Handed:
    """A parcel, and what became of its file."""

    file: str | None = None
    files: list[str] = field(default_factory=list)

    @property
    def upload(self) -> BatchUpload:
        async def pieces() -> AsyncIterator[bytes]:
            for piece in BODY:
                yield piece

        async def remember(name: str) -> None:
            self.files.append(name)

        size = sum(len(piece) for piece in BODY)
        return BatchUpload(id=BatchId("b1"), requests=3, size=size, pieces=pieces, file=self.file, on_file=remember)


@pytest.fixture
def anthropic(host: Host, http: HttpClient) -> AnthropicBatches:
    return AnthropicBatches(key=KEY, variable="SOME_KEY", base_url=f"{host.url}/base/", http=http)


@pytest.fixture
def openai(host: Host, http: HttpClient) -> OpenAIBatches:
    scope = scope_of("gpt-test")
    return OpenAIBatches(key=KEY, variable="SOME_KEY", base_url=f"{host.url}/base/v1", scope=scope, http=http)


@pytest.fixture(params=["anthropic", "openai"])
def agent(request: pytest.FixtureRequest, anthropic: AnthropicBatches, openai: OpenAIBatches) -> BatchAgent:
    return anthropic if request.param == "anthropic" else openai


@pytest.fixture
def source(agent: BatchAgent) -> str:
    return f"{agent.endpoint.base_url}/results"


async def everything(stream: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def listed(stream: AsyncIterator[ListedBatch]) -> list[str]:
    return [found.id async for found in stream]


# Endpoints.


def test_a_desk_says_all_that_is_needed_to_come_back_except_the_key(host: Host, agent: BatchAgent) -> None:
    assert agent.endpoint.base_url.startswith(f"{host.url}/base")
    assert not agent.endpoint.base_url.endswith("/")
    assert agent.endpoint.variable == "SOME_KEY"
    assert agent.endpoint.account == fingerprint(agent.endpoint.base_url, KEY)
    assert agent.endpoint.scope == ("/v1/chat/completions gpt-test" if agent.endpoint.kind == "openai" else "")
    assert KEY not in repr((agent.endpoint, vars(agent)))


def test_only_one_provider_keeps_our_word_and_takes_a_file_first(
    anthropic: AnthropicBatches, openai: OpenAIBatches
) -> None:
    assert (anthropic.labels_batches, anthropic.uploads_file) == (False, False)
    assert (openai.labels_batches, openai.uploads_file) == (True, True)


def test_a_fingerprint_is_of_the_key_and_the_origin() -> None:
    one = fingerprint("https://h/v1", "k1")
    assert one == fingerprint("https://H:443/other", "k1")
    assert len({one, fingerprint("https://h/v1", "k2"), fingerprint("https://h:8443/v1", "k1")}) == 3
    assert (len(one), "k1" in one) == (16, False)


@pytest.mark.parametrize("base_url", ["http://api.example.org", "ftp://h", "https://me:secret@h", "nowhere"])
def test_a_base_address_that_would_leak_the_key_is_refused(http: HttpClient, base_url: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        AnthropicBatches(key=KEY, variable="", base_url=base_url, http=http)
    assert "secret" not in str(caught.value)
    with pytest.raises(BadConfiguration):
        OpenAIBatches(key=KEY, variable="", base_url=base_url, scope="", http=http)


# Submitting.


async def test_a_message_batch_is_created_by_one_request(host: Host, anthropic: AnthropicBatches) -> None:
    host.play_json({"id": "msgbatch_1", "processing_status": "in_progress"})
    assert await anthropic.submit(Handed().upload, SOON) == "msgbatch_1"
    [seen] = host.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/base/v1/messages/batches", b"".join(BODY))
    assert seen.headers["content-type"] == "application/json"
    assert (seen.headers["x-api-key"], "anthropic-version" in seen.headers) == (KEY, True)


async def test_a_batch_is_created_from_a_file_that_is_remembered_first(host: Host, openai: OpenAIBatches) -> None:
    host.play_json({"id": "file-1"})
    host.play_json({"id": "batch_1"})
    handed = Handed()
    assert await openai.submit(handed.upload, SOON) == "batch_1"
    upload, create = host.seen
    assert handed.files == ["file-1"]
    assert (upload.path, create.path) == ("/base/v1/files", "/base/v1/batches")
    assert upload.headers["content-type"] == "multipart/form-data; boundary=muster-b1"
    assert b'name="file"; filename="muster-b1.jsonl"' in upload.body
    assert b'name="purpose"\r\n\r\nbatch\r\n' in upload.body
    assert b"\r\n\r\n" + b"".join(BODY) + b"\r\n--muster-b1--\r\n" in upload.body
    assert upload.headers["authorization"] == create.headers["authorization"] == f"Bearer {KEY}"
    assert create.json == {
        "input_file_id": "file-1",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {"muster_batch": "b1"},
    }


async def test_a_file_of_a_former_attempt_is_not_uploaded_again(host: Host, openai: OpenAIBatches) -> None:
    host.play_json({"id": "batch_1"})
    handed = Handed(file="file-old")
    assert await openai.submit(handed.upload, SOON) == "batch_1"
    [create] = host.seen
    assert (create.path, create.json["input_file_id"], handed.files) == ("/base/v1/batches", "file-old", [])


async def test_nothing_is_created_when_the_file_could_not_be_remembered(host: Host, openai: OpenAIBatches) -> None:
    async def forget(_: str) -> None:
        raise OSError("the disk is full")

    host.play_json({"id": "file-1"})
    upload = Handed().upload
    forgetful = BatchUpload(id=upload.id, requests=3, size=upload.size, pieces=upload.pieces, file=None, on_file=forget)
    with pytest.raises(OSError, match="full"):
        await openai.submit(forgetful, SOON)
    assert len(host.seen) == 1


async def test_a_server_without_keys_gets_none(host: Host, http: HttpClient) -> None:
    agent = OpenAIBatches(key="", variable="", base_url=f"{host.url}/v1", scope="", http=http)
    host.play_json({"id": "batch_1"})
    await agent.submit(Handed(file="f").upload, SOON)
    assert "authorization" not in host.seen[0].headers


CREATES: dict[str, tuple[tuple[Any, ...], type[WireError], Paid]] = {
    "cut": (("hangs_up",), OutcomeUnknown, Paid.UNKNOWN),
    "silence": (("hangs",), OutcomeUnknown, Paid.UNKNOWN),
    "half an answer": ((b"HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n{", "hangs_up"), OutcomeUnknown, Paid.UNKNOWN),
    "no id": ((b"HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\n{}",), OutcomeUnknown, Paid.UNKNOWN),
    "gateway": ((b"HTTP/1.1 504 X\r\ncontent-length: 0\r\n\r\n",), OutcomeUnknown, Paid.UNKNOWN),
    "refused": ((b"HTTP/1.1 400 X\r\ncontent-length: 0\r\n\r\n",), InvalidRequest, Paid.NO),
    "too large": ((b"HTTP/1.1 413 X\r\ncontent-length: 0\r\n\r\n",), InvalidRequest, Paid.NO),
    "key": ((b"HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n",), AuthRefused, Paid.NO),
    "broken": ((b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n",), ProviderFault, Paid.NO),
    "busy": ((b"HTTP/1.1 429 X\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n",), RateLimited, Paid.NO),
}


def play(host: Host, pieces: tuple[Any, ...]) -> Timeouts:
    """Queue an answer and return how long to wait for it."""
    host.play(*(getattr(host, piece) if isinstance(piece, str) else piece for piece in pieces))
    return BRIEF if "hangs" in pieces else SOON


@pytest.mark.parametrize("case", CREATES)
async def test_a_creation_that_fails_says_whether_it_may_have_created(host: Host, agent: BatchAgent, case: str) -> None:
    pieces, kind, paid = CREATES[case]
    timeouts = play(host, pieces)
    with pytest.raises(WireError) as caught:
        await agent.submit(Handed(file="file-1").upload, timeouts)
    assert isinstance(caught.value, kind)
    assert caught.value.paid is paid
    assert len(host.seen) == 1, "nothing is sent twice"
    assert kind is not RateLimited or caught.value.retry_after == 7


@pytest.mark.parametrize("case", CREATES)
async def test_an_upload_that_fails_has_created_nothing(host: Host, openai: OpenAIBatches, case: str) -> None:
    pieces, kind, _ = CREATES[case]
    timeouts = play(host, pieces)
    handed = Handed()
    with pytest.raises(WireError) as caught:
        await openai.submit(handed.upload, timeouts)
    assert type(caught.value) is (TryLater if kind is OutcomeUnknown else kind)
    assert (caught.value.paid, handed.files, len(host.seen)) == (Paid.NO, [], 1)


async def test_an_upload_cut_in_the_middle_has_created_nothing(http: HttpClient) -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1000)
        writer.close()

    server = await asyncio.start_server(cut, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    agent = OpenAIBatches(key=KEY, variable="", base_url=url, scope="", http=http)
    with pytest.raises(TryLater) as caught:
        await agent.submit(Handed().upload, SOON)
    assert (type(caught.value), caught.value.paid) == (TryLater, Paid.NO)
    server.close()


async def test_what_cannot_be_reached_was_never_asked(http: HttpClient, unused_port: int) -> None:
    url = f"http://127.0.0.1:{unused_port}"
    for agent in (
        AnthropicBatches(key=KEY, variable="", base_url=url, http=http),
        OpenAIBatches(key=KEY, variable="", base_url=url, scope="", http=http),
    ):
        with pytest.raises(Unreachable):
            await agent.submit(Handed().upload, SOON)
        with pytest.raises(Unreachable):
            await agent.poll("x", SOON)


# Looking.


async def test_a_batch_is_looked_at_under_its_name(host: Host, agent: BatchAgent) -> None:
    host.play_json(RUNNING)
    assert (await agent.poll("a/b?c", SOON)).phase is Phase.RUNNING
    [seen] = host.seen
    assert (seen.method, seen.path.rpartition("/")[2]) == ("GET", "a%2Fb%3Fc")


async def test_the_files_of_a_batch_are_given_as_addresses(host: Host, openai: OpenAIBatches) -> None:
    host.play_json({"status": "expired", "output_file_id": "file-1", "error_file_id": "file/2"})
    progress = await openai.poll("x", SOON)
    assert progress.sources == (
        f"{host.url}/base/v1/files/file-1/content",
        f"{host.url}/base/v1/files/file%2F2/content",
    )


LOOKS: dict[str, tuple[tuple[Any, ...], type[WireError]]] = {
    "cut": (("hangs_up",), TryLater),
    "silence": (("hangs",), TryLater),
    "garbage": ((b"HTTP/1.1 200 X\r\ncontent-length: 2\r\n\r\n{}",), TryLater),
    "gateway": ((b"HTTP/1.1 502 X\r\ncontent-length: 0\r\n\r\n",), TryLater),
    "unknown": ((b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n",), UnknownModel),
    "key": ((b"HTTP/1.1 403 X\r\ncontent-length: 0\r\n\r\n",), AuthRefused),
}


@pytest.mark.parametrize("case", LOOKS)
async def test_looking_costs_nothing_however_it_ends(host: Host, agent: BatchAgent, case: str) -> None:
    pieces, kind = LOOKS[case]
    looks: tuple[Callable[[Timeouts], Awaitable[Any]], ...] = (
        lambda timeouts: agent.poll("x", timeouts),
        lambda timeouts: listed(agent.find(0, timeouts)),
    )
    for look in looks:
        timeouts = play(host, pieces)
        with pytest.raises(WireError) as caught:
            await look(timeouts)
        assert (type(caught.value), caught.value.paid) == (kind, Paid.NO)
    assert len(host.seen) == 2


@pytest.mark.parametrize("status", [400, 500])
async def test_the_key_is_in_no_message(host: Host, agent: BatchAgent, status: int) -> None:
    host.play_json({"error": {"message": f"your key {KEY} is bad", "type": "x"}}, status)
    with pytest.raises(MusterError) as caught:
        await agent.poll("x", SOON)
    assert "your key [key] is bad" in caught.value.message
    assert KEY not in repr(caught.value.record())


# Results.


async def test_results_come_as_they_are(host: Host, agent: BatchAgent, source: str) -> None:
    host.play_lines(b"{}\n" * 10_000)
    assert await everything(agent.results(source, SOON)) == b"{}\n" * 10_000
    [seen] = host.seen
    assert (seen.method, f"{host.url}{seen.path}") == ("GET", source)
    assert KEY in repr(seen.headers)


@pytest.mark.parametrize(
    "foreign",
    [
        "http://127.0.0.2:9/base/v1/results",
        "http://localhost:{port}/base/v1/results",
        "https://127.0.0.1:{port}/base/v1/results",
        "http://127.0.0.1:{port}/elsewhere",
        "http://127.0.0.1:{port}/base",
        "http://127.0.0.1:{port}/basement/v1/results",
        "http://127.0.0.1:{port}/base/v1/../../elsewhere",
        "http://127.0.0.1:{port}/base/v1/%2e%2e/%2E./elsewhere",
        "http://me:{port}@127.0.0.1:{port}/base/v1/results",
        "ftp://127.0.0.1/base",
        "/base/v1/results",
        "",
    ],
)
async def test_the_key_goes_nowhere_else(host: Host, agent: BatchAgent, foreign: str) -> None:
    host.play_lines(b"{}\n")
    with pytest.raises(BadConfiguration) as caught:
        await everything(agent.results(foreign.format(port=host.port), SOON))
    assert host.seen == []
    assert caught.value.suggestions


async def test_a_secret_in_a_foreign_address_is_not_shown(agent: BatchAgent) -> None:
    with pytest.raises(BadConfiguration, match="the key is not sent there") as caught:
        await everything(agent.results("https://example.org/x?token=secret", SOON))
    assert "secret" not in str(caught.value)


async def test_results_that_are_redirected_are_not_followed(host: Host, agent: BatchAgent, source: str) -> None:
    host.play(host.answer(b"", 302, location="http://127.0.0.2:9/"))
    with pytest.raises(InvalidRequest):
        await everything(agent.results(source, SOON))
    assert len(host.seen) == 1


@pytest.mark.parametrize(("after", "why"), [("hangs_up", "broke"), ("hangs", "nothing arrived")])
async def test_results_that_break_off_are_given_as_far_as_they_came(
    host: Host, agent: BatchAgent, source: str, after: str, why: str
) -> None:
    host.play_lines(b"{}\n", getattr(host, after))
    results = agent.results(source, BRIEF if after == "hangs" else SOON)
    assert await anext(results) == b"{}\n"
    with pytest.raises(TryLater, match=why) as caught:
        await anext(results)
    assert (type(caught.value), caught.value.paid) == (TryLater, Paid.NO)


async def test_results_that_are_refused_are_told_and_no_endless_refusal_is_read(
    host: Host, agent: BatchAgent, source: str
) -> None:
    endless = host.chunk(b"x" * 100_000)
    host.play(b"HTTP/1.1 404 X\r\ntransfer-encoding: chunked\r\n\r\n", endless, endless, host.hangs)
    with pytest.raises(UnknownModel):
        await everything(agent.results(source, SOON))


async def test_leaving_results_early_closes_the_connection(host: Host, agent: BatchAgent, source: str) -> None:
    host.play_lines(b"{}\n", host.hangs)
    results = agent.results(source, SOON)
    assert await anext(results) == b"{}\n"
    assert hasattr(results, "aclose")
    await results.aclose()
    await host.left.wait()


# Canceling.


async def test_a_batch_is_canceled_by_one_request_without_a_body(host: Host, agent: BatchAgent) -> None:
    host.play_json(RUNNING)
    await agent.cancel("x", SOON)
    [seen] = host.seen
    assert (seen.method, seen.body, seen.path.endswith("/batches/x/cancel")) == ("POST", b"", True)


@pytest.mark.parametrize("status", [400, 409])
@pytest.mark.parametrize("shown", [OVER, {"processing_status": "canceling", "status": "cancelling"}])
async def test_a_batch_that_is_over_or_about_to_be_is_left_alone(
    host: Host, agent: BatchAgent, status: int, shown: Any
) -> None:
    host.play_json({"error": {"message": "too late"}}, status)
    host.play_json(shown)
    await agent.cancel("x", SOON)
    assert [seen.method for seen in host.seen] == ["POST", "GET"]


@pytest.mark.parametrize("status", [400, 409])
async def test_a_refusal_to_cancel_a_batch_that_goes_on_is_told(host: Host, agent: BatchAgent, status: int) -> None:
    host.play_json({"error": {"message": "not today"}}, status)
    host.play_json(RUNNING)
    with pytest.raises(WireError, match="not today"):
        await agent.cancel("x", SOON)


async def test_a_cancel_without_an_answer_may_be_tried_again(host: Host, agent: BatchAgent) -> None:
    with pytest.raises(TryLater) as caught:
        await agent.cancel("x", SOON)
    assert (type(caught.value), caught.value.paid, len(host.seen)) == (TryLater, Paid.NO, 1)


# Finding.


def shown(name: str, when: int) -> dict[str, Any]:
    """A batch as either provider lists it."""
    return {"id": name, "processing_status": "ended", "status": "completed", "created_at": when}


def pages(agent: BatchAgent, *batches: tuple[str, int]) -> list[Any]:
    found = [shown(name, when) for name, when in batches]
    if agent.endpoint.kind == "anthropic":
        for batch in found:
            batch["created_at"] = f"1970-01-01T00:{batch['created_at']:02}:00Z"
    return found


@pytest.fixture
def minute(agent: BatchAgent) -> int:
    return 60 if agent.endpoint.kind == "anthropic" else 1


async def test_pages_are_turned_until_a_batch_is_older(host: Host, agent: BatchAgent, minute: int) -> None:
    host.play_json({"data": pages(agent, ("e", 9), ("d", 8)), "has_more": True})
    host.play_json({"data": pages(agent, ("c", 7), ("b", 5), ("a", 4)), "has_more": True})
    assert await listed(agent.find(6 * minute, SOON)) == ["e", "d", "c"]
    first, second = host.seen
    assert first.path.endswith("?limit=100")
    assert second.path.endswith("&after_id=d" if agent.endpoint.kind == "anthropic" else "&after=d")


async def test_a_batch_of_the_same_second_is_found(host: Host, agent: BatchAgent, minute: int) -> None:
    host.play_json({"data": pages(agent, ("a", 6)), "has_more": False})
    assert await listed(agent.find(6 * minute + 0.9, SOON)) == ["a"]


async def test_a_list_ends_with_its_last_page(host: Host, agent: BatchAgent) -> None:
    host.play_json({"data": pages(agent, ("a", 6)), "has_more": False})
    assert await listed(agent.find(0, SOON)) == ["a"]
    host.play_json({"data": [], "has_more": True})
    assert await listed(agent.find(0, SOON)) == []
    assert len(host.seen) == 2


async def test_a_list_that_does_not_get_on_ends(host: Host, agent: BatchAgent) -> None:
    host.play_json({"data": pages(agent, ("a", 6)), "has_more": True})
    assert await listed(agent.find(0, SOON)) == ["a", "a"]
    assert len(host.seen) == 2


def test_endpoints_are_equal_when_their_batches_may_be_shared(
    host: Host, http: HttpClient, openai: OpenAIBatches
) -> None:
    url, scope = f"{host.url}/base/v1", openai.endpoint.scope
    same = OpenAIBatches(key=KEY, variable="SOME_KEY", base_url=f"{url}/", scope=scope, http=http)
    other = OpenAIBatches(key="k", variable="SOME_KEY", base_url=url, scope=scope, http=http)
    model = OpenAIBatches(key=KEY, variable="SOME_KEY", base_url=url, scope=scope_of("m"), http=http)
    assert same.endpoint == openai.endpoint
    assert len({openai.endpoint, other.endpoint, model.endpoint}) == 3
