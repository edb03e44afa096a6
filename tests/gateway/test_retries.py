"""A client whose connection broke asks again and gets the answer that was paid for; nobody else does."""

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from muster.agents.upstream.assembly import assembled
from muster.agents.upstream.dialects import AnswerForm
from tests.api.server import Server

from .conftest import PricedRehearsal, project_with

MESSAGE = {"model": "claude-haiku-5-5", "max_tokens": 2000, "messages": [{"role": "user", "content": "hello there"}]}
CHAT = {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "hello there"}]}
RESPONSE = {"model": "gpt-5-mini", "input": "hello there", "store": False}
PATHS: dict[AnswerForm, tuple[str, dict[str, Any]]] = {
    AnswerForm.MESSAGES: ("/anthropic/v1/messages", MESSAGE),
    AnswerForm.CHAT: ("/openai/v1/chat/completions", CHAT),
    AnswerForm.RESPONSES: ("/openai/v1/responses", RESPONSE),
}


@pytest.fixture
def slow() -> Iterator[PricedRehearsal]:
    with PricedRehearsal(latency_ms=800) as process:
        yield process


@pytest.fixture
def server(slow: PricedRehearsal, tmp_path: Path) -> Iterator[Server]:
    with project_with(tmp_path, slow).serve() as started:
        yield started


def leave(server: Server, path: str, body: Any) -> None:
    """Send a request and go away before anything of its answer came."""
    raw = json.dumps(body).encode()
    with socket.create_connection(server.address) as wire:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\nx-muster-session: s1\r\ncontent-length: {len(raw)}\r\n\r\n"
        wire.sendall(head.encode() + raw)
        wire.settimeout(0.3)
        with pytest.raises(TimeoutError):
            wire.recv(1)  # it is on its way, and not answered


def ask(server: Server, path: str, body: Any, **headers: str) -> Any:
    spelled = {"x-muster-session": "s1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return server.request("POST", path, raw=json.dumps(body).encode(), headers=spelled)


@pytest.mark.parametrize("form", list(PATHS))
def test_a_stream_whose_client_left_answers_its_repetition_without_a_stream(
    slow: PricedRehearsal, server: Server, form: AnswerForm
) -> None:
    path, body = PATHS[form]
    leave(server, path, {**body, "stream": True})
    repeated = ask(server, path, {**body, "stream": False})
    assert repeated.status == 200
    assert slow.audit().calls == 1
    fresh = ask(server, path, body)  # it was delivered, so it is asked again
    assert slow.audit().calls == 2
    assert _said(repeated.json) == _said(fresh.json)


def test_only_a_retry_of_the_same_question_by_the_same_client_joins(slow: PricedRehearsal, server: Server) -> None:
    path, body = PATHS[AnswerForm.MESSAGES]
    leave(server, path, body)
    others = [
        ask(server, path, body, x_muster_session="s2"),
        ask(server, path, {**body, "messages": [{"role": "user", "content": "another"}]}),
        ask(server, f"/run/other{path}", body),
    ]
    assert {answer.status for answer in others} == {200}
    assert slow.audit().calls == 4
    blocks = [{"type": "text", "text": "hello there", "cache_control": {"type": "ephemeral"}}]
    again = {**body, "max_tokens": 1000, "messages": [{"role": "user", "content": blocks}]}
    assert ask(server, path, again).status == 200  # the same question, in other words
    assert slow.audit().calls == 4


def test_equal_requests_in_parallel_are_separate_calls_and_a_numbered_retry_is_not(
    slow: PricedRehearsal, server: Server
) -> None:
    path, body = PATHS[AnswerForm.CHAT]
    with ThreadPoolExecutor(3) as clients:
        answers = list(clients.map(lambda _: ask(server, path, body), range(3)))
        assert slow.audit().calls == 3
        assert len({answer.json["id"] for answer in answers}) == 3
        first = clients.submit(ask, server, path, body)
        while not slow.audit().in_flight:
            assert not first.done(), "it was answered before it could be repeated"
        retry = clients.submit(ask, server, path, body, x_stainless_retry_count="1")
        assert first.result().status == retry.result().status == 200
        assert first.result().json["id"] == retry.result().json["id"]
    assert slow.audit().calls == 4


def _said(answer: Any) -> Any:
    if "content" in answer:
        return answer["content"], answer["stop_reason"], answer["usage"]["output_tokens"]
    if "choices" in answer:
        return answer["choices"], answer["usage"]
    return [item["content"] for item in answer["output"]], answer["status"], answer["usage"]


@pytest.mark.parametrize("form", list(PATHS))
def test_an_assembled_stream_says_what_the_whole_answer_says(form: AnswerForm, tmp_path: Path) -> None:
    path, body = PATHS[form]
    script = {"otherwise": {"text": "Let me look.", "tool_calls": [{"name": "look", "arguments": {"at": "Zürich"}}]}}
    options = {"stream_options": {"include_usage": True}} if form is AnswerForm.CHAT else {}
    with (
        PricedRehearsal(thinking=True, script=script) as rehearsal,
        project_with(tmp_path, rehearsal).serve() as server,
    ):
        streamed = ask(server, path, {**body, "stream": True, **options})
        whole = ask(server, path, body)
    found = assembled(streamed.body, form)
    assert found is not None
    made, told = json.loads(found), whole.json
    assert set(told) <= set(made)
    assert _texts(made) == _texts(told)
    assert assembled(streamed.body[: len(streamed.body) // 2], form) is None


def _texts(answer: Any) -> Any:
    if "content" in answer:
        return [(block["type"], block.get("text"), block.get("input")) for block in answer["content"]]
    if "choices" in answer:
        message = answer["choices"][0]["message"]
        calls = [(call["type"], call["function"]) for call in message["tool_calls"]]
        return message["content"], calls, answer["choices"][0]["finish_reason"]
    return [(item["type"], item.get("content"), item.get("arguments")) for item in answer["output"]]
