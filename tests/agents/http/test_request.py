"""Requests: which addresses are taken, and the head that is written."""

import pytest

import muster
from muster.agents.http.client import HttpClient
from muster.agents.http.request import below, head_of, join
from muster.agents.openai.live import OpenAIAgent
from muster.domain.agent import Profile
from muster.domain.errors import BadConfiguration
from muster.domain.price import Pricing

HEADERS = (("content-type", "application/json"), ("X-Api-Key", "k"))


def lines(url: str, headers: tuple[tuple[str, str], ...] = ()) -> list[str]:
    return head_of(url, headers).request(b"{}").decode().split("\r\n")


def test_a_request_is_spelled_as_servers_want_it() -> None:
    assert head_of("http://h/v1/messages", HEADERS).request(b'{"a":1}') == (
        b"POST /v1/messages HTTP/1.1\r\n"
        b"host: h\r\n"
        b"user-agent: muster/" + muster.__version__.encode() + b"\r\n"
        b"accept: */*\r\n"
        b"content-type: application/json\r\n"
        b"x-api-key: k\r\n"
        b"accept-encoding: gzip, deflate\r\n"
        b"content-length: 7\r\n"
        b"\r\n"
        b'{"a":1}'
    )


def test_a_question_is_a_head_and_nothing_else() -> None:
    asked = head_of("http://h/v1/x?a=b", HEADERS, "GET").alone().decode().split("\r\n")
    assert asked[0] == "GET /v1/x?a=b HTTP/1.1"
    assert asked[-2:] == ["", ""]
    assert not [line for line in asked if line.startswith("content-length")]


def test_the_head_of_a_body_in_pieces_says_how_long_it_will_be() -> None:
    head = head_of("http://h", HEADERS)
    assert head.before(7) + b'{"a":1}' == head.request(b'{"a":1}')


@pytest.mark.parametrize(
    ("url", "host", "port", "secure", "shown"),
    [
        ("http://h", "h", 80, False, "h"),
        ("http://h:80", "h", 80, False, "h"),
        ("https://h/x", "h", 443, True, "h"),
        ("https://H.example:443", "h.example", 443, True, "h.example"),
        ("https://h:80", "h", 80, True, "h:80"),
        ("http://[::1]:8080/x", "::1", 8080, False, "[::1]:8080"),
        ("http://[::1]", "::1", 80, False, "[::1]"),
        ("https://bücher.example", "xn--bcher-kva.example", 443, True, "xn--bcher-kva.example"),
    ],
)
def test_hosts_and_ports_are_told_apart(url: str, host: str, port: int, secure: bool, shown: str) -> None:
    origin = head_of(url, ()).origin
    assert (origin.host, origin.port, origin.secure) == (host, port, secure)
    assert f"host: {shown}" in lines(url)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h?a=b", "/?a=b"),
        ("http://h/a%20b/ü?q=1&r=%3D#part", "/a%20b/%C3%BC?q=1&r=%3D"),
        ("http://h/a b", "/a%20b"),
        ("http://h/a\r\nx: y", "/ax:%20y"),
    ],
)
def test_the_target_is_never_more_than_a_word(url: str, target: str) -> None:
    assert lines(url)[0] == f"POST {target} HTTP/1.1"


def test_what_a_caller_says_replaces_what_we_would_say() -> None:
    said = lines("http://h", (("User-Agent", "me"), ("Host", "other")))
    assert "user-agent: me" in said
    assert [line for line in said if line.startswith("host")] == ["host: other"]


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "\x1b[0m", "a\x7f", "\ud83d"])
def test_a_value_that_would_break_the_head_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        head_of("http://h", (("x-api-key", f"sk-secret{value}"),))
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ü", "a\0"])
def test_a_name_that_would_break_the_head_is_refused(name: str) -> None:
    with pytest.raises(BadConfiguration):
        head_of("http://h", ((name, "x"),))


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "accept-encoding", "expect"])
def test_headers_that_frame_a_message_are_ours(name: str) -> None:
    with pytest.raises(BadConfiguration, match="cannot be set"):
        head_of("http://h", ((name, "x"),))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "h",
        "ftp://h",
        "http://",
        "http://[::1",
        "http://h:x",
        "http://h:99999",
        "http://a b",
        "http://h\0",
        f"http://{'a' * 64}.x",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadConfiguration, match="not an address"):
        head_of(url, ())


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(BadConfiguration) as caught:
        head_of("http://me:secret@h", ())
    assert "secret" not in str(caught.value)


def test_an_agent_that_could_never_send_is_not_made() -> None:
    headers = {"x-title": "a\nb: c"}
    with pytest.raises(BadConfiguration, match="x-title"):
        OpenAIAgent(
            profile=Profile(name="a", limiter="a"), model="m", pricing=Pricing(), http=HttpClient(), headers=headers
        )


@pytest.mark.parametrize(
    ("base", "whole"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/x"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/x"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/x"),
        ("http://[::1]:80", "http://[::1]:80/x"),
        ("http://localhost:1", "http://localhost:1/x"),
        ("http://192.168.1.7:8000", "http://192.168.1.7:8000/x"),
        ("http://10.0.0.1", "http://10.0.0.1/x"),
        ("http://ollama:11434", "http://ollama:11434/x"),
        ("http://host.docker.internal:1", "http://host.docker.internal:1/x"),
    ],
)
def test_a_base_address_and_a_path_are_joined(base: str, whole: str) -> None:
    assert join(base, "/x") == whole


@pytest.mark.parametrize("base", ["", "api.openai.com", "ftp://x", "file:///etc", "https://", "https://x:port"])
def test_what_is_no_web_address_is_refused(base: str) -> None:
    with pytest.raises(BadConfiguration):
        join(base, "/x")


@pytest.mark.parametrize("base", ["http://api.openai.com/v1", "http://8.8.8.8", "http://[2606:4700::1]"])
def test_a_key_never_goes_unencrypted_over_the_internet(base: str) -> None:
    with pytest.raises(BadConfiguration, match="unencrypted"):
        join(base, "/x")


@pytest.mark.parametrize("base", ["https://me:secret@x.org", "https://x.org?key=secret", "ftp://me:secret@x.org"])
def test_secrets_in_addresses_are_refused_and_not_shown(base: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        join(base, "/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.example.org", "https://api.example.org/v1/x?part=1"),
        ("https://api.example.org", "https://API.example.org:443/v1/x"),
        ("https://api.example.org/base/", "https://api.example.org/base/x"),
        ("http://[::1]:80/base", "http://[::1]/base/a..b"),
    ],
)
def test_an_address_below_the_base_is_given_back(base: str, url: str) -> None:
    assert below(base, url) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.org/base/x",
        "https://api.example.org:444/base/x",
        "https://api.example.org.evil.org/base/x",
        "https://evil.org/base/x?y=secret",
        "https://api.example.org/other",
        "https://api.example.org/base/../other?secret",
        "https://me:secret@api.example.org/base/x",
        "//api.example.org/base/x",
        "",
    ],
)
def test_an_address_elsewhere_is_refused_and_no_secret_of_it_shown(url: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        below("https://api.example.org/base", url)
    assert "secret" not in str(caught.value)
