"""Proxies and certificates as the environment names them."""

from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadConfiguration
from muster.domain.network import Network, Proxy
from muster.settings import Settings, load_settings
from muster.settings.proxies import PROXY_VARIABLES, parse_proxy, read_network


def settings(**variables: str) -> Settings:
    return Settings(home=Path("h"), folder=Path("f"), variables=variables)


def places(network: Network) -> tuple[str | None, str | None]:
    def place(proxy: Proxy | BadConfiguration | None) -> str | None:
        return proxy.place if isinstance(proxy, Proxy) else None

    return place(network.proxies.https), place(network.proxies.http)


@pytest.mark.parametrize(
    ("variables", "https", "http"),
    [
        ({}, None, None),
        ({"HTTPS_PROXY": "http://a:1"}, "http://a:1", None),
        ({"HTTP_PROXY": "http://a:1"}, None, "http://a:1"),
        ({"http_proxy": "http://a:1", "HTTP_PROXY": "http://b:1"}, None, "http://a:1"),
        ({"https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:1"}, "http://a:1", None),
        ({"ALL_PROXY": "http://a:1"}, "http://a:1", "http://a:1"),
        ({"all_proxy": "http://a:1", "ALL_PROXY": "http://b:1"}, "http://a:1", "http://a:1"),
        ({"ALL_PROXY": "http://a:1", "HTTPS_PROXY": "http://b:1"}, "http://b:1", "http://a:1"),
        ({"https_proxy": "", "HTTPS_PROXY": "http://b:1", "ALL_PROXY": "http://a:1"}, None, "http://a:1"),
        ({"HTTPS_PROXY": "  "}, None, None),
        ({"HTTP_PROXY": "http://a:1", "REQUEST_METHOD": "GET"}, None, None),
        ({"http_proxy": "http://a:1", "REQUEST_METHOD": "GET"}, None, "http://a:1"),
    ],
)
def test_the_variables_are_read_as_curl_reads_them(
    variables: dict[str, str], https: str | None, http: str | None
) -> None:
    assert places(read_network(variables)) == (https, http)


def test_the_lower_case_exceptions_go_first() -> None:
    both = read_network({"no_proxy": "a.test", "NO_PROXY": "b.test"})
    assert [entry.domain for entry in both.proxies.exceptions] == ["a.test"]
    assert both.no_proxy == "a.test"
    assert read_network({"no_proxy": "", "NO_PROXY": "b.test"}).proxies.exceptions == ()


@pytest.mark.parametrize(
    ("value", "place", "host", "port", "secure"),
    [
        ("http://proxy:3128", "http://proxy:3128", "proxy", 3128, False),
        ("http://proxy:3128/", "http://proxy:3128", "proxy", 3128, False),
        ("proxy.example:3128", "http://proxy.example:3128", "proxy.example", 3128, False),
        ("proxy", "http://proxy:80", "proxy", 80, False),
        ("HTTPS://Proxy", "https://proxy:443", "proxy", 443, True),
        ("http://[::1]:8080", "http://[::1]:8080", "::1", 8080, False),
        ("http://bücher.example:1", "http://xn--bcher-kva.example:1", "xn--bcher-kva.example", 1, False),
        ("me:pw@10.0.0.1:3128", "http://10.0.0.1:3128", "10.0.0.1", 3128, False),
    ],
)
def test_a_proxy_is_read_from_its_address(value: str, place: str, host: str, port: int, secure: bool) -> None:
    proxy = parse_proxy("HTTPS_PROXY", value)
    assert (proxy.place, proxy.host, proxy.port, proxy.secure) == (place, host, port, secure)


@pytest.mark.parametrize(
    ("user", "pair"),
    [
        ("me:secret", b"me:secret"),
        ("me", b"me:"),
        (":secret", b":secret"),
        ("do%40main:p%3A%2F%25", b"do@main:p:/%"),
        ("me:p@ss", b"me:p@ss"),
        ("m%C3%BC:%C3%BC", "mü:ü".encode()),
    ],
)
def test_name_and_password_are_decoded_and_never_shown(user: str, pair: bytes) -> None:
    proxy = parse_proxy("HTTPS_PROXY", f"http://{user}@proxy:3128")
    assert proxy.authorization == "Basic " + b64encode(pair).decode()
    assert proxy.authorization not in repr(proxy)
    assert user not in repr(proxy)
    assert proxy.place == "http://proxy:3128"


@pytest.mark.parametrize(
    "value",
    [
        "http://",
        "http://me:sesame@",
        "http://me:sesame@proxy:port",
        "http://me:sesame@proxy:99999",
        "http://me:sesame@proxy:0",
        "http://me:sesame@proxy/path",
        "http://me:sesame@proxy?x",
        "http://me:sesame@pro xy",
        "http://me:ses/ame@proxy",
        "http://me:sesame@[::1",
        "ftp://me:sesame@proxy",
        "socks5://me:sesame@proxy:1080",
        "socks5h://proxy:1080",
        "://proxy",
        "http://\udc80",
        f"http://{'a' * 64}.x",
    ],
)
def test_what_is_no_proxy_is_an_error_that_names_the_variable_only(value: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        parse_proxy("https_proxy", value)
    said = " ".join([caught.value.message, *caught.value.suggestions])
    assert "https_proxy" in said
    assert "ses" not in said
    assert "proxy:1080" not in said


@given(st.text())
def test_any_value_is_a_proxy_or_a_configuration_error(value: str) -> None:
    read_network(dict.fromkeys(PROXY_VARIABLES, value))
    assert value not in settings(HTTPS_PROXY=value).secrets or "@" in value


def test_socks_is_refused_by_name() -> None:
    with pytest.raises(BadConfiguration, match=r"ALL_PROXY names a SOCKS proxy, which is not supported"):
        read_network({"ALL_PROXY": "socks5://proxy:1080"}).proxies.route("api.example.org", 443, secure=True)


def test_the_password_of_a_proxy_is_a_secret_in_every_spelling() -> None:
    found = settings(HTTPS_PROXY="http://me:open%2Fsesame@proxy:3128", HTTP_PROXY="http://plain:3128").secrets
    assert set(found) == {
        "http://me:open%2Fsesame@proxy:3128",
        "open%2Fsesame",
        "open/sesame",
        b64encode(b"me:open/sesame").decode(),
    }


def test_the_settings_say_what_the_environment_says(tmp_path: Path) -> None:
    environment = {"HTTPS_PROXY": "http://a:1", "SSL_CERT_FILE": "/ca.pem", "SSL_CERT_DIR": "/ca:/cb"}
    network = load_settings(folder=tmp_path, environment=environment).network
    assert places(network) == ("http://a:1", None)
    assert (network.certificate_file, network.certificate_dir) == ("/ca.pem", "/ca:/cb")
