"""What reaches the upstream is what was sent, byte for byte, however odd its JSON is."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.upstream.dialects import dialect_of
from muster.agents.upstream.facts import read_facts, with_usage
from muster.domain.errors import BadArgument
from muster.domain.provider import ANTHROPIC, OPENAI
from tests.api.server import Project, Server

CHAT = dialect_of(OPENAI, "POST", "/v1/chat/completions")
MESSAGES = dialect_of(ANTHROPIC, "POST", "/v1/messages")
ANSWER = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    },
    indent=1,  # not as anybody here would write it
).encode()
SPACES = st.text(" \n\t\r", max_size=3)
SCALARS = st.one_of(
    st.sampled_from(["1e3", "-0.0", "1E-7", "0.1000", "12345678901234567890123", "true", "null", '"\\u0041\\/"']),
    st.sampled_from(['"\\ud83d\\ude00"', '"\\ud800"', '"é€"', '"a\\"},{\\"model\\""', '"]}"', '""']),
    st.text(max_size=8).map(lambda text: json.dumps(text, ensure_ascii=False)),
)


@st.composite
def values(draw: Any, depth: int = 2) -> str:
    """Return a JSON text, with the spaces, escapes and double names that it may have."""
    kind = draw(st.integers(0, 2)) if depth else 0
    if kind == 0:
        scalar: str = draw(SCALARS)
        return scalar
    parts = [draw(values(depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    space = draw(SPACES)
    if kind == 1:
        return f"[{space}{f'{space},'.join(parts)}{space}]"
    names = [draw(st.sampled_from(['"a"', '"model"', '"n"', '"b\\u0061"'])) for _ in parts]
    return f"{{{space}{','.join(f'{n}{space}:{space}{p}' for n, p in zip(names, parts, strict=True))}{space}}}"


@st.composite
def bodies(draw: Any) -> bytes:
    """Return a body with what it must say, and anything else around it."""
    fields = [("model", '"claude-haiku-5-5"'), ("max_tokens", "64"), ("messages", f"[{draw(values())}]")]
    more = [(name, draw(values())) for name in draw(st.lists(st.sampled_from(["x", "metadata", "x", "top_k"])))]
    space = draw(SPACES)
    both = draw(st.permutations([*fields, *more]))
    return f"{space}{{{','.join(f'{space}{json.dumps(n)}{space}:{space}{v}{space}' for n, v in both)}}}{space}".encode()


class Upstream(ThreadingHTTPServer):
    """Keeps the last request as it came."""

    daemon_threads = True
    last: tuple[bytes, dict[str, str], str] = (b"", {}, "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.last = body, {name.lower(): value for name, value in self.headers.items()}, self.path
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.send_header("anthropic-ratelimit-requests-remaining", "7")
        self.send_header("set-cookie", "a=b")
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Upstream, Server]]:
    upstream = Upstream(("127.0.0.1", 0), _Handler)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    project = Project(tmp_path_factory.mktemp("bytes"))
    project.declare("", "")
    url = f"http://127.0.0.1:{upstream.server_address[1]}"
    project.variables |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "upstream-key-0123456789"}
    with project.serve() as server:
        yield upstream, server
    upstream.shutdown()
    upstream.server_close()


@given(body=bodies())
def test_a_body_arrives_as_it_was_sent_and_its_answer_as_it_was_given(
    wire: tuple[Upstream, Server], body: bytes
) -> None:
    upstream, server = wire
    answer = server.request("POST", "/anthropic/v1/messages", raw=body, headers={"content-type": "application/json"})
    assert (answer.status, answer.body) == (200, ANSWER)
    assert upstream.last[0] == body


def test_headers_go_on_as_they_are_but_keys_and_what_belongs_to_the_connection(wire: tuple[Upstream, Server]) -> None:
    upstream, server = wire
    body = b'{"model": "claude-haiku-5-5", "max_tokens": 5, "messages": []}'
    headers = {
        "anthropic-beta": "one-2025,two-2026",
        "anthropic-version": "2023-06-01",
        "x-new-header": "kept",
        "user-agent": "claude-cli/2.1.326",
        "x-api-key": "the-key-of-the-client",
        "authorization": "Bearer the-key-of-the-client",
        "x-stainless-retry-count": "0",
        "x-claude-code-session-id": "session-1",
        "cookie": "secret=1",
    }
    answer = server.request("POST", "/anthropic/v1/messages?beta=true", raw=body, headers=headers)
    _, sent, path = upstream.last
    assert path == "/v1/messages?beta=true"
    kept = {name: sent.get(name) for name in headers}
    assert kept == {
        **{name: headers[name] for name in ("anthropic-beta", "anthropic-version", "x-new-header", "user-agent")},
        "x-claude-code-session-id": "session-1",
        "x-api-key": "upstream-key-0123456789",
        "authorization": None,
        "x-stainless-retry-count": None,
        "cookie": None,
    }
    assert answer.headers["anthropic-ratelimit-requests-remaining"] == "7"
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "name", ["model", "max_tokens", "n", "stream", "service_tier", "max_completion_tokens", "speed", "stream_options"]
)
def test_what_decides_about_the_cost_may_not_stand_twice(name: str) -> None:
    assert CHAT is not None
    value = {"stream": b"false", "model": b'"m"', "service_tier": b'"flex"', "stream_options": b"{}"}.get(name, b"1")
    first = b'"model":"m",' if name != "model" else b""
    spelled = f"\\u{ord(name[0]):04x}{name[1:]}".encode()  # the same name, written with an escape
    with pytest.raises(BadArgument, match="twice") as refused:
        read_facts(b'{%b"%b":%b,"%b":%b}' % (first, name.encode(), value, spelled, value), CHAT)
    assert refused.value.flaws[0].path == name


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{", b"\xff{}", b'{"model": 1}', b'{"model": ""}', b'{"model":"m","max_tokens":-1}'),
        *(b'{"model":"m","n":true}', b'{"model":"m","stream":1}', b'{"model":"m","max_tokens":1.5}'),
        b'{"a":' * 100_000,
    ],
    ids=range(11),
)
def test_what_cannot_be_read_is_refused(body: bytes) -> None:
    assert MESSAGES is not None
    with pytest.raises(BadArgument):
        read_facts(body, MESSAGES)


@pytest.mark.parametrize(
    ("part", "hidden"),
    [
        (
            '"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a/b"}}]}]',
            "url",
        ),
        ('"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}]', "file"),
        ('"container":"c1"', "container"),
        (
            '"tools":[{"name":"get","input_schema":{"properties":{"type":{"type":"string"},"url":{"type":"string"}}}}]',
            "",
        ),
        ('"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"url":"https://a/b"}}]}]', ""),
        ('"messages":[{"role":"user","content":"\\"file_id\\": \\"no\\""}]', ""),
        ('"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"aGk="}}]}]', "image"),
    ],
)
def test_input_that_is_not_in_the_body_is_noticed(part: str, hidden: str) -> None:
    assert MESSAGES is not None
    found = read_facts(f'{{"model":"m","max_tokens":1,{part}}}'.encode(), MESSAGES).hidden
    assert bool(found) == bool(hidden)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", '{"stream_options":{"include_usage":true},"model":"m", "stream":true}'),
        (
            ', "stream_options": {"x": 1}',
            '{"model":"m", "stream":true, "stream_options":{"x": 1, "include_usage": true}}',
        ),
        (', "stream_options":null', '{"model":"m", "stream":true, "stream_options":{"include_usage": true}}'),
    ],
)
def test_a_stream_of_completions_is_asked_for_its_usage_and_nothing_else_is_changed(
    options: str, expected: str
) -> None:
    assert CHAT is not None
    body = f'{{"model":"m", "stream":true{options}}}'.encode()
    assert with_usage(body, read_facts(body, CHAT)).decode() == expected
